import re
import time

import numpy as np
import pytest
from rich.cells import cell_len

from gptscope.render.palette import SCALES, colour
from gptscope.render.screen import Screen
from gptscope.render.terminal import render
from gptscope.render.terminal.sheets import SHADES, blocks, planned, smaller, strongest
from gptscope.view import Grid, Sheet
from tests.helpers.views import INF, NAN, view

SGR = re.compile(r"\x1b\[[0-9;]*m")
STOPS = SCALES["sequential", False].stops


pytestmark = pytest.mark.usefixtures("plain_terminal")


def small(values, title="0.0", kind="probability", hidden=None):
    values = np.array(values, float)
    names = [("",) * n for n in values.shape]
    return Grid(title, *names, values, kind, hidden=None if hidden is None else np.array(hidden))


def heads(layers, n, size):
    """A sheet of n heads in each layer: weights that look at the token itself."""
    later = np.triu(np.ones((size, size), bool), 1)
    grids = [
        small(np.eye(size), f"{layer}.{head}", hidden=later)
        for layer in range(layers)
        for head in range(n)
    ]
    return Sheet("all heads", tuple(grids), n)


def lines(part, width=80, **screen):
    text = render(view(part), Screen(width, **screen))
    return text.removesuffix("\n").split("\n")


def names_in(shown):
    """The lines of names."""
    found = [line for line in shown if re.fullmatch(r"\d+\.\d+( +\d+\.\d+)*", line)]
    return [line.split() for line in found if line.split() != ["0.00", "1.00"]]


# Where pictures stand


def test_pictures_stand_side_by_side_under_their_names():
    part = Sheet("two", (small([[0, 1], [0.5, 0]], "a"), small([[1, 1], [0, 0]], "a name")), 2)
    assert lines(part) == [
        "two",
        "a       a name",
        ".@      @@",
        "+.      ..",
        "",
        f"{SHADES}: from 0.00 to 1.00",
    ]


def test_a_row_of_the_sheet_is_a_row_of_pictures():
    shown = lines(heads(3, 4, 6))
    assert names_in(shown) == [[f"{layer}.{head}" for head in range(4)] for layer in range(3)]


@pytest.mark.parametrize(
    ("columns", "full", "name", "width", "plan"),
    [
        (4, 10, 3, 80, (4, 10, 10, 2)),  # as they are
        (4, 10, 3, 46, (4, 10, 10, 2)),
        (4, 10, 3, 45, (4, 10, 10, 1)),
        (4, 10, 3, 42, (4, 9, 9, 1)),  # smaller
        (12, 40, 5, 80, (12, 5, 5, 1)),
        (12, 40, 5, 200, (12, 15, 15, 1)),
        (12, 40, 5, 40, (6, 5, 5, 1)),  # half of the row, and the rest below
        (4, 2, 30, 80, (2, 2, 30, 2)),
        (4, 50, 30, 20, (1, 20, 20, 1)),  # the name is cut
        (1, 3, 3, 80, (1, 3, 3, 2)),
    ],
)
def test_a_row_fits(columns, full, name, width, plan):
    made = planned(columns, full, name, width)
    assert (made.room, made.side, made.wide, made.gap) == plan
    assert made.room * (made.wide + made.gap) - made.gap <= width


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("unicode", [False, True])
@pytest.mark.parametrize("coloured", [False, True])
def test_144_heads_fit_every_screen(monkeypatch, width, unicode, coloured):
    if coloured:
        monkeypatch.setenv("FORCE_COLOR", "1")
    shown = [SGR.sub("", line) for line in lines(heads(12, 12, 40), width, unicode=unicode)]
    assert max(map(cell_len, shown)) <= width
    every = [f"{layer}.{head}" for layer in range(12) for head in range(12)]
    assert [name for line in names_in(shown) for name in line] == every


def test_a_row_of_12_wide_heads_stays_one_row_on_80_columns():
    shown = lines(heads(12, 12, 40))
    assert len(names_in(shown)) == 12
    assert shown[-1] == "each cell shows the strongest of up to 8 x 8 values"


def test_what_is_not_made_smaller_says_nothing_of_it():
    assert not any("strongest" in line for line in lines(heads(2, 4, 10)))


def test_a_last_row_may_be_short():
    part = heads(1, 3, 4)
    assert len(names_in(lines(Sheet("", part.grids, 2)))) == 2


def test_a_sheet_without_grids_is_its_title():
    assert lines(Sheet("none", (), 4)) == ["none"]


def test_a_large_sheet_does_not_take_long(truecolor):  # noqa: ARG001
    start = time.perf_counter()
    render(view(heads(12, 12, 64)), Screen(200))
    assert time.perf_counter() - start < 10


# Pictures


def halves(line):
    """Upper and lower colour of each character; None is the background."""
    found = re.findall(r"(?:\x1b\[([0-9;]*)m)?([▀▄ ?]+)(?:\x1b\[0m)?", line)
    cells = []
    for codes, chars in found:
        fore = re.search(r"38;2;(\d+);(\d+);(\d+)", codes)
        back = re.search(r"48;2;(\d+);(\d+);(\d+)", codes)
        pair = [tuple(map(int, one.groups())) if one else None for one in (fore, back)]
        both = {"▀": pair, "▄": [None, pair[0]]}
        cells += [both.get(char, char) for char in chars]
    return cells


def test_a_character_shows_two_cells(truecolor):  # noqa: ARG001
    hidden = [[False, True, True], [False, False, True]]
    shown = lines(Sheet("", (small([[1, 0, 0], [0.5, 0.25, 0]], hidden=hidden),), 1))
    share = [list(colour(x, STOPS)) for x in (1, 0.5, 0.25)]
    one, two, three = map(tuple, share)
    assert halves(shown[1]) == [[one, two], [None, three]]  # what is hidden at the end is nothing


def test_the_last_of_an_odd_number_of_rows_stands_alone(truecolor):  # noqa: ARG001
    shown = lines(Sheet("", (small([[1], [1], [0.5]]),), 1))
    assert halves(shown[2]) == [[colour(0.5, STOPS), None]]


def test_a_number_that_went_wrong_is_not_hidden(truecolor):  # noqa: ARG001
    part = Sheet("", (small([[NAN, 1], [0, INF]]),), 1)
    assert "?" in lines(part)[1]
    assert "?" in lines(part, unicode=False)[1]
    assert lines(part, colours=False)[1:3] == ["?@", ".@"]


def test_all_pictures_have_one_scale(truecolor):  # noqa: ARG001
    part = Sheet("", (small([[1.0]], kind="length"), small([[4.0]], kind="length")), 2)
    shown = lines(part)
    assert [pair[0] for pair in halves(shown[1]) if pair != " "] == [
        colour(0.25, STOPS),
        colour(1, STOPS),
    ]
    assert SGR.sub("", shown[-1]).split() == ["0.000", "4.000"]


@pytest.mark.parametrize(("kind", "low"), [("probability", "0.00"), ("signed", "-2.000")])
def test_a_sheet_has_one_legend(truecolor, kind, low):  # noqa: ARG001
    part = Sheet("", tuple(small([[2.0, -1.0]], kind=kind) for _ in range(3)), 3)
    shown = [SGR.sub("", line) for line in lines(part)]
    assert sum(line.startswith(low) for line in shown) == 1


def test_without_colours_shades_tell_more_from_less():
    shares = np.linspace(0, 1, 9)
    shown = lines(Sheet("", (small([shares]),), 1))
    assert shown[1] == SHADES
    assert shown[2:] == ["", f"{SHADES}: from 0.00 to 1.00"]


def test_without_colours_hidden_is_not_nothing():
    shown = lines(Sheet("", (small([[0, 0, 1]], hidden=[[False, True, False]]),), 1))
    assert shown[1] == ". @"


def test_without_colours_signs_tell_plus_from_minus():
    shown = lines(Sheet("", (small([[-2, -0.5, 0, 0.5, 2]], kind="signed"),), 1))
    assert shown[1:] == ["=-.+#", "", "# + . - =: from 2.000 over 0 to -2.000"]


def test_colours_without_half_blocks_have_signs_as_well(truecolor):  # noqa: ARG001
    shown = lines(Sheet("", (small([[1, 0]]),), 1), unicode=False)
    assert SGR.sub("", shown[1]) == "@."
    assert "48;2;253;231;37m@" in shown[1]


def test_names_are_made_safe():
    shown = lines(Sheet("\x1b", (small([[1]], "\x1b[31m"),), 1))
    assert shown[:2] == ["<0x1B>", "<0x1B>[31m"]


# Smaller


@pytest.mark.parametrize(
    ("values", "one"),
    [
        ([0.1, 0.9, 0.5], 0.9),
        ([0.1, -0.9, 0.5], -0.9),
        ([None, 0.5], 0.5),
        ([None, None], None),
        ([], None),
    ],
)
def test_the_strongest_of_a_block_is_farthest_from_zero(values, one):
    assert strongest(values) == one


def test_what_is_not_a_number_is_strongest():
    assert np.isnan(strongest([INF, NAN, 1.0]))


@pytest.mark.parametrize("n", [1, 2, 7, 40, 41])
@pytest.mark.parametrize("factor", [0.01, 0.125, 0.5, 0.9, 1])
def test_blocks_cover_every_cell_once(n, factor):
    made = blocks(n, factor)
    assert [i for block in made for i in range(n)[block]] == list(range(n))
    sizes = [block.stop - block.start for block in made]
    assert max(sizes) - min(sizes) <= 1


def test_a_smaller_picture_has_the_strongest_of_each_block():
    cells = np.arange(16.0).reshape(4, 4).tolist()
    assert smaller(cells, 0.5) == [[5, 7], [13, 15]]
    assert smaller(cells, 1) == cells
