import json
import os
import re
import shutil
import sys
import threading

import pytest

import gptscope
from gptscope.commands.reading import LONGEST
from gptscope.commands.session import Run
from gptscope.model.shipped import shipped_folders
from tests.helpers.cli import Result, refused, run_cli, spawn
from tests.helpers.families import family_folder

QUOTES = "\u201cLily\u201d said\u2026"
MAPPED = '"Lily" said...'


def told(text, *more):
    result = run_cli(["tokens", *more, "--format", "json", "--", text])
    assert result.status == 0
    return json.loads(result.out), result.err.splitlines()


# Text that the model never saw


def test_what_training_mapped_is_mapped_and_told():
    answer, lines = told(QUOTES)
    assert answer["input"]["text"] == MAPPED
    pairs = "\u201c (U+201C) to '\"', \u201d (U+201D) to '\"', \u2026 (U+2026) to '...'"
    assert lines == [f"mapped as in the training of tiny: 3 characters: {pairs}"]
    plain, silent = told(MAPPED)
    assert plain == answer
    assert silent == []


def test_places_are_those_of_the_text_that_was_fed():
    answer, _ = told(QUOTES)
    table, note = answer["parts"]
    fed = answer["input"]["text"].encode()
    for row in table["rows"]:
        assert fed[row["start"] : row["end"]].hex(" ") == row["bytes"]
    assert note["text"] == "Nothing was added; the tokens give back the text byte for byte"


def test_one_character_is_one():
    assert told("a\u00a0b")[1] == ["mapped as in the training of tiny: 1 character: U+00A0 to ' '"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("caf\u00e9", "\u00e9 (U+00E9)"),
        ("[bold]", "[ (U+005B), ] (U+005D)"),
        ("a\tb", "U+0009"),
        ("\x1b[31m", "U+001B, [ (U+005B)"),
        ("nul\x00", "U+0000"),
        ("x\u202ey", "U+202E"),
        ("\U0001f600", "\U0001f600 (U+1F600)"),
        ("\u00e9\u00e9\u00e8", "\u00e9 (U+00E9), \u00e8 (U+00E8)"),
        (
            "#%&()*+<>@",
            ", ".join(f"{c} (U+{ord(c):04X})" for c in "#%&()*+<") + " and 2 more",
        ),
    ],
    ids=ascii,
)
def test_what_never_occurred_is_named_and_still_shown(text, named):
    answer, lines = told(text)
    assert lines == [f"warning: tiny never saw: {named}"]
    assert answer["input"]["text"] == text


@pytest.mark.parametrize("text", ["Lily said hi.\n", "<|endoftext|>", "<|endoftext|>Lily"])
def test_what_occurred_is_not_spoken_of(text):
    assert told(text)[1] == []


def test_both_are_told_in_order():
    _, lines = told("\u2013\u00e9")
    assert [line.split(":")[0] for line in lines] == [
        "mapped as in the training of tiny",
        "warning",
    ]


def test_ids_and_stories_are_not_spoken_of():
    assert run_cli(["tokens", "--ids", "67"]).err == ""
    assert "never saw" not in run_cli(["generate", "-n", "1"]).err


def test_a_folder_that_says_nothing_leaves_the_text_alone(tmp_path):
    path = shutil.copytree(shipped_folders()["tiny"], tmp_path / "model")
    (path / "text.json").unlink()
    answer, lines = told(QUOTES, "-m", str(path))
    assert (answer["input"]["text"], lines) == (QUOTES, [])


def test_a_model_is_asked_by_its_folder_or_its_file(tmp_path):
    path = shutil.copytree(shipped_folders()["tiny"], tmp_path / "mine")
    for name in (path, path / "model.safetensors"):
        answer, lines = told(QUOTES, "-m", str(name))
        assert answer["input"]["text"] == MAPPED
        assert lines[0].startswith("mapped as in the training of mine: 3")


@pytest.mark.parametrize("fmt", ["table", "json", "csv", "svg"])
def test_notes_do_not_reach_standard_output(fmt):
    mapped = run_cli(["attention", QUOTES, "--head", "0", "-f", fmt])
    plain = run_cli(["attention", MAPPED, "--head", "0", "-f", fmt])
    assert mapped.out == plain.out
    assert mapped.err


# Where the text comes from


def from_file(path, content):
    path.write_bytes(content)
    return run_cli(["tokens", "--file", str(path), "--format", "json"])


def test_a_file_is_read_as_it_is(tmp_path):
    result = from_file(tmp_path / "a", b"Lily\r\nsaid")
    assert json.loads(result.out)["input"]["text"] == "Lily\r\nsaid"


@pytest.mark.parametrize("content", [b"a\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80"])
def test_what_is_not_utf_8_is_refused(tmp_path, content):
    said, _ = refused(from_file(tmp_path / "a", content), 1)
    assert said.startswith(f"{tmp_path / 'a'} is not UTF-8 text: 'utf-8' codec can't decode")


@pytest.mark.parametrize("text", ["\ud800", "a\udcff", "\ud83d x"], ids=ascii)
def test_half_a_character_is_refused(text):
    said, _ = refused(run_cli(["tokens", "--", text]), 2)
    assert "is not valid Unicode" in said


def test_a_text_of_ten_megabytes_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "a"
    with path.open("wb") as stream:
        stream.truncate(10_000_000)
    for result in (
        run_cli(["tokens", "--file", str(path)]),
        run_cli(["tokens", "--file", "-"], stdin=b"a" * (LONGEST + 1)),
        run_cli(["tokens", "a" * (LONGEST + 1)]),
        run_cli(["tokens", "\u00e9" * (LONGEST // 2 + 1)]),
    ):
        said, hint = refused(result, 2)
        assert said == "the text is longer than 1,000,000 bytes, and is not read"
        assert "head -c" in hint


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="needs such a device")  # noqa: PTH110
def test_a_device_without_end_is_refused():
    refused(run_cli(["tokens", "--file", "/dev/zero"]), 2)


def test_a_long_text_is_listed():
    text = ("Lily wanted to play with her " * 4000).encode()
    result = run_cli(["tokens", "--file", "-", "-f", "csv"], stdin=text)
    assert (result.status, result.out.count(b"\n")) == (0, 24_002)


def test_a_name_of_a_file_that_is_too_long():
    refused(run_cli(["tokens", "--file", "x" * 5000]), 1)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pipe with a name")
def test_a_pipe_is_read(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(b"Lily",))
    writer.start()
    result = run_cli(["tokens", "--file", str(path), "-f", "json"])
    writer.join()
    assert json.loads(result.out)["input"]["text"] == "Lily"


def test_as_a_process_of_its_own():
    result = spawn(["tokens", QUOTES + "\u00e9", "-f", "csv"])
    assert isinstance(result, Result)
    assert result.err.splitlines()[1] == "warning: tiny never saw: \u00e9 (U+00E9)"
    assert result.out.startswith(b"position,id")


def test_notes_survive_an_encoding_that_lacks_their_characters():
    result = spawn(["tokens", QUOTES + "\u00e9", "-f", "csv"], encoding="ascii")
    assert "never saw: <U+00E9> (U+00E9)" in result.err
    assert result.status == 0


# --verbose


def test_verbose_says_what_was_done_and_how_long_it_took():
    quiet = run_cli(["next", "Lily wanted"])
    told = run_cli(["next", "Lily wanted", "--verbose"])
    assert (told.status, told.out, quiet.err) == (0, quiet.out, "")
    loaded, read, ran = told.err.splitlines()
    assert re.fullmatch(r"loaded tiny: gpt2, 1,334,016 parameters, \d+\.\d ms", loaded)
    assert re.fullmatch(r"read the input: 2 tokens, \d+\.\d ms", read)
    assert re.fullmatch(r"ran 4 blocks in float32: 1 value kept, \d+\.\d ms", ran)


def test_verbose_names_a_hostile_folder_safely(folder):
    model = folder().rename(folder().parent / "a\x1b[31mb")
    told = run_cli(["tokens", "--ids", "1,2", "--model", str(model), "-v"])
    assert "\x1b" not in told.err
    assert told.err.startswith("loaded a<0x1B>[31mb: gpt2, ")


@pytest.mark.parametrize(
    ("args", "last"),
    [
        (["positions", "--model", "toy"], "loaded toy: toy, 1,856 parameters"),
        (["params", "--model", "toy"], "loaded toy: toy, 1,856 parameters"),
        (["experiment mask", "--sentences", "9"], "measured 9 different sentences in four ways"),
        (["generate", "-n", "3"], "drew 3 tokens"),
        (["generate", "-n", "3", "--steps"], "drew 3 tokens"),
    ],
    ids=str,
)
def test_what_loads_a_model_can_say_so(args, last):
    told = run_cli([*args, "--verbose"])
    assert told.status == 0
    assert re.fullmatch(rf"{last}, \d+\.\d ms", told.err.splitlines()[-1])
    assert " ms" not in run_cli(args).err


# A token in words


def test_a_place_is_a_position_and_its_token(tiny, ids):
    run = Run(tiny, tuple(ids), None)
    assert [run.place(i) for i in (0, 5)] == ["token 0 Lily", "token 5 \u00b7her"]


def test_without_a_tokenizer_it_is_an_id():
    run = Run(gptscope.load(family_folder("gpt2")), (3, 1), None)
    assert run.place(1) == "token 1 <id 1>"
