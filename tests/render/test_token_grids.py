"""Grids with a token in every cell, above its number, in every format."""

import csv
import io
import json
import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from rich.cells import cell_len

from gptscope.render import render
from gptscope.render.screen import Screen
from gptscope.view import Grid
from tests.helpers.views import LENS, NAN, grid, lines, view

SGR = re.compile(r"\x1b\[[0-9;]*m")

pytestmark = pytest.mark.usefixtures("plain_terminal")


def lens(n, word=" seven", **more):
    tokens = tuple(tuple(f"{word}{i}{j}" for j in range(n)) for i in range(2))
    values = np.arange(2 * n).reshape(2, n) / 100
    columns = tuple(f"c{i}" for i in range(n))
    return Grid("", ("one", "two"), columns, values, row_kind="text", tokens=tokens, **more)


def read_csv(part):
    text = render(view(part), "csv", Screen())
    return list(csv.reader(io.StringIO(text, newline="")))


# Terminals


def test_the_token_stands_above_its_number():
    assert lines(LENS) == [
        "a lens",
        "           0    1",
        "           a   \u00b7b",
        "layer 0   \u00b7b    \u21b5",
        "        0.50 0.12",
        "layer 1 \u6f22\u5b57",
        "        1.00    -",
    ]


def test_both_lines_have_the_colour_of_the_number(truecolor):  # noqa: ARG001
    text = render(view(LENS), "table", Screen())
    for shown in ("\u6f22\u5b57 ", "1.00 "):
        assert f"48;2;253;231;37m{shown}\x1b[0m" in text
    assert "never" not in text
    assert re.search(r"^0\.00 +1\.00$", SGR.sub("", text), re.MULTILINE)


def test_a_grid_without_tokens_is_as_it_was():
    assert lines(grid([[0.5]]))[1:] == ["        0", "       c0", "0 r0 0.50"]


@pytest.mark.parametrize("width", [12, 20, 30, 40, 60, 80, 200])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 13, 30])
def test_bands_show_every_token_once_and_in_order(n, width):
    shown = lines(lens(n, "x"), width=width)
    assert max(map(cell_len, shown)) <= width
    words = [word for line in shown for word in line.split() if word.startswith("x")]
    assert words == sorted(words, key=words.index)
    assert sorted(words) == sorted(f"x{i}{j}" for i in range(2) for j in range(n))
    numbers = [n for line in shown if re.match(r" +\d\.", line) for n in line.split()]
    assert sorted(numbers) == sorted(f"{value / 100:.2f}" for value in range(2 * n))


def test_long_tokens_are_cut_to_the_column():
    shown = lines(lens(2, " supercalifragilistic"))
    assert shown[2].split()[1:] == ["\u00b7supercali\u2026"] * 2
    assert (
        lines(lens(2, " supercalifragilistic"), unicode=False)[2].split()[1:] == ["~supercal.."] * 2
    )


def test_what_is_left_of_a_line_goes_to_the_tokens():
    """Where bands are needed they have columns of equal widths, no wider than the screen."""
    shown = lines(lens(13, " seven letters"), width=80)
    heads = [i for i, line in enumerate(shown) if re.match(r" +\d+( |$)", line)]
    assert [len(shown[i].split()) for i in heads] == [7, 6]
    assert {len(word) for word in shown[heads[0] + 2].split()[1:]} == {9}


@pytest.mark.parametrize(("n", "bands"), [(8, [8]), (9, [5, 4]), (17, [6, 6, 5])])
def test_no_column_is_left_alone(n, bands):
    shown = lines(lens(n, " abcd"), width=70)
    assert [len(line.split()) for line in shown if re.match(r" +\d+( |$)", line)] == bands


def test_a_row_label_is_written_once():
    shown = lines(lens(13), width=40)
    assert sum(line.startswith("one") for line in shown) == sum(
        line.startswith("two") for line in shown
    )
    assert all(line.startswith(" ") for line in shown if re.search(r"0\.\d\d", line))


@pytest.mark.parametrize("colours", [False, True])
def test_hidden_cells_have_no_token(colours, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR" if colours else "NO_COLOR", "1")
    hidden = np.array([[True, True], [False, True]])
    text = render(view(lens(2, "x", hidden=hidden)), "table", Screen())
    assert re.findall(r"x\d\d", text) == ["x10"]


def test_numbers_that_went_wrong_keep_their_token():
    part = Grid("", ("r",), ("c",), np.array([[NAN]]), tokens=((" tok",),))
    assert lines(part)[2:] == ["0 r \u00b7tok", "     nan"]


def test_control_characters_are_shown():
    part = Grid("", ("r",), ("c",), np.array([[0.5]]), tokens=(("\x1b[m\u202e",),))
    assert lines(part)[2].split()[2] == "<0x1B>[m<U\u2026"


# Files


def test_json_has_tokens_beside_values():
    (part,) = json.loads(render(view(LENS), "json", Screen()))["parts"]
    assert part["tokens"] == [[" b", "\n"], ["\u6f22\u5b57", None]]
    assert part["values"] == [[0.5, 0.125], [1.0, None]]


def test_csv_is_long():
    assert read_csv(LENS) == [
        ["row", "column", "position", "token", "value"],
        ["layer 0", "a", "0", " b", "0.5"],
        ["layer 0", " b", "1", "\n", "0.125"],
        ["layer 1", "a", "0", "\u6f22\u5b57", "1.0"],
        ["layer 1", " b", "1", "", ""],
    ]


@pytest.mark.parametrize(
    ("kinds", "head", "row"),
    [
        (("text", "text"), "row,column", "r,c"),
        (("token", "text"), "row,position,column", "r,4,c"),
        (("text", "token"), "row,column,position", "r,c,7"),
        (("token", "token"), "row,row position,column,column position", "r,4,c,7"),
    ],
)
def test_csv_has_the_positions_of_tokens(kinds, head, row):
    at = {"row_positions": (4,), "column_positions": (7,)}
    values = np.array([[0.5]])
    part = Grid("", ("r",), ("c",), values, "length", *kinds, tokens=(("t",),), **at)
    assert read_csv(part) == [[*head.split(","), "token", "value"], [*row.split(","), "t", "0.5"]]


def test_npz_has_the_tokens():
    with np.load(io.BytesIO(render(view(LENS), "npz", Screen())), allow_pickle=False) as arrays:
        names = ["a_lens", *(f"a_lens.{part}" for part in ("rows", "columns", "tokens", "hidden"))]
        assert list(arrays) == names
        assert arrays["a_lens.tokens"].tolist() == [[" b", "\n"], ["\u6f22\u5b57", ""]]


def test_markdown_has_the_token_before_the_number():
    rows = render(view(LENS), "markdown", Screen()).split("\n")[-3:-1]
    assert rows == [
        "| layer 0 | `\u00b7b` 0.50 | `\u21b5` 0.12 |",
        "| layer 1 | `\u6f22\u5b57` 1.00 | - |",
    ]


def test_html_has_both_on_the_colour():
    root = ET.fromstring(render(view(LENS), "html", Screen()))  # noqa: S314
    cells = root.findall(".//tbody/tr/td")
    assert [(one.get("class"), one.get("title")) for one in cells] == [
        ("number step s32", "\u00b7b"),
        ("number step s8", "\u21b5"),
        ("number step s64", "\u6f22\u5b57"),
        ("number hidden", None),
    ]
    assert ["".join(one.itertext()) for one in cells] == [
        *("\u00b7b 0.50", "\u21b5 0.12", "\u6f22\u5b57 1.00", "-")
    ]


@pytest.mark.parametrize("text", ["<script>", "' onclick='x", '" title="x', "\x1b[31m"])
def test_html_escapes_tokens(text):
    part = Grid("", ("r",), ("c",), np.array([[0.5]]), tokens=((text,),))
    (cell,) = ET.fromstring(render(view(part), "html", Screen())).findall(".//tbody/tr/td")  # noqa: S314
    shown = text.replace("\x1b", "<0x1B>").replace(" ", "\u00b7")
    assert (cell.get("title"), cell.find("span").text) == (shown, shown)
    assert set(cell.keys()) == {"class", "title"}


def test_svg_has_the_tokens():
    assert "&#28450;" in render(view(LENS), "svg", Screen())
