import csv
import io
import json
import re
from collections import Counter
from functools import cache
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from rich.cells import cell_len

from gptscope import __version__
from gptscope.app import COMMANDS
from gptscope.glyphs import visible
from gptscope.render import BINARY, RENDERERS
from tests.helpers.cli import (
    SENTENCE,
    asked,
    beside_notes,
    needs,
    on_text,
    refused,
    run_cli,
    spawn,
    text_commands,
)
from tests.helpers.folders import GOLDEN

TEXT = "Lily wanted to"
PATCHED = ["--clean", "Lily saw a cat. The", "--corrupt", "Lily saw a dog. The"]
CALLS = {
    **{name: [name] for name in COMMANDS},
    **{name: [name, TEXT, *needs(name)] for name in text_commands()},
    "generate": ["generate", "-n", "4", TEXT],
    "params": ["params", "--d", "8", "--L", "2"],
    "weights": ["weights", "*h.0*"],
    "experiment mask": ["experiment mask", "--sentences", "9"],
    "check": ["check", "toy"],
    "diff": ["diff", "toy", "toy", "--ids", "1,2,5,1"],
    "neighbours": ["neighbours", "<id 384>", "<id 703>"],
    "steer": ["steer", "--from", "Tom was happy", "--to", "Tom was sad"],
}
VARIANTS = {
    "one score of heads": ["heads", "--score", "induction", SENTENCE],
    "one head": ["heads", "--layer", "1", "--head", "0", "--composition", SENTENCE],
    "heads in detail": ["heads", "--details", "--seeds", "0", SENTENCE],
    "all draws": ["generate", "-n", "4", "--steps", SENTENCE],
    "a story": ["generate", "-n", "4"],
    "one row": ["attention", "--token", "3", SENTENCE],
    "every head": ["attention", "--all", SENTENCE],
    "numbers": ["attention", "--numbers", SENTENCE],
    "ranks without the first": ["attention", "--no-first", "--scale", "rank", SENTENCE],
    "read most": ["attention", "--top", "2", SENTENCE],
    "rows added": ["attention", "--sum", "1,2", SENTENCE],
    "the last two": ["attention", "--head", "0", "--last", "2", SENTENCE],
    "scores": ["attention", "--stage", "scores", "--head", "1", SENTENCE],
    "dimensions": ["embeddings", "--dims", "0:4", SENTENCE],
    "every place": ["next", "--at", "all", SENTENCE],
    "settings": ["next", "--temperature", "0.7", "--top-k", "5", SENTENCE],
    "a card": ["tour", "--card", "softmax", SENTENCE],
    "a rotary tour": ["tour", "--model", str(GOLDEN / "toy-rotary"), "--ids", "1,2,3,4,5,6,7,8"],
    "another tour": ["tour", "--model", str(GOLDEN / "toy-post"), "--ids", "1,2,3"],
    "a weight": ["explain", SENTENCE, "layers.0.heads.1.weights[4,2]"],
    "a unit": ["explain", SENTENCE, "layers.2.mlp_act[-1,100]"],
    "a chance": ["explain", SENTENCE, "probabilities[5]", "--top-k", "4", "--top-p", "0.8"],
    "a computed table": ["positions", "--model", "toy"],
    "numbers of positions": ["positions", "--dims", "0:4", "--first", "30"],
    "a preset": ["params", "--preset", "gpt2", "--untied"],
    "a counted model": ["params", "--model", "tiny"],
    "a rotary model": ["info", str(GOLDEN / "toy-rotary")],
    "parts of a file": ["weights", "--by", "part", "--sort", "std", "--top", "5"],
    "what heads do": ["weights", "--svd", "--layer", "0"],
    "rows of a table": ["weights", "tiny", "--table", "tokens", "--top", "4"],
    "a check of tiny": ["check", "--no-conventions"],
    "tensors alone": ["diff", "tiny", "tiny"],
    "a sweep of layers": ["sweep", "--what", "mlp", "--with", "zero", "--metric", "kl", SENTENCE],
    "a sweep of the stream": ["sweep", "--what", "resid", "--metric", "prob", SENTENCE],
    "patches": ["sweep", *PATCHED, "--what", "resid", "--direction", "both"],
    "a path": ["sweep", *PATCHED, "--from", "layers.0.mlp", "--to", "layers.3.heads.1.v"],
    "paths": ["sweep", "--from", "layers.*.heads.*", "--to", "layers.2:.mlp", SENTENCE],
    "ids": ["tokens", "--ids", "643,163,0"],
    "the worst tokens": ["surprise", "--top", "2", "--bos", SENTENCE],
    "a text in windows": [
        "surprise",
        "--window",
        "3",
        "--overlap",
        "2",
        "--range",
        "1:4",
        SENTENCE,
    ],
    "two models on a text": ["surprise", "--against", "llama-tiny", SENTENCE],
    "the same ids for two models": ["surprise", "--against", "toy", "--ids", "3,4,5,6"],
    "units of a layer": ["neurons", "--layer", "0", "--answer", "<id 384>", SENTENCE],
    "a hidden unit": ["neurons", "--layer", "2", "--unit", "204", SENTENCE],
    "a sum of tokens": ["neighbours", "--centre", "--by", "dot", "<id 384> - <id 462> + <id 494>"],
    "parts in order": ["attribute", "--answer", " toys", "--sort", "order", SENTENCE],
    "a difference by head": [
        *("attribute", "--answer", " toys", "--against", " doll", "--by", "head", SENTENCE)
    ],
    "parts by layer": ["attribute", "--by", "layer", SENTENCE],
    "parts by feed forward": ["attribute", "--by", "mlp", SENTENCE],
    "parts by unit": ["attribute", "--by", "neuron", "--top", "3", SENTENCE],
    "parts by token": ["attribute", "--by", "source", SENTENCE],
    "what a head reads": ["attribute", "--by", "source", "-l", "2", "-H", "1", SENTENCE],
    "a lens of one token": ["lens", "--at", "2", "--answer", "<id 5>", SENTENCE],
    "what an edit does to an answer": [
        *("compare", "--edit", "layers.2.heads.1.out[3:]=zero", "--at", "4"),
        *("--answer", "<id 384>", "--against", "<id 703>", SENTENCE),
    ],
    "an edit that does nothing": ["compare", "--edit", "layers.0.output=*1", SENTENCE],
    "a direction of pairs": [
        *("steer", "--from", "Tom was happy", "--from", "Lily felt very happy"),
        *("--to", "Tom was sad", "--to", "Lily felt very sad", "--layer", "2", "--tokens", "all"),
    ],
    "a direction in a head": [
        *("steer", "--from", "her", "--to", "his", "--to", "its", "--value", "heads.1.out")
    ],
    "ranks of every state": ["lens", "--mid", "--show", "rank", SENTENCE],
}
PLAIN = {"trace", "tokens", "generate", "explain", "models", "experiment order", "check", "weights"}
COLOURED = set(COMMANDS) - PLAIN
COLOURS = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"}
PLACES = {
    "pipe": ({}, "utf-8"),
    "40 columns": ({"COLUMNS": "40"}, "utf-8"),
    "no colour": ({"NO_COLOR": "1"}, "utf-8"),
    "colours": (COLOURS, "utf-8"),
    "light": ({"COLORFGBG": "0;15", **COLOURS}, "utf-8"),
    "dumb": ({"TERM": "dumb"}, "utf-8"),
    "ascii": ({}, "ascii"),
    "cp1252": ({}, "cp1252"),
}
TEXT_COMMANDS = text_commands()
TEXTS = [fmt for fmt in RENDERERS if fmt not in BINARY]
SGR = re.compile(r"\x1b\[[0-9;]*m")
CONTROL = re.compile(
    r"[^\n\x20-\x7e\xa0-\U0010ffff]|[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
ENVELOPE = ["schema", "gptscope", "command", "model", "input", "edits", "parts"]
KEYS = {
    "grid": ["kind", "title", "rows", "columns", "values"],
    "sheet": ["kind", "title", "columns", "grids"],
    "table": ["kind", "title", "columns", "rows"],
    "facts": ["kind", "title", "facts"],
    "note": ["kind", "text"],
    "passage": ["kind", "title", "tokens", "values"],
}
FORMULA = ("=", "+", "-", "@")
FED = {  # what is told beside running text
    "generate": "tiny \u00b7 3 tokens: 643 414 266 (nothing prepended)\n",
    "a story": "tiny \u00b7 1 token: 0 (1 prepended)\n",
}
STOPPED = "stopped: as many tokens as were asked for\n"
COLOUR = re.compile(r"\x1b\[[0-9;]*(3[0-8]|4[0-8]|9\d|10\d)")


@cache
def ran(call, fmt, place="pipe"):
    command, *rest = (CALLS | VARIANTS)[call]
    env, encoding = PLACES[place]
    return run_cli([command, "--format", fmt, *rest], env=env, encoding=encoding)


def streamed(call, fmt):
    return fmt == "table" and call in FED


def told(call, fmt, encoding="utf-8"):
    text = FED[call] + STOPPED if streamed(call, fmt) else ""
    return text.replace("\u00b7", "~") if encoding == "ascii" else text


def given(command, fmt, text, **place):
    few = ["-n", "2"] if command == "generate" else []
    name, *rest = on_text(command, text)
    return run_cli([name, "--format", fmt, *few, *rest], **place)


def blocks(text):
    found = [[]]
    for row in csv.reader(io.StringIO(text, newline=""), strict=True):
        if row:
            found[-1].append(row)
        else:
            found.append([])
    return found


def cells(text):
    return [cell for block in blocks(text) for row in block for cell in row]


def body(block):
    return block[1:] if len(block[0]) == 1 else block  # a title stands alone in its row


def is_number(cell):
    try:
        float(cell)
    except ValueError:
        return False
    return True


def words(svg):
    return [text.replace("\xa0", " ") for text in ET.fromstring(svg).itertext()]  # noqa: S314


# Everywhere


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fmt", TEXTS)
@pytest.mark.parametrize("call", CALLS)
def test_only_the_answer_is_written(call, fmt, place):
    result = ran(call, fmt, place)
    assert result.status == 0
    assert result.err == told(call, fmt, PLACES[place][1])
    assert result.text.endswith("\n")
    coloured = fmt == "table" and place in ("colours", "light")
    assert CONTROL.findall(SGR.sub("", result.text) if coloured else result.text) == []


@pytest.mark.parametrize("fmt", TEXTS)
@pytest.mark.parametrize("call", VARIANTS)
def test_only_the_answer_is_written_with_options(call, fmt):
    result = ran(call, fmt)
    assert (result.status, result.err) == (0, told(call, fmt))
    assert CONTROL.findall(result.text) == []


@pytest.mark.parametrize("fmt", RENDERERS)
@pytest.mark.parametrize("call", CALLS)
def test_same_input_same_bytes(call, fmt):
    command, *rest = CALLS[call]
    assert run_cli([command, "--format", fmt, *rest]) == ran(call, fmt)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("call", CALLS)
def test_numbers_do_not_depend_on_the_place(call, place):
    assert ran(call, "json", place).out == ran(call, "json").out
    if PLACES[place][1] == "utf-8":
        assert ran(call, "csv", place).out == ran(call, "csv").out


# A terminal

LONG = "Lily wanted to play with her dog and they ran to the park to see a big red ball"


@pytest.mark.parametrize("call", [*CALLS, *VARIANTS])
def test_nothing_is_wider_than_the_screen(call):
    result = ran(call, "table", "40 columns")
    if not streamed(call, "table"):  # running text, which the terminal breaks
        assert [line for line in result.lines if cell_len(line) > 40] == []


NUMBERED = {"attention": ["--numbers"]}
GRIDS = {"tokens": 0, "attention": 4, "residual": 2}


def bands(result):
    return [line for line in result.lines if re.fullmatch(r" +\d+( +\d+)*", line)]


@pytest.mark.parametrize("command", ["tokens", "attention", "residual"])
def test_a_pipe_has_no_edge(command):
    result = run_cli([command, LONG, *NUMBERED.get(command, [])])
    assert max(map(cell_len, result.lines)) > (80 if command == "residual" else 60)
    assert len(bands(result)) == GRIDS[command]


@pytest.mark.parametrize("command", ["tokens", "attention", "residual"])
def test_a_long_text_is_not_wider_than_the_screen(command):
    result = run_cli([command, LONG, *NUMBERED.get(command, [])], env={"COLUMNS": "40"})
    assert [line for line in result.lines if cell_len(line) > 40] == []
    assert (len(bands(result)) > GRIDS[command]) == (command != "tokens")


@pytest.mark.parametrize("command", ["attention", "residual"])
def test_a_narrow_screen_shows_every_number(command):
    args = [command, LONG, *NUMBERED.get(command, [])]
    wide, narrow = run_cli(args), run_cli(args, env={"COLUMNS": "40"})
    shown = Counter(re.findall(r"\d+\.\d+", narrow.text))
    assert shown == Counter(re.findall(r"\d+\.\d+", wide.text))
    assert sum(shown.values()) > 100
    places = [place for line in bands(narrow) for place in map(int, line.split())]
    heads = [place for line in bands(wide) for place in map(int, line.split())]
    assert places == heads


@pytest.mark.parametrize("call", ["attention", "tokens", "params"])
def test_nothing_is_wider_than_a_dumb_terminal(call):
    command, *rest = CALLS[call]
    result = run_cli([command, *rest], env={"TERM": "dumb", "COLUMNS": "40"}, terminal=True)
    assert "\x1b" not in result.text
    assert [line for line in result.lines if cell_len(line) > 40] == []


@pytest.mark.parametrize(
    ("call", "number"),
    [
        (["norms", SENTENCE], "0.4105"),
        (["params", "--d", "768", "--L", "12"], "28,348,416"),
        (["models"], "1,334,016"),
    ],
)
def test_numbers_stay_whole_on_a_narrow_screen(call, number):
    assert number in run_cli(call, env={"COLUMNS": "40"}).text


@pytest.mark.parametrize("call", CALLS)
def test_colours_come_only_where_they_are_wanted(call):
    assert call in COLOURED or call in PLAIN
    coloured = call in COLOURED
    assert ("\x1b[38;2;" in ran(call, "table", "colours").text) == coloured
    for place in ("pipe", "no colour", "dumb"):
        assert "\x1b" not in ran(call, "table", place).text


@pytest.mark.parametrize("call", CALLS)
def test_no_color_wins_over_force_color(call):
    command, *rest = CALLS[call]
    result = run_cli([command, *rest], env={**COLOURS, "NO_COLOR": "1"})
    assert COLOUR.search(result.text) is None


@pytest.mark.parametrize("call", CALLS)
def test_the_option_no_color_is_the_same_as_the_variable(call):
    command, *rest = CALLS[call]
    result = run_cli([command, "--no-color", *rest], env=COLOURS, terminal=True)
    assert (result.status, COLOUR.search(result.text)) == (0, None)
    assert result == run_cli([command, *rest], env={**COLOURS, "NO_COLOR": "1"}, terminal=True)


@pytest.mark.parametrize("fmt", [fmt for fmt in RENDERERS if fmt != "table"])
@pytest.mark.parametrize("call", CALLS)
def test_no_color_changes_nothing_but_a_table(call, fmt):
    command, *rest = CALLS[call]
    result = run_cli([command, "--no-color", "--format", fmt, *rest], env=COLOURS)
    assert result == ran(call, fmt)


@pytest.mark.parametrize("name", ["attention", "embeddings"])
def test_no_color_holds_for_a_file_as_well(name, tmp_path):
    path = tmp_path / "a.txt"
    result = run_cli([*CALLS[name], "--no-color", "-o", str(path)], env=COLOURS)
    assert (result.status, result.err) == (0, "")
    assert COLOUR.search(path.read_text("utf-8")) is None


@pytest.mark.parametrize("place", ["ascii", "cp1252"])
@pytest.mark.parametrize("call", CALLS)
def test_the_program_draws_with_what_the_encoding_has(call, place):
    assert "\\" not in ran(call, "table", place).text


def test_a_coloured_strip_in_ascii_is_drawn():
    result = run_cli(CALLS["embeddings"], env=COLOURS, encoding="ascii")
    assert "\\" not in result.text


# JSON


@pytest.mark.parametrize("call", [*CALLS, *VARIANTS])
def test_json_is_one_envelope(call):
    answer = json.loads(ran(call, "json").out)
    command = (CALLS | VARIANTS)[call][0]
    assert list(answer) == ENVELOPE
    assert (answer["gptscope"], answer["command"]) == (__version__, command)
    assert answer["schema"] == "gptscope/view/2"
    words = (CALLS | VARIANTS)[call]
    assert answer["edits"] == [b for a, b in pairwise(words) if a == "--edit"]
    assert ran(call, "json").text.count("\n") == 1
    if command in TEXT_COMMANDS:
        args = (CALLS | VARIANTS)[call]
        folder = args[args.index("--model") + 1] if "--model" in args else "tiny"
        assert answer["model"]["name"] == Path(folder).name
        assert sorted(answer["input"]) == ["appended", "ids", "prepended", "text", "tokens"]
        assert len(answer["input"]["ids"]) == len(answer["input"]["tokens"])


@pytest.mark.parametrize("call", [*CALLS, *VARIANTS])
def test_json_parts_have_the_documented_keys(call):
    parts = json.loads(ran(call, "json").out)["parts"]
    assert parts
    for part in parts:
        some = ("row_positions", "column_positions", "tokens") if part["kind"] == "grid" else ()
        assert [key for key in part if key not in (*some, "name")] == KEYS[part["kind"]]
        if part["kind"] == "grid":
            assert {len(row) for row in part["values"]} == {len(part["columns"])}
            assert len(part["values"]) == len(part["rows"])
        if part["kind"] == "table":
            assert all(list(column) == ["name", "kind"] for column in part["columns"])
            names = [column["name"] for column in part["columns"]]
            assert all(list(row) == names for row in part["rows"])


# CSV


@pytest.mark.parametrize("call", [*CALLS, *VARIANTS])
def test_csv_rows_of_a_block_are_equally_long(call):
    for block in blocks(ran(call, "csv").text):
        assert len(body(block)) >= 2
        assert {len(row) for row in body(block)} == {len(body(block)[0])}


@pytest.mark.parametrize("command", TEXT_COMMANDS)
@pytest.mark.parametrize("text", ["=1+1", "-x", "@cmd", "+x"])
def test_no_csv_cell_is_a_formula(command, text):
    cells = [c for block in blocks(given(command, "csv", text).text) for row in block for c in row]
    assert [c for c in cells if c.startswith(FORMULA) and not is_number(c)] == []


@pytest.mark.parametrize("text", ["=1+1", "-x", "@cmd", "+x"])
def test_a_formula_in_csv_is_text(text):
    cells = [c for block in blocks(given("tokens", "csv", text).text) for row in block for c in row]
    assert any(c.startswith(f"'{text[0]}") for c in cells)


# SVG


@pytest.mark.parametrize("place", [p for p in PLACES if p not in ("ascii", "cp1252")])
@pytest.mark.parametrize("call", CALLS)
def test_svg_is_a_picture_by_itself(call, place):
    result = ran(call, "svg", place)
    root = ET.fromstring(result.out)  # noqa: S314 - what this program wrote
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert result.text.count("http") == 1
    assert "url(" not in result.text.replace("url(#", "")
    seen = "".join(words(result.out))
    assert f"gptscope {CALLS[call][0]}" in seen
    if place != "40 columns":
        others = {"params": "part", "experiment mask": "entropy", "check": "toy", "diff": "toy"}
        assert others.get(call, "tiny") in seen
        assert result.out == ran(call, "svg").out


@pytest.mark.parametrize("place", ["ascii", "cp1252"])
@pytest.mark.parametrize("call", ["tokens", "embeddings", "attention"])
def test_svg_says_the_same_in_every_encoding(call, place):
    assert words(ran(call, "svg", place).out) == words(ran(call, "svg").out)


# Hostile text

HARMLESS = [
    "[bold]x[/bold]",
    "[/items]",
    ":smile:",
    "list[str]",
    "close [/] now",
    "a\\[b",
    "x\u202ey\u2066",
    "https://x",
    "\U0001f469\u200d\U0001f469\u200d\U0001f467 \u2764\ufe0f e\u0301",
    "\u6f22\u5b57\u304b\u306a\u4ea4\u3058\u308a",
    "\u2028\ufeff",
    "</text><script>&amp;",
    "\n\n",
    '",\n"',
]
CONTROLS = ["a\x1b[31mred\x1b]0;t\x07", "one\rtwo", "tab\there", "nul\x00x", "\x7f\x9b31m"]
EVERYTHING = "[/b] \u202e\u6f22<a>\n"


def check_pure(result, fmt):
    assert (result.status, beside_notes(result.err)) == (0, [])
    if fmt in BINARY:
        np.load(io.BytesIO(result.out), allow_pickle=False).close()
        return
    assert CONTROL.findall(result.text) == []
    if fmt == "json":
        json.loads(result.out)
    if fmt in ("svg", "html"):
        ET.fromstring(result.out)  # noqa: S314
    if fmt == "csv":
        for block in blocks(result.text):
            assert {len(row) for row in body(block)} == {len(body(block)[0])}


@pytest.mark.parametrize("text", HARMLESS + CONTROLS, ids=ascii)
@pytest.mark.parametrize("fmt", RENDERERS)
def test_hostile_text_is_shown_not_sent(text, fmt):
    check_pure(given("tokens", fmt, text, env={"COLUMNS": "40"}), fmt)


@pytest.mark.parametrize("fmt", RENDERERS)
@pytest.mark.parametrize("command", [name for name in TEXT_COMMANDS if name != "generate"])
def test_every_command_takes_hostile_text(command, fmt):
    check_pure(given(command, fmt, EVERYTHING), fmt)


@pytest.mark.parametrize("command", TEXT_COMMANDS)
def test_no_line_of_hostile_text_is_wider_than_the_screen(command):
    few = ["-n", "2", "--steps"] if command == "generate" else []
    name, *rest = on_text(command, EVERYTHING)
    result = run_cli([name, *few, *rest], env={"COLUMNS": "40"})
    assert [line for line in result.lines if cell_len(line) > 40] == []


@pytest.mark.parametrize("text", HARMLESS + CONTROLS, ids=ascii)
def test_json_has_the_text_as_it_was_given(text):
    answer = asked("tokens", "--", text)
    assert answer["input"]["text"] == text
    pieces = answer["parts"][0]["rows"]
    assert bytes.fromhex("".join(row["bytes"] for row in pieces)).decode() == text


@pytest.mark.parametrize("text", HARMLESS + CONTROLS, ids=ascii)
def test_running_text_begins_with_the_text_made_safe(text):
    result = given("generate", "table", text)
    assert result.text.startswith(visible(text, keep="\n"))
    assert CONTROL.findall(result.text) == []


@pytest.mark.parametrize("command", TEXT_COMMANDS)
def test_bytes_that_are_no_text_are_refused(command):
    sentence, _ = refused(given(command, "table", "ab\udcff"), 2)
    assert sentence == "character 2 of the text (U+DCFF) is not valid Unicode"


# Numbers that are none

BROKEN = {  # those that read a block
    "norms": [],
    "attention": ["--layer", "-1"],
    "mlp": ["--layer", "-1"],
    "residual": [],
    "lens": [],
    "surprise": [],
}


def numbers_in(value):
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return [n for v in inner for n in numbers_in(v)]
    return [value]


def on_broken(folder, value, command, fmt, *options):
    gain = np.full(16, value, "float32")
    path = str(folder(tensors={"transformer.h.1.ln_1.weight": gain}))
    return run_cli([command, "--model", path, "--ids", "3,1", "--format", fmt, *options])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("fmt", RENDERERS)
@pytest.mark.parametrize("command", BROKEN)
def test_a_broken_model_is_shown(folder, command, fmt, value):
    result = on_broken(folder, value, command, fmt, *BROKEN[command])
    check_pure(result, fmt)
    assert result.err.startswith("warning: tensor transformer.h.1.ln_1.weight of ")
    assert result.err.endswith(" holds NaN or infinite numbers\n")


@pytest.mark.parametrize("command", ["norms", "attention", "mlp", "residual", "lens"])
def test_a_number_that_went_wrong_is_not_nothing(folder, command):
    def answer(fmt):
        return on_broken(folder, np.nan, command, fmt, *BROKEN[command])

    parts = json.loads(answer("json").out)["parts"]
    assert "NaN" in numbers_in(parts)
    assert (None in numbers_in(parts)) == (command == "attention")  # what is masked
    assert "nan" in cells(answer("csv").text)
    assert re.search(r"\bnan\b", answer("table").text)


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("call", [["next"], ["next", "--at", "all"], ["generate"]], ids=" ".join)
def test_nothing_is_drawn_from_a_broken_model(folder, call, value):
    command, *options = call
    said, _ = refused(on_broken(folder, value, command, "json", *options), 1)
    assert said.startswith("the logits hold NaN or infinity")


# A process of its own


@pytest.mark.parametrize(
    ("call", "encoding"), [("generate", "utf-8"), ("tokens", "ascii"), ("params", "cp1252")]
)
def test_a_process_writes_the_same(call, encoding):
    there, here = spawn(CALLS[call], encoding=encoding), run_cli(CALLS[call], encoding=encoding)
    assert there == here


@pytest.mark.parametrize("fmt", RENDERERS)
def test_a_process_writes_every_format(fmt):
    assert spawn([*CALLS["attention"], "--format", fmt]) == ran("attention", fmt)


def test_a_process_refuses_bytes_that_are_no_text():
    sentence, _ = refused(spawn(["tokens", b"\xff"]), 2)
    assert sentence == "character 0 of the text (U+DCFF) is not valid Unicode"
