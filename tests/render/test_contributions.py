"""Parts of a sum: a signed number, and a bar to either side of a line."""

import re
from xml.etree import ElementTree as ET

import pytest

from gptscope.render import render
from gptscope.render.palette import scale_for
from gptscope.render.screen import Screen
from gptscope.view import Column, Facts, Sheet, Table
from tests.helpers.views import INF, NAN, grid, lines, view

VALUES = (-4.0, -2.0, 0.0, 0.1, 1.0, 4.0)

pytestmark = pytest.mark.usefixtures("plain_terminal")


def table(*values):
    return Table("", (Column("x", "contribution"),), [(value,) for value in values])


def page(part):
    return ET.fromstring(render(view(part), "html", Screen()))  # noqa: S314


def bars(part):
    return [(one.get("class"), one.get("style")) for one in page(part).findall(".//span[@class]/i")]


def test_a_bar_goes_to_either_side_of_a_line():
    assert lines(table(*VALUES))[2:] == [
        "-4.000 \u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2502",
        "-2.000     \u2588\u2588\u2588\u2588\u2502",
        " 0.000         \u2502",
        " 0.100         \u2502",
        " 1.000         \u2502\u2588\u2588",
        " 4.000         \u2502\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588",
    ]


def test_in_ascii_it_is_made_of_other_signs():
    assert lines(table(-4.0, 2.0), unicode=False)[2:] == [
        "-4.000 ########|",
        " 2.000         |####",
    ]


def test_lengths_are_shares_of_the_largest_that_is_finite():
    shown = lines(table(1e-6, INF, -5e-7, NAN, None, -INF))[2:]
    assert [line.count("\u2588") for line in shown] == [8, 0, 4, 0, 0, 0]
    assert {line.index("\u2502") for line in shown} == {shown[0].index("\u2502")}


@pytest.mark.parametrize("values", [(0.0, -0.0), (None, None), (NAN,), ()])
def test_without_a_largest_there_are_no_bars(values):
    assert "\u2588" not in "".join(lines(table(*values)))


def test_bars_go_first_where_there_is_little_room():
    columns = (Column("a text"), Column("x", "contribution"))
    part = Table("", columns, [("some words", 1.0)])
    assert "\u2588" in "".join(lines(part, width=40))
    assert lines(part, width=25)[-1] == "some words   1.000"


@pytest.mark.parametrize(
    ("light", "low", "high"),
    [(False, "94;190;255", "255;179;71"), (True, "5;48;97", "127;59;8")],
)
def test_the_sides_have_the_ends_of_the_scale(light, low, high, truecolor):  # noqa: ARG001
    text = render(view(table(-2.0, 2.0)), "table", Screen(light=light))
    assert f"\x1b[38;2;{low}m\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588\x1b[0m" in text
    assert f"\x1b[38;2;{high}m\u2588\u2588\u2588\u2588\u2588\u2588\u2588\u2588" in text


def test_a_coloured_bar_has_the_same_characters(truecolor):  # noqa: ARG001
    coloured, plain = (lines(table(*VALUES), colours=colours) for colours in (True, False))
    assert "\x1b[38;2;" in "".join(coloured)
    assert [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in coloured[2:]] == plain[2:]


@pytest.mark.parametrize("light", [False, True])
def test_its_scale_has_two_sides(light):
    assert scale_for("contribution", light=light) is scale_for("signed", light=light)


def test_a_fact_has_no_bar():
    part = Facts("", ((Column("sum", "contribution"), -1.5),))
    assert lines(part) == ["sum  -1.500"]
    assert page(part).find(".//dd").text == "-1.500"
    assert bars(part) == []


def test_pictures_of_it_have_two_sides():
    part = Sheet("", (grid([[-1.0, 1.0]], kind="contribution"),), 1)
    assert lines(part)[-1] == "# + . - =: from 1.000 over 0 to -1.000"
    assert re.findall(r'<path class="(\w+)"', render(view(part), "html", Screen())) == ["d0", "d64"]


def test_a_page_has_bars_to_either_side():
    assert bars(table(-4.0, 1.0, 0.0, NAN, INF)) == [
        ("d0", "margin-left:0%;width:50%"),
        ("d64", "margin-left:50%;width:12.5%"),
        *[("d64", "margin-left:50%;width:0%")] * 3,
    ]


def test_on_a_page_nothing_has_no_bar():
    (cell,) = page(table(None)).findall(".//tbody//td")
    assert "".join(cell.itertext()) == "-"
    assert [one.get("class") for one in cell] == ["bar none"]


def test_markdown_has_the_number_to_the_right():
    text = render(view(table(-1.5)), "markdown", Screen())
    assert text.endswith("| x |\n| ---: |\n| -1.500 |\n")
