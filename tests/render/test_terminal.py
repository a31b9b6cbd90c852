import re

import numpy as np
import pytest
from rich.cells import cell_len

from gptscope.render.screen import Screen
from gptscope.render.terminal import render
from gptscope.view import Column, Facts, Note, Table, View
from tests.helpers.views import EVERYTHING, GRID, INF, INPUT, NAN, NOTE, grid, view

SGR = re.compile(r"\x1b\[[0-9;]*m")
WIDE_TOKENS = ("\u6f22\u5b57", " a", "e\u0301", "\U0001f469", "\n")


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    for name in ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def truecolor(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLORTERM", "truecolor")


def lines(*parts, width=80, **screen):
    text = render(view(*parts), Screen(width, **screen))
    return [line.rstrip() for line in text.removesuffix("\n").split("\n")]


def table(kind, *values):
    return Table("", (Column("x", kind), Column("end")), [(value, "|") for value in values])


def cells_before(line, mark):
    return cell_len(line[: line.index(mark)])


# What was fed


def fed(ids, prepended=0, name="m"):
    given = {"ids": ids, "prepended": prepended, "appended": 0}
    return render(View("test", (), {"name": name}, given), Screen(200)).strip()


@pytest.mark.parametrize(
    ("ids", "prepended", "told"),
    [
        ([5], 0, "m \u00b7 1 token: 5 (nothing prepended)"),
        ([5, 6], 1, "m \u00b7 2 tokens: 5 6 (1 prepended)"),
        (range(24), 0, f"m \u00b7 24 tokens: {' '.join(map(str, range(24)))} (nothing prepended)"),
        (range(30), 0, f"m \u00b7 30 tokens: {' '.join(map(str, range(24)))} \u2026 (nothing pre"),
    ],
)
def test_what_was_fed_is_told(ids, prepended, told):
    assert fed(list(ids), prepended).startswith(told)


def test_a_name_is_not_sent_to_the_terminal():
    assert fed([1], name="[bold]\x1b[31m").startswith("[bold]<0x1B>[31m \u00b7 1 token")


# Grids


def test_a_grid_has_numbers_and_labels():
    shown = lines(grid([[1.0, NAN], [0.25, 0.75]], ["Lily", " ran"], ["Lily", " ran"]))
    assert shown == [
        "a grid",
        "          0    1",
        "       Lily \u00b7ran",
        "0 Lily 1.00    -",
        "1 \u00b7ran 0.25 0.75",
    ]


def test_a_grid_that_does_not_fit_shows_its_end_and_says_so():
    square = grid(np.full((3, 30), 0.5), columns=[f"t{i}" for i in range(30)])
    shown = " ".join(lines(square, width=40))
    assert "columns 0 to 22 are left out of 30: widen the terminal, or use --format csv" in shown
    heads = lines(square, width=40)[2].split()
    assert heads == [f"t{i}" for i in range(23, 30)]
    assert "left out" not in " ".join(lines(square, width=400))


@pytest.mark.parametrize("n", range(1, 30))
def test_what_is_shown_and_what_is_left_out_are_all(n):
    shown = lines(grid(np.full((1, n), 0.5)), width=40)
    said = re.search(r"columns? (?:0 to )?(\d+) .* left out of (\d+)", " ".join(shown))
    left = int(said[1]) + 1 if said else 0
    assert shown[3].count("0.50") == n - left
    assert shown[1].split()[0] == str(left)


def test_one_column_left_out_is_singular():
    shown = " ".join(lines(grid(np.full((1, 8), 0.5)), width=40))
    assert "column 0 is left out of 8" in shown


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
    last = lines(grid([[INF, -INF, NAN, 2.0]], kind="signed"))[3]
    assert last.split()[2:] == ["inf", "-inf", "-", "2.000"]


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
    assert shown[0].split() == ["x", "end"]
    assert shown[2:4] == ["     5   |", "12,345   |"]
    assert shown[-2:] == ["a      |", "long   |"]


@pytest.mark.parametrize("width", [80, 24])
def test_a_table_stays_in_line_with_wide_characters(width):
    shown = lines(table("token", *WIDE_TOKENS), width=width)[2:]
    assert {cells_before(line, "|") for line in shown} == {cells_before(shown[0], "|")}


@pytest.mark.parametrize("kind", ["id", "count", "probability", "signed", "length", "number"])
def test_nothing_in_a_table_is_a_dash(kind):
    assert lines(table(kind, None))[-1].split() == ["-", "|"]


@pytest.mark.parametrize("kind", ["text", "token"])
def test_no_text_is_empty(kind):
    assert lines(table(kind, None))[-1].split() == ["|"]


@pytest.mark.parametrize("kind", ["signed", "length", "probability"])
def test_not_a_number_in_a_table_is_a_dash(kind):
    assert lines(table(kind, NAN))[-1].split() == ["-", "|"]


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
    return render(view(part), Screen(width)).split("\n")[2:-1]


def test_a_strip_without_colours_has_a_sign_for_each_number():
    assert strip([1, 0.6, 0.4, 0.1, 0, -0.1, -0.4, -0.6, -1]) == ["##+...-=="]


def test_signs_are_shares_of_the_largest_of_all_rows():
    rows = [(np.float32([0.5, -0.5]),), (np.float32([-10, 1]),)]
    shown = lines(Table("", (Column("v", "vector"),), rows))
    assert shown[2:] == ["..", "=."]


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
    assert lines(Facts("", ((Column("text"), "one\ntwo\x1b"),))) == ["text  one", "two<0x1B>"]


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
    assert "_tok" in text
    assert "$" in text
    assert "####" in text
    assert "~" in text


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
