import os
import re
import subprocess
import sys
import time
import unicodedata
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from gptscope.glyphs import UNSAFE, UNSEEN, UNSURE, has, token_glyphs
from gptscope.render.palette import SCALES, numbered
from gptscope.render.screen import Screen
from gptscope.render.terminal import render
from gptscope.render.terminal.__main__ import gallery
from gptscope.render.terminal.__main__ import main as show_gallery
from gptscope.view import Column, Facts, Grid, Note, Passage, Sheet, Table, View
from tests.helpers.views import EVERYTHING, GRID, INF, INPUT, KINDS, NAN, NOTE, grid, lines, view

SGR = re.compile(r"\x1b\[[0-9;]*m")
FIRST = " ".join(map(str, range(24)))
WIDE_TOKENS = ("\u6f22\u5b57", " a", "e\u0301", "\U0001f469", "\n")


pytestmark = pytest.mark.usefixtures("plain_terminal")


@pytest.fixture
def few_colours(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")


def table(kind, *values):
    return Table("", (Column("x", kind), Column("end")), [(value, "|") for value in values])


def cells_before(line, mark):
    return cell_len(line[: line.index(mark)])


# What was fed


def fed(ids, prepended=0, appended=0, name="m"):
    given = {"ids": ids, "prepended": prepended, "appended": appended}
    return render(View("test", (), {"name": name}, given), Screen(200)).strip()


@pytest.mark.parametrize(
    ("ids", "around", "told"),
    [
        ([5], (0, 0), "m \u00b7 1 token: 5 (nothing prepended)"),
        ([5, 6], (1, 0), "m \u00b7 2 tokens: 5 6 (1 prepended)"),
        ([5, 6], (0, 1), "m \u00b7 2 tokens: 5 6 (nothing prepended, 1 appended)"),
        ([5, 6], (1, 1), "m \u00b7 2 tokens: 5 6 (1 prepended, 1 appended)"),
        (range(24), (0, 0), f"m \u00b7 24 tokens: {FIRST} (nothing prepended)"),
        (range(30), (0, 0), f"m \u00b7 30 tokens: {FIRST} \u2026 (nothing prepended)"),
    ],
)
def test_what_was_fed_is_told(ids, around, told):
    assert fed(list(ids), *around) == told


def test_a_name_is_not_sent_to_the_terminal():
    assert fed([1], name="[bold]\x1b[31m").startswith("[bold]<0x1B>[31m \u00b7 1 token")


# Grids


def test_a_grid_has_numbers_and_labels():
    later = np.array([[False, True], [False, False]])
    shown = lines(
        grid([[1.0, 0.5], [0.25, 0.75]], ["Lily", " ran"], ["Lily", " ran"], hidden=later)
    )
    assert shown == [
        "a grid",
        "          0    1",
        "       Lily \u00b7ran",
        "0 Lily 1.00    -",
        "1 \u00b7ran 0.25 0.75",
    ]


def test_a_grid_that_does_not_fit_goes_on_in_bands():
    assert lines(grid([[0.5] * 5, [0.25] * 5]), width=20) == [
        "a grid",
        "        0    1    2",
        "       c0   c1   c2",
        "0 r0 0.50 0.50 0.50",
        "1 r1 0.25 0.25 0.25",
        "",
        "        3    4",
        "       c3   c4",
        "0 r0 0.50 0.50",
        "1 r1 0.25 0.25",
    ]


def test_a_band_leaves_out_rows_where_all_is_hidden():
    later = np.triu(np.ones((4, 4), bool), 1)
    part = grid(np.full((4, 4), 0.5), hidden=later)
    assert lines(part, width=15) == [
        "a grid",
        "        0    1",
        "       c0   c1",
        "0 r0 0.50    -",
        "1 r1 0.50 0.50",
        "2 r2 0.50 0.50",
        "3 r3 0.50 0.50",
        "",
        "        2    3",
        "       c2   c3",
        "2 r2 0.50    -",
        "3 r3 0.50 0.50",
    ]


def test_a_row_of_numbers_that_went_wrong_is_not_left_out():
    assert lines(grid([[NAN, NAN], [0.5, 0.5]]))[3] == "0 r0  nan  nan"


@pytest.mark.parametrize("width", [12, 20, 40, 41, 44, 200])
@pytest.mark.parametrize("n", range(1, 30))
def test_bands_show_every_column_once_and_in_order(n, width):
    values = np.arange(n) / 100
    shown = lines(grid([values]), width=width)
    assert max(map(cell_len, shown)) <= width
    heads = [i for i, line in enumerate(shown) if re.match(r" +\d", line)]
    assert [int(place) for i in heads for place in shown[i].split()] == list(range(n))
    assert [name for i in heads for name in shown[i + 1].split()] == [f"c{i}" for i in range(n)]
    numbers = [number for i in heads for number in shown[i + 2].split()[2:]]
    assert numbers == [f"{value:.2f}" for value in values]


def test_bands_have_one_legend(truecolor):  # noqa: ARG001
    shown = SGR.sub("", render(view(grid(np.full((1, 30), 0.5))), Screen(40)))
    assert len(re.findall(r"^0\.00 +1\.00$", shown, re.MULTILINE)) == 1
    assert shown.count("0.50") == 30


def test_a_hidden_number_counts_for_nothing(truecolor):  # noqa: ARG001
    part = grid([[1.0, -4000.0]], kind="signed", hidden=np.array([[False, True]]))
    shown = render(view(part), Screen())
    assert "48;2;255;179;71m1.000" in shown
    assert re.search(r"^-1\.000 +1\.000$", SGR.sub("", shown), re.MULTILINE)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_grid_stays_in_line_with_wide_characters(width):
    shown = lines(grid(np.full((5, 5), 0.5), WIDE_TOKENS, WIDE_TOKENS), width=width)
    assert len({cell_len(line) for line in shown[2:]}) == 1
    assert {cells_before(line, "0.50") for line in shown[3:]} == {cells_before(shown[3], "0.50")}


def test_a_long_label_ends_in_an_ellipsis():
    (_, _, _, line) = lines(grid([[0.5]], ["x" * 50]), width=40)
    assert line == f"0 {'x' * 13}\u2026 0.50"


def test_row_labels_that_are_names_have_no_places():
    assert lines(grid([[0.5]], ["a name"], row_kind="text"))[3] == "a name 0.50"


@pytest.mark.parametrize(("kind", "number"), [("probability", "0.50"), ("signed", "0.5000")])
def test_a_grid_is_written_as_its_kind(kind, number):
    assert lines(grid([[0.5]], kind=kind))[3].endswith(number)


def test_infinities_and_nothing_in_a_grid():
    hidden = np.array([[False, False, False, True, True, False]])
    last = lines(grid([[INF, -INF, NAN, 1.0, NAN, 2.0]], kind="signed", hidden=hidden))[3]
    assert last.split()[2:] == ["inf", "-inf", "nan", "-", "-", "2.000"]


@pytest.mark.parametrize("values", [[[0.0, 0.0]], [[NAN, NAN]], [[-INF, INF]]])
@pytest.mark.parametrize("kind", ["probability", "signed", "length"])
def test_a_grid_without_a_scale_is_drawn(values, kind, truecolor):  # noqa: ARG001
    assert len(lines(grid(values, kind=kind))) == 5


def test_a_coloured_grid_has_every_number_and_a_legend(truecolor):  # noqa: ARG001
    coloured = render(view(GRID), Screen())
    plain = SGR.sub("", coloured)
    assert "48;2;" in coloured
    assert re.search(r"^0\.00 +1\.00$", plain, re.MULTILINE)
    assert plain.startswith("a grid\n")
    assert re.search(r"0 r0 +1\.00 +- *\n1 r1 +0\.25 0\.75", plain)


def test_without_colours_there_is_no_legend():
    assert len(lines(GRID)) == 5


def test_the_strongest_cell_of_a_signed_grid_has_the_strongest_colour(truecolor):  # noqa: ARG001
    coloured = render(view(grid([[-4.0, 0.0, 4.0]], kind="signed")), Screen())
    assert "48;2;94;190;255m-4.000" in coloured
    assert "48;2;255;179;71m 4.000" in coloured
    assert re.search(r"\x1b\[0m +0\.000 \x1b", coloured)


# Tables


def test_numbers_are_right_and_words_left():
    shown = lines(table("count", 5, 12_345), table("text", "a", "long"))
    assert shown[:4] == ["     x   end", "\u2500" * 12, "     5   |", "12,345   |"]
    assert shown[-2:] == ["a      |", "long   |"]


@pytest.mark.parametrize("width", [80, 24])
def test_a_table_stays_in_line_with_wide_characters(width):
    shown = lines(table("token", *WIDE_TOKENS), width=width)[2:]
    assert {cells_before(line, "|") for line in shown} == {cells_before(shown[0], "|")}


@pytest.mark.parametrize(
    "kind", ["id", "count", "probability", "signed", "length", "number", "error"]
)
def test_nothing_in_a_table_is_a_dash(kind):
    assert lines(table(kind, None))[-1].split() == ["-", "|"]


@pytest.mark.parametrize("kind", ["text", "token"])
def test_no_text_is_empty(kind):
    assert lines(table(kind, None))[-1].split() == ["|"]


@pytest.mark.parametrize("kind", ["signed", "length", "probability"])
def test_not_a_number_in_a_table_is_told(kind):
    assert [line.split() for line in lines(table(kind, NAN, None))[-2:]] == [
        ["nan", "|"],
        ["-", "|"],
    ]


def test_a_table_is_headings_in_bold_and_one_rule(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    part = Table("", (Column("a"), Column("b", "token")), [("xyz", " t")])
    shown = render(view(part), Screen()).split("\n")
    assert shown == ["\x1b[1ma     b\x1b[0m", "\u2500" * 8, "xyz   \u00b7t", ""]


def test_no_line_of_a_table_ends_in_a_space():
    text = render(view(table("probability", 1.0, 0.0, None), table("token", "a", "long")), Screen())
    assert [line for line in text.split("\n") if line != line.rstrip()] == []


def test_a_table_in_ascii_has_a_rule_of_dashes():
    part = Table("", (Column("a"), Column("b", "count")), [("x", 1), ("yy", 20)])
    assert lines(part, unicode=False) == ["a     b", "-------", "x     1", "yy   20"]


@pytest.mark.parametrize("width", [80, 20])
def test_a_probability_next_to_nothing_stands_in_line(width):
    shown = lines(table("probability", 0.5, 1e-9, 0.0), width=width)[2:]
    assert [re.split(r"[ \u2588|]+", line.strip())[0] for line in shown] == [
        "0.5000",
        "<0.0001",
        "0.0000",
    ]
    assert len({cells_before(line, ".") for line in shown}) == 1


@pytest.mark.parametrize(("share", "filled"), [(0.0, 0), (0.5, 6), (1.0, 12), (0.001, 0)])
def test_a_bar_is_as_long_as_the_share(share, filled):
    line = lines(table("probability", share))[-1]
    assert line.count("\u2588") == filled
    assert line.startswith(f"{share:.4f}")


def test_bars_go_first_where_there_is_little_room():
    many = Table("", tuple(Column(f"p{i}", "probability") for i in range(3)), [(0.5,) * 3])
    assert sum(line.count("\u2588") for line in lines(many)) == 18
    assert "\u2588" not in "".join(lines(many, width=40))


@pytest.mark.parametrize("width", [12, 20, 30, 40, 60, 100])
def test_no_number_is_broken_at_any_width(width):
    numbers = (28_348_416, 124_439_808, 1234)
    names = ("a long name", "another long name", "third")
    part = Table("", tuple(Column(name, "count") for name in names), [numbers] * 2)
    shown = lines(part, width=max(width, 33))
    assert [sum(f"{n:,}" in line for line in shown) for n in numbers] == [2, 2, 2]
    assert max(map(cell_len, shown)) <= max(width, 33)


def test_a_table_without_rows_keeps_its_head():
    part = Table("t", (Column("a"), Column("b", "id")), [])
    assert lines(part)[1].split() == ["a", "b"]


def test_long_words_are_folded_not_cut():
    shown = lines(table("text", "x" * 100), width=40)
    assert "".join(shown).count("x") == 100 + 1


# Strips


def strip(values, width=80):
    part = Table("", (Column("v", "vector"),), [(np.float32(values),)])
    return render(view(part), Screen(width)).split("\n")[2:-2]


def test_a_strip_without_colours_has_a_sign_for_each_number():
    assert strip([1, 0.6, 0.4, 0.1, 0, -0.1, -0.4, -0.6, -1]) == ["##+...-=="]


def test_signs_are_shares_of_the_largest_of_all_rows():
    rows = [(np.float32([0.5, -0.5]),), (np.float32([-10, 1]),)]
    shown = lines(Table("", (Column("v", "vector"),), rows))
    assert shown[2:] == ["..", "=.", "# + . - =: from 10 over 0 to -10"]


def test_two_columns_of_lists_have_one_scale():
    part = Table("", (Column("a", "vector"), Column("b", "vector")), [([1.0], [-4.0])])
    assert lines(part)[2:] == ["+   =", "# + . - =: from 4 over 0 to -4"]


@pytest.mark.parametrize(
    ("values", "largest"), [([0.5, -1.192], "1.192"), ([0, 0], "0"), ([1234.5], "1234")]
)
def test_a_strip_has_a_legend(values, largest):
    part = Table("", (Column("v", "vector"),), [(np.float32(values),)])
    assert lines(part)[-1].startswith(f"# + . - =: from {largest} over 0 to -")
    assert len(lines(part)) == 4


def test_a_coloured_strip_has_a_coloured_legend(truecolor):  # noqa: ARG001
    part = Table("", (Column("v", "vector"),), [(np.float32([0.5, -1.192]),)])
    last = render(view(part), Screen()).split("\n")[-2]
    assert SGR.sub("", last) == f"-1.192 {' ' * 24} 1.192"
    assert len(set(re.findall(r"48;2;\d+;\d+;\d+m", last))) == 24


@pytest.mark.parametrize(("n", "blocks"), [(1, 1), (2, 1), (7, 4), (128, 64)])
def test_a_strip_with_colours_has_two_numbers_in_a_character(n, blocks, truecolor):  # noqa: ARG001
    text = "\n".join(strip(np.ones(n), 200))
    assert text.count("\u258c") == blocks


def test_both_halves_have_their_colour(truecolor):  # noqa: ARG001
    (line,) = strip([1, -1])
    assert "38;2;255;179;71;48;2;94;190;255m\u258c" in line


def test_a_strip_of_zeros_is_drawn():
    assert strip([0, 0, 0]) == ["..."]


@pytest.mark.parametrize("width", [30, 40, 80])
def test_a_strip_goes_on_in_the_next_line(width):
    shown = lines(Table("", (Column("v", "vector"),), [(np.ones(100),)]), width=width)
    assert next(line.count("#") for line in shown if "#" in line) < 100
    assert shown.pop().startswith("# + . - =: from 1 over 0 to -1")
    assert sum(line.count("#") for line in shown) == 100
    assert max(map(len, shown)) <= width


# Facts and notes


def test_facts_stand_in_line():
    pairs = (
        (Column("name"), "value"),
        (Column("\u6f22\u5b57\u6f22"), "wide"),
        (Column("n", "count"), 1234),
        (Column("none", "count"), None),
    )
    shown = lines(Facts("title", pairs))
    assert shown[0] == "title"
    assert shown[1:] == ["name    value", "\u6f22\u5b57\u6f22  wide", "n       1,234", "none    -"]


def test_text_in_facts_keeps_its_lines():
    assert lines(Facts("", ((Column("text"), "one\ntwo\x1b"),))) == ["text  one", "      two<0x1B>"]


def test_a_note_is_wrapped_and_never_wider():
    shown = lines(Note("word " * 30), width=40)
    assert len(shown) > 3
    assert max(map(len, shown)) <= 40


# Places


@pytest.mark.parametrize(
    "text",
    ["[bold]x[/bold]", "[/items]", ":smile:", "[link=https://x]y[/link]", "\\[x]", "http://x"],
)
def test_text_is_never_markup(text):
    parts = (
        Note(text),
        Table(text, (Column(text),), [(text,)]),
        Facts(text, ((Column(text), text),)),
        grid([[0.5]], [text], [text], row_kind="text"),
    )
    for part in parts:
        shown = render(view(part), Screen(200))
        assert text.replace("\\\\", "\\") in shown
        assert "\x1b" not in shown


@pytest.mark.parametrize("text", ["\x1b[31m", "\r", "\x00", "\u202e", "\x9b", "\u200b", "\ue000"])
def test_control_characters_are_shown(text):
    parts = (
        Note(text),
        Table(text, (Column(text), Column("t", "token")), [(text, text)]),
        Facts(text, ((Column(text), text),)),
        grid([[0.5]], [text], [text]),
    )
    shown = render(View("test", parts, {"name": text}, INPUT), Screen(200))
    assert text[0] not in shown
    assert f"{ord(text[0]):02X}>" in shown


def test_an_ascii_screen_gets_ascii():
    many = grid(np.full((2, 30), 0.5), [" a long label of a row", "\n"], [" tok"] * 30)
    text = render(EVERYTHING, Screen(80, unicode=False))
    text += render(view(many, table("probability", 1.0)), Screen(40, unicode=False))
    assert text.isascii()
    assert "a model - 2 tokens: 1 2 (" in text
    assert "~tok" in text
    assert "<0x0A>" in text
    assert "####" in text
    assert "0 ~a~long~labe.." in text


def test_an_ascii_screen_has_the_same_layout():
    drawn = render(view(GRID, NOTE), Screen(80))
    assert len(drawn) == len(render(view(GRID, NOTE), Screen(80, unicode=False)))


@pytest.mark.parametrize(
    ("env", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False, False),
    ],
)
def test_colours_are_a_matter_of_the_place(monkeypatch, env, terminal, coloured):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    text = render(EVERYTHING, Screen(80, terminal=terminal))
    assert bool(re.search(r"\x1b\[[0-9;]*[34]8;", text)) == coloured
    assert "0.25" in text


def test_a_dumb_terminal_keeps_its_width(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")
    assert max(map(len, lines(Note("word " * 30), width=40, terminal=True))) <= 40


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_nothing_is_wider_than_the_screen(width):
    text = render(EVERYTHING, Screen(width))
    assert max(map(cell_len, text.split("\n"))) <= width


# Themes and few colours


def codes(text, what):
    """The colours of the cells, in the order in which they come first."""
    return list(dict.fromkeys(re.findall(rf"\x1b\[(?:[0-9;]*;)?({what})m", text)))


def in_steps(kind, n=101):
    low = -1 if kind == "signed" else 0
    return grid([np.linspace(low, 1, n)], kind=kind)


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("kind", ["probability", "signed"])
def test_256_colours_follow_the_scale(monkeypatch, kind, light):
    monkeypatch.setenv("FORCE_COLOR", "1")
    text = render(view(in_steps(kind)), Screen(100_000, light=light))
    scale = SCALES["diverging" if kind == "signed" else "sequential", light]
    assert codes(text, r"48;5;\d+") == [f"48;5;{n}" for n in scale.many]
    assert "48;2;" not in text


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("kind", ["probability", "signed"])
def test_16_colours_follow_the_scale(few_colours, kind, light):  # noqa: ARG001
    text = render(view(in_steps(kind)), Screen(100_000, light=light))
    scale = SCALES["diverging" if kind == "signed" else "sequential", light]
    numbers = [n for n in scale.few if n is not None]
    assert codes(text, r"4\d|10\d") == [str(n + (40 if n < 8 else 92)) for n in numbers]
    cells = re.findall(r"\x1b\[(\d+);(4\d|10\d)m", text)
    inks = {"30": {"46", "103", "106"}, "97": {"40", "41", "44"}}  # black and white
    assert {ink for ink, _ in cells} <= set(inks)
    assert all(back in inks[ink] for ink, back in cells)


def test_few_colours_are_drawn_for_every_part(few_colours):  # noqa: ARG001
    text = render(gallery(), Screen(80))
    assert not re.search(r"[34]8;[25];", text)
    assert codes(text, r"4\d|10\d")


@pytest.mark.parametrize(
    ("light", "env", "code"),
    [
        (False, {}, "\x1b[2m"),
        (True, {}, "\x1b[38;5;240m"),
        (True, {"COLORTERM": "truecolor"}, "\x1b[38;2;95;95;95m"),
        (True, {"TERM": "xterm"}, ""),
        (True, {"NO_COLOR": "1"}, ""),
    ],
)
def test_small_print_can_be_read_on_every_background(monkeypatch, light, env, code):
    for name, value in {"FORCE_COLOR": "1", **env}.items():
        monkeypatch.setenv(name, value)
    text = render(View("test", (), {"name": "m"}, INPUT), Screen(80, light=light))
    assert text.startswith(f"{code}m \u00b7 2 tokens")
    assert numbered(240) == (88, 88, 88)


def test_a_light_theme_has_no_dark_cells_near_zero(truecolor):  # noqa: ARG001
    part = grid([[0.03, -0.03, 1.0]], kind="signed")
    backs = re.findall(r"48;2;(\d+);(\d+);(\d+)m", render(view(part), Screen(light=True)))
    assert min(map(int, backs[0] + backs[1])) > 230


# Characters and widths


@pytest.mark.parametrize(
    ("encoding", "unicode"),
    [("ascii", False), ("cp1252", False), ("utf-8", False), ("utf-8", True)],
)
@pytest.mark.parametrize("colours", [False, True])
def test_columns_line_up_in_every_encoding(monkeypatch, unicode, encoding, colours):
    if colours:
        monkeypatch.setenv("FORCE_COLOR", "1")
    screen = Screen(60, unicode=unicode, encoding=encoding)
    tokens = (*WIDE_TOKENS, "caf\u00e9", "a_b", "~", "\u20ac")
    parts = (table("token", *tokens), table("text", *tokens), grid(np.eye(9), tokens, ["c"] * 9))
    for part in parts:
        shown = SGR.sub("", render(view(part), screen)).removesuffix("\n").split("\n")
        assert all(has(screen.charset, line) for line in shown)
        if part is not parts[2]:
            assert len({cells_before(line, "|") for line in shown if line.endswith("|")}) == 1
        else:
            assert {cell_len(line) for line in shown[3:12]} == {cell_len(shown[3])}


def test_a_space_and_an_underscore_and_a_tilde_are_told_apart():
    shown = lines(table("token", " a", "_a", "~a"), unicode=False)[2:]
    assert [line.split()[0] for line in shown] == ["~a", "_a", "<0x7E>a"]


def test_cp1252_keeps_what_it_has():
    screen = {"unicode": False, "encoding": "cp1252"}
    shown = lines(table("token", " caf\u00e9", "\n", "\u6f22"), **screen)[2:]
    assert [line.split()[0] for line in shown] == ["\u00b7caf\u00e9", "<0x0A>", "<U+6F22>"]
    assert lines(table("probability", 1.0), **screen)[-1].startswith("1.0000 ####")


@pytest.mark.parametrize(
    ("token", "cells"),  # as terminals draw them, and wcwidth counts
    [
        ("\u6f22\u5b57", 4),
        ("\uff21", 2),
        ("\uac01", 2),
        ("\u1112\u1161\u11ab", 2),
        ("e\u0301", 1),
        ("\u0e01\u0e47", 1),
        ("\U0001f600", 2),
        ("\u2764", 1),
        ("\t", 1),
        ("\u0301a", 9),  # <U+0301>a
        ("\u2764\ufe0f", 9),
        ("\U0001f469\U0001f3fd", 11),
        ("\U0001f1e9\U0001f1ea", 18),
        ("a\u200db", 10),
    ],
)
def test_widths_are_those_of_terminals(token, cells):
    shown = lines(table("token", token, "x" * 20))[2:]
    assert cell_len(token_glyphs(token)) == cells
    assert {cells_before(line, "|") for line in shown} == {23}


# Precision


def test_precision_holds_in_every_part():
    facts = Facts("", ((Column("p", "probability"), 1 / 3), (Column("s", "signed"), -2 / 3)))
    parts = (
        table("probability", 1 / 3, 2 / 3),
        table("signed", -1 / 3, 20 / 3),
        table("length", 1 / 3, 200 / 3),
        grid([[1 / 3, 2 / 3]]),
        grid([[1 / 3, -2 / 3]], kind="signed"),
        facts,
        Table("", (Column("v", "vector"),), [([1 / 3, -1.0],)]),
    )
    numbers = re.findall(r"\d+\.\d+", render(view(*parts), Screen(80, precision=7)))
    assert numbers == [
        *("0.3333333", "0.6666667", "0.333333", "6.666667", "0.33333", "66.66667"),
        *("0.3333333", "0.6666667", "0.3333333", "0.6666667", "0.3333333", "0.6666667"),
    ]
    short = re.findall(r"\d+\.\d+", render(view(*parts[:6]), Screen(80, precision=1)))
    assert short == ["0.3", "0.7", "0.3", "0.7", "0.3", "0.7", "0.3", "0.7"]


@pytest.mark.parametrize("precision", [None, 1, 2, 7, 17])
@pytest.mark.parametrize("width", [40, 80, 200])
def test_columns_line_up_at_every_precision(width, precision):
    part = table("probability", 0.5, 1e-12, None, 0.123_456_789)
    shown = lines(part, width=width, precision=precision)[2:]
    assert {cells_before(line, "|") for line in shown} == {cells_before(shown[0], "|")}
    shown = lines(grid(np.full((3, 4), 1 / 3)), width=width, precision=precision)
    assert max(map(cell_len, shown)) <= width


# Every view

WORDS = st.text(max_size=30) | st.sampled_from(
    [*WIDE_TOKENS, "\u0301", "\t", "x" * 90, "\u6f22" * 30]
)
REAL = st.floats(width=32)
CELLS = {
    "text": st.none() | WORDS,
    "token": WORDS,
    "id": st.none() | st.integers(0, 10**6),
    "count": st.none() | st.integers(0, 10**12),
    "probability": st.none() | st.floats(0, 1),
    "vector": st.lists(REAL, max_size=150),
} | dict.fromkeys(("signed", "length", "number", "error", "contribution"), st.none() | REAL)


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6))
    rows = draw(st.lists(st.tuples(*(CELLS[kind] for kind in kinds)), max_size=3))
    return Table(draw(WORDS), tuple(Column(draw(WORDS), kind) for kind in kinds), rows)


@st.composite
def grids(draw, most=7):
    n, m = draw(st.integers(1, 5)), draw(st.integers(1, most))
    numbers = np.resize(draw(st.lists(REAL, min_size=1, max_size=9)), (n, m))
    mask = draw(st.none() | st.lists(st.booleans(), min_size=1, max_size=5))
    hidden = None if mask is None else np.resize(mask, (n, m))
    labels = [tuple(draw(WORDS) for _ in range(min(k, 4))) * k for k in (n, m)]
    rows, columns = (names[:k] for names, k in zip(labels, (n, m), strict=True))
    kind = draw(st.sampled_from(["probability", "signed", "length", "contribution"]))
    words = draw(st.none() | st.lists(WORDS, min_size=1, max_size=4))
    tokens = words and tuple(tuple((words * m)[:m]) for _ in range(n))
    return Grid(draw(WORDS), rows, columns, numbers, kind, hidden=hidden, tokens=tokens)


@st.composite
def passages(draw):
    tokens = draw(st.lists(WORDS, max_size=12))
    values = draw(st.lists(st.none() | REAL, min_size=len(tokens), max_size=len(tokens)))
    kind = draw(st.sampled_from(["probability", "signed", "length", "contribution"]))
    return Passage(draw(WORDS), tuple(tokens), values, kind)


SHEETS = st.builds(Sheet, WORDS, st.lists(grids(60), max_size=5).map(tuple), st.integers(1, 12))
PAIRS = st.sampled_from([kind for kind in KINDS if kind != "vector"]).flatmap(
    lambda kind: st.tuples(st.builds(Column, WORDS, st.just(kind)), CELLS[kind])
)
FACTS = st.builds(Facts, WORDS, st.lists(PAIRS, max_size=4).map(tuple))
PARTS = tables() | grids() | SHEETS | passages() | FACTS | st.builds(Note, WORDS)
SCREENS = st.builds(
    Screen,
    width=st.sampled_from([20, 40, 80]) | st.integers(20, 200),
    unicode=st.booleans(),
    light=st.booleans(),
    precision=st.none() | st.integers(1, 17),
    encoding=st.sampled_from(["utf-8", "utf-8", "cp1252", "ascii"]),
)
TERMINALS = st.sampled_from(
    [
        {},
        {"FORCE_COLOR": "1", "COLORTERM": "truecolor"},
        {"FORCE_COLOR": "1"},
        {"FORCE_COLOR": "1", "TERM": "xterm"},
        {"FORCE_COLOR": "1", "NO_COLOR": "1"},
    ]
)


@settings(max_examples=200)
@given(PARTS, SCREENS, TERMINALS, st.lists(WORDS, max_size=3).map(tuple))
def test_any_part_fits_any_screen(part, screen, env, edits):
    drawn = screen if screen.encoding == "utf-8" else Screen(**{**vars(screen), "unicode": False})
    with mock.patch.dict(os.environ, env):
        text = SGR.sub("", render(View("test", (part,), edits=edits), drawn))
    assert [line for line in text.split("\n") if cell_len(line) > screen.width] == []
    assert has(drawn.charset, text)
    every = set(text) - {"\n", " "}
    assert not every & (UNSEEN | UNSURE)
    assert not {unicodedata.category(char) for char in every} & UNSAFE


# Long tables


@pytest.mark.parametrize("width", [40, 80, 100_000])
def test_a_long_table_does_not_take_long(width):
    columns = tuple(Column(kind, kind) for kind in ("id", "token", "text", "probability"))
    part = Table("", columns, [(i, f" t{i}", "words", 1 / (i + 1)) for i in range(20_000)])
    start = time.perf_counter()
    shown = render(view(part), Screen(width))
    assert time.perf_counter() - start < 10  # a tenth of it, when nothing else runs
    assert shown.count("\u00b7t") == 20_000
    assert "\u00b7t19999" in shown


# The gallery


def test_the_gallery_has_every_kind_of_part_and_of_column():
    parts = gallery().parts
    assert {type(part) for part in parts} == {Table, Grid, Sheet, Passage, Facts, Note}
    assert {c.kind for part in parts if isinstance(part, Table) for c in part.columns} == set(KINDS)
    assert {part.kind for part in parts if isinstance(part, Grid)} == {
        *("probability", "signed", "length")
    }


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("unicode", [False, True])
@pytest.mark.parametrize("light", [False, True])
def test_the_gallery_fits(truecolor, width, unicode, light):  # noqa: ARG001
    text = SGR.sub("", render(gallery(), Screen(width, unicode=unicode, light=light)))
    assert max(map(cell_len, text.split("\n"))) <= width


def test_the_gallery_takes_the_options_of_every_command(capsys):
    show_gallery(["--theme", "light", "--ascii", "--no-color", "--width", "40", "--precision", "2"])
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert max(map(len, shown.split("\n"))) <= 40
    assert "\x1b" not in shown


def test_the_gallery_runs_as_a_module():
    args = [sys.executable, "-m", "gptscope.render.terminal", "--width", "60"]
    env = {**os.environ, "PYTHONIOENCODING": "cp1252", "NO_COLOR": "1"}
    done = subprocess.run(args, capture_output=True, check=True, env=env, timeout=30)
    shown = done.stdout.decode("cp1252")
    assert "A sheet of grids" in shown
    assert "\u00b7Lily" in shown
