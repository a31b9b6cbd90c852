import json
import shutil

import pytest
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from gptscope import app
from gptscope.model.shipped import shipped_folders
from tests.helpers.cli import (
    SENTENCE,
    asked,
    column,
    on_text,
    parts,
    refused,
    run_cli,
    text_commands,
)
from tests.helpers.made_tokenizers import byte_level, gpt1, llama, write_json, write_pair

TEXTS = [
    SENTENCE,
    "na\u00efve \u6f22\u5b57",
    "\U0001f469\u200d\U0001f467!",
    " a\n\tb  ",
    "1 + 1 = 2",
]


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_a_row_for_each_token(tiny, text):
    table, note = parts("tokens", text)
    assert column(table, "id") == tiny.tokenizer.encode(text)
    assert column(table, "position") == list(range(len(table["rows"])))
    assert note["text"] == "Nothing was added; the tokens give back the text byte for byte"


@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_places_are_counted_in_bytes(text):
    table, _ = parts("tokens", text)
    data = text.encode()
    for row in table["rows"]:
        assert bytes.fromhex(row["bytes"]) == data[row["start"] : row["end"]]
    starts, ends = column(table, "start"), column(table, "end")
    assert [*starts, len(data)] == [0, *ends]


def test_bytes_that_are_no_character_are_numbered():
    table, _ = parts("tokens", "\u6f22")
    assert column(table, "token") == ["<0xE6>", "<0xBC>", "<0xA2>"]


def test_what_was_fed_is_always_told(ids, labels):
    answer = asked("tokens", SENTENCE)
    told = {"text": SENTENCE, "ids": ids, "tokens": labels, "prepended": 0, "appended": 0}
    assert answer["input"] == told
    sizes = {"n_layers": 4, "n_heads": 4, "d_model": 128, "d_head": 32, "d_ff": 512}
    assert answer["model"].items() >= {**sizes, "n_vocab": 4096, "n_ctx": 128}.items()
    assert (answer["model"]["n_params"], answer["model"]["dtype"]) == (1_334_016, "float32")


def test_ids_in_place_of_a_text(labels):
    answer = asked("tokens", "--ids", "643,414 266")
    table, note = answer["parts"]
    assert column(table, "token") == labels[:3]
    assert answer["input"]["text"] is None
    assert note["text"] == "Ids were given: no text was read, and nothing was added"


@pytest.fixture
def adding(tmp_path):
    def folder(template):
        path = shutil.copytree(shipped_folders()["tiny"], tmp_path / "model")
        tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        end = tokenizer.id_to_token(0)
        tokenizer.post_processor = TemplateProcessing(
            single=template.replace("END", end), special_tokens=[(end, 0)]
        )
        tokenizer.save(str(path / "tokenizer.json"))
        return str(path)

    return folder


def test_what_the_tokenizer_puts_before_the_text_is_told(adding, ids):
    answer = asked("tokens", SENTENCE, "--model", adding("END $A"))
    assert answer["input"]["ids"] == [0, *ids]
    assert answer["input"]["prepended"] == 1
    note = answer["parts"][1]["text"]
    told = "<|endoftext|> before it; the tokens give back the text byte for byte"
    assert note == f"Put around the text: {told}"


@pytest.mark.parametrize(
    ("template", "before", "told"),
    [
        ("$A END", 0, "<|endoftext|> after it"),
        ("END $A END", 1, "<|endoftext|> before and <|endoftext|> after it"),
    ],
)
def test_what_the_tokenizer_puts_after_the_text_is_told(adding, template, before, told):
    answer = asked("tokens", SENTENCE, "--model", adding(template))
    assert answer["input"]["prepended"] == before
    assert answer["input"]["appended"] == 1
    assert answer["parts"][1]["text"].startswith(f"Put around the text: {told}; ")


def test_places_count_from_the_first_token_of_the_text(adding):
    plain, _ = parts("tokens", SENTENCE)
    table, _ = parts("tokens", SENTENCE, "--model", adding("END $A END"))
    for name in ("start", "end"):
        assert column(table, name) == [None, *column(plain, name), None]


@pytest.mark.parametrize(("text", "n"), [("<|endoftext|>", 1), ("<|endoftext|>Lily", 2)])
def test_an_end_token_that_was_written_is_text(adding, text, n):
    answer = asked("tokens", text)
    assert (answer["input"]["prepended"], answer["input"]["appended"]) == (0, 0)
    plain = answer["parts"][0]
    assert column(plain, "start") == [0, 13][:n]
    answer = asked("tokens", text, "--model", adding("END $A"))
    assert (answer["input"]["prepended"], answer["input"]["appended"]) == (1, 0)
    assert column(answer["parts"][0], "start") == [None, *column(plain, "start")]


def test_spaces_and_line_ends_are_visible_on_a_terminal():
    text = run_cli(["tokens", "a\n\tb c"]).text
    assert "\u21b5" in text
    assert "\u21e5" in text
    assert "\u00b7c" in text


def test_an_id_without_a_text_is_named(folder):
    assert "<id 5>" in run_cli(["tokens", "--ids", "5", "--model", str(folder())]).text


# --bos and --no-bos


def ids_of(*args):
    given = asked("tokens", *args)["input"]
    return given["ids"], given["prepended"], given["appended"]


def test_bos_is_put_before_the_text_once(adding, ids):
    assert ids_of(SENTENCE, "--bos") == ([0, *ids], 1, 0)
    assert ids_of(SENTENCE) == ids_of(SENTENCE, "--no-bos") == (ids, 0, 0)
    path = adding("END $A END")
    assert ids_of(SENTENCE, "--bos", "-m", path) == ([0, *ids, 0], 1, 1)
    assert ids_of(SENTENCE, "--no-bos", "-m", path) == ([*ids, 0], 0, 1)
    assert ids_of("<|endoftext|>Lily", "--bos") == ([0, ids[0]], 0, 0)


def test_bos_is_told_and_has_no_place():
    table, note = parts("tokens", SENTENCE, "--bos")
    assert column(table, "start")[:2] == [None, 0]
    assert note["text"].startswith("Put around the text: <|endoftext|> before it; ")
    assert run_cli(["tokens", SENTENCE, "--bos", "-f", "markdown"]).text.count("1 prepended") == 1


def test_bos_before_ids():
    assert ids_of("--ids", "643", "--bos") == ([0, 643], 1, 0)
    assert ids_of("--ids", "0,643", "--bos") == ([0, 643], 0, 0)
    assert ids_of("--ids", "0,643", "--no-bos") == ([0, 643], 0, 0)
    table, note = parts("tokens", "--ids", "643", "--bos")
    assert column(table, "start") == [None, 0]
    told = "Ids were given: no text was read, and <|endoftext|> before them was added"
    assert note["text"] == told


@pytest.mark.parametrize("args", [["the cat"], ["--ids", "3"]])
def test_a_model_without_bos_cannot_begin_with_it(args):
    said, _ = refused(run_cli(["tokens", *args, "--bos", "-m", "toy"]), 2)
    assert said == "--bos cannot be met: this model names no BOS token"


def takes_bos(command):
    return any(p.name == "bos" for p in app.loaded(command).params)


@pytest.mark.parametrize("command", [name for name in text_commands() if takes_bos(name)])
def test_every_command_takes_bos(command):
    name, *words = on_text(command, "Lily wanted")
    result = run_cli([name, "--bos", "-f", "json", *words])
    given = json.loads(result.out)["input"]
    assert given["prepended"] == 1
    assert given["ids"][0] == 0


def test_a_story_begins_with_bos_alone():
    plain = run_cli(["generate", "-n", "3"])
    assert run_cli(["generate", "-n", "3", "--bos"]).out == plain.out
    said, _ = refused(run_cli(["generate", "-n", "3", "--no-bos"]), 2)
    assert said == "with --no-bos there is nothing to begin with: give a text"


def test_the_tour_writes_python_that_begins_with_bos():
    text = run_cli(["tour", "Lily wanted", "--bos", "-f", "json"]).text
    assert "model.tokenizer.encode('Lily wanted', bos=True)" in text


# Other kinds of tokenizer


@pytest.fixture
def read(tmp_path):
    def ask(write, inner, text, *more, **files):
        path = shutil.copytree(shipped_folders()["tiny"], tmp_path / "model", dirs_exist_ok=True)
        for name in ("tokenizer.json", "text.json"):
            (path / name).unlink(missing_ok=True)
        write(path, inner, **files)
        result = run_cli(["tokens", text, "-m", str(path), "-f", "json", *more])
        assert result.status == 0
        return json.loads(result.out), result.err.splitlines()

    return ask


def test_a_space_that_no_text_has_is_told(read):
    answer, lines = read(write_json, llama(), "the cat")
    table, note = answer["parts"]
    assert (answer["input"]["prepended"], lines) == (1, [])
    assert (column(table, "token")[1][0], column(table, "start")[:2]) == (" ", [None, 0])
    told = "the tokens give back the text byte for byte, but for a space that they have before it"
    assert note["text"] == f"Put around the text: <s> before it; {told}"


def test_vocab_json_and_merges_txt_are_read(read):
    config = {"bos_token": "<|endoftext|>", "add_bos_token": True}
    answer, lines = read(write_pair, byte_level(), "the cat", tokenizer_config=config)
    assert (answer["input"]["prepended"], lines) == (1, [])
    assert answer["parts"][1]["text"].endswith("byte for byte")


def test_what_is_lost_is_told():
    result = run_cli(["tokens", "the  cat", "-m", "toy", "-f", "json"])
    lost = "the text does not come back from its tokens: at character 4, ' ' was left out"
    assert result.err == f"warning: {lost}\n"
    assert json.loads(result.out)["parts"][1]["text"] == f"Nothing was added; {lost}"


def test_places_in_a_text_that_is_not_kept(read):
    answer, lines = read(write_pair, gpt1(), "\u00c9cole, Lily")
    table, note = answer["parts"]
    assert list(zip(column(table, "start"), column(table, "end"), strict=True)) == [
        (0, 6),
        (6, 7),
        (8, 12),
    ]
    lost = "the text does not come back from its tokens: at character 0, '\u00c9' became 'e'"
    assert note["text"] == f"Nothing was added; {lost}"
    assert lines == [f"warning: {lost}"]
