import shutil

import pytest
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from gptscope.model.shipped import shipped_folders
from tests.helpers.cli import SENTENCE, asked, column, parts, run_cli

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
    told = "The tokenizer put 1 before the text; the tokens give back the text byte for byte"
    assert note == told


@pytest.mark.parametrize(
    ("template", "before"),
    [
        ("$A END", 0),
        ("END $A END", 1),
    ],
)
def test_what_the_tokenizer_puts_after_the_text_is_told(adding, template, before):
    answer = asked("tokens", SENTENCE, "--model", adding(template))
    assert answer["input"]["prepended"] == before
    assert answer["input"]["appended"] == 1
    assert "Nothing was added" not in answer["parts"][1]["text"]


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
