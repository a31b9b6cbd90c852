import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptscope.glyphs import token_glyphs, visible
from gptscope.render.as_html import render
from gptscope.render.as_html.colours import DIVERGING, SEQUENTIAL, STEPS, code
from gptscope.render.palette import colour, ink, scale_for
from gptscope.render.screen import Screen
from gptscope.view import Column, Facts, Grid, Note, Sheet, Table, View
from tests.helpers.views import EVERYTHING, FACTS, GRID, INF, NAN, TABLE, grid, view

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onclick='x",
    "&amp;",
    "]]>",
    "</style>",
    "\x1b[31m\x00",
    "\u202e\u6f22",
    "{title}",
    "url(http://x)",
]


def page(*parts, screen=None):
    return ET.fromstring(render(view(*parts), screen or Screen()))  # noqa: S314


def cells(root, path=".//tbody/tr"):
    return [["".join(cell.itertext()) for cell in row] for row in root.findall(path)]


def classes(root, path):
    return [one.get("class") for one in root.findall(path)]


def rules(light):
    style = re.search("<style>(.*)</style>", render(view(), Screen()), re.DOTALL)[1]
    on_light, on_dark = style.rsplit("@media (prefers-color-scheme: dark)", 1)
    return on_light if light else on_dark


def test_it_is_a_whole_page():
    text = render(EVERYTHING, Screen())
    assert text.startswith('<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8" />')
    assert '<meta name="viewport" content="width=device-width, initial-scale=1" />' in text
    root = ET.fromstring(text)  # noqa: S314
    assert root.find("head/title").text == "gptscope test \u00b7 a model"
    assert root.find("body/main/header/h1").text == "gptscope test"


def test_it_needs_nothing_from_elsewhere():
    text = render(EVERYTHING, Screen())
    for word in ("http:", "https:", "//", "<script", "url(", "@import", "@font-face", "<link"):
        assert word not in text
    assert "src=" not in text


def test_it_is_ascii_and_the_same_whatever_the_screen_can_show():
    text = render(EVERYTHING, Screen())
    assert text.isascii()
    assert text == render(EVERYTHING, Screen(20, terminal=True, unicode=False, colours=False))


def test_what_was_fed_is_shown():
    root = ET.fromstring(render(EVERYTHING, Screen()))  # noqa: S314
    assert root.find(".//header/p").text == "a model \u00b7 2 tokens (nothing prepended)"
    tokens = ["".join(item.itertext()) for item in root.findall(".//header/ol/li")]
    assert tokens == ["a1", "\u00b7b2"]


def test_edits_are_shown():
    edited = View("test", (), edits=("layers.0.mlp_out=0",))
    assert "changed: layers.0.mlp_out=0" in render(edited, Screen())


def test_every_part_has_a_name():
    root = page(TABLE, GRID, FACTS, Sheet("all", (GRID,), 1), Table("", (Column("x"),), []))
    names = {one.get("id"): one.text for one in root.findall(".//h2")}
    assert list(names.values()) == ["a table", "a grid", "some facts", "all"]
    for one in [*root.findall(".//table"), *root.findall(".//div[@role='region']")]:
        assert one.get("aria-labelledby") in names or one.get("aria-label")


def test_headings_have_a_scope():
    root = page(TABLE, GRID)
    assert {one.get("scope") for one in root.findall(".//thead//th")} == {"col"}
    assert {one.get("scope") for one in root.findall(".//tbody//th")} == {"row"}


def test_a_grid_has_its_numbers_on_colours():
    root = page(GRID)
    assert cells(root) == [["0 r0", "1.00", "-"], ["1 r1", "0.25", "0.75"]]
    assert classes(root, ".//tbody/tr/td") == [
        "number step s64",
        "number hidden",
        "number step s16",
        "number step s48",
    ]
    legend = "".join(root.find(".//p[@class='legend']").itertext())
    assert legend == "0.001.00hidden"


def test_next_to_nothing_has_no_colour_and_wrong_numbers_stand_out():
    root = page(grid([[0.001, NAN, INF, 1.0, -1.0]], kind="signed"))
    assert classes(root, ".//tbody/tr/td") == [
        "number",
        "number step wrong",
        "number step wrong",
        "number step d64",
        "number step d0",
    ]
    assert cells(root)[0][2:4] == ["nan", "inf"]
    assert "hidden" not in "".join(root.find(".//p[@class='legend']").itertext())


def test_labels_that_are_words_have_no_positions():
    assert cells(page(grid([[1.0]], rows=["a b"], row_kind="text"))) == [["a b", "1.00"]]


def test_a_probability_has_a_bar():
    columns = (Column("p", "probability"),)
    root = page(Table("", columns, [(0.25,), (None,), (NAN,), (1.0,)]))
    assert [row[0] for row in cells(root)] == ["0.2500", "-", "nan", "1.0000"]
    widths = [one.get("style") for one in root.findall(".//span[@class='bar']/i")]
    assert widths == ["width:25%", "width:0%", "width:100%"]


def test_a_list_is_a_strip():
    root = page(TABLE)
    first, second = root.findall(".//svg[@class='strip']")
    assert classes(first, "path") == ["d64", "d0", "d40"]
    assert classes(second, "path") == ["d32", "d48", "d16"]
    assert first.get("aria-label") == "3 numbers from -1 to 1"
    assert "".join(root.find(".//p[@class='legend']").itertext()) == "-11"


def test_a_sheet_is_small_pictures():
    root = page(Sheet("all", (GRID, grid([[0.0, NAN]])), 2))
    assert [one.text for one in root.findall(".//h3")] == ["a grid", "a grid"]
    first, second = root.findall(".//svg")
    assert classes(first, "path") == ["s64", "s16", "s48"]  # one is hidden
    assert classes(second, "path") == ["s0", "wrong"]
    assert "repeat(2," in root.find(".//div[@class='sheet']").get("style")


def test_a_sheet_without_grids_is_empty():
    assert page(Sheet("all", (), 2)).findall(".//svg") == []


def test_facts_keep_their_lines():
    part = Facts("", ((Column("x"), "a\n  b"), (Column("y", "count"), None)))
    assert [one.text for one in page(part).findall(".//dd")] == ["a\n  b", "-"]


def test_precision_is_obeyed():
    part = grid([[1.23456]], kind="signed")
    assert cells(page(part, screen=Screen(precision=2))) == [["0 r0", "1.2"]]


@pytest.mark.parametrize("light", [True, False])
@pytest.mark.parametrize("steps", [SEQUENTIAL, DIVERGING], ids=lambda s: s.letter)
def test_colours_are_those_of_the_terminal(steps, light):
    stops = scale_for(steps.kind, light=light).stops
    for share in (steps.low, 0.25, 1.0):
        shade = colour(share, stops)
        rule = f".{steps.of(share, 1.0)}{{--c:{code(shade)};--i:{code(ink(shade))}}}"
        assert rule in rules(light=light)
    assert steps.of(0.0, 1.0) == f"{steps.letter}{STEPS // 2 if steps.low else 0}"


def test_every_class_has_a_rule():
    text = render(EVERYTHING, Screen())
    for name in set(re.findall(r'class="(?:number step )?([sd]\d+)"', text)):
        assert text.count(f".{name}{{") == 2


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_text_stays_text(text):
    parts = (
        Note(text),
        Table(text, (Column(text), Column("t", "token")), [(text, text)]),
        Facts(text, ((Column(text), text),)),
        Grid(text, (text,), (text,), np.ones((1, 1))),
        Sheet(text, (Grid(text, (text,), (text,), np.ones((1, 1))),), 1),
    )
    given = {"text": text, "ids": [1], "tokens": [text], "prepended": 0, "appended": 0}
    whole = render(View("test", parts, {"name": text}, given), Screen())
    root = ET.fromstring(whole)  # noqa: S314
    words = "".join(root.itertext())
    assert words.count(visible(text)) >= 9
    assert words.count(token_glyphs(text)) >= 4
    tags = {one.tag for one in root.iter()}
    assert not tags & {"script", "img", "b", "a", "iframe", "object"}
    names = {name for one in root.iter() for name in one.attrib}
    assert not [name for name in names if name.startswith("on")]


class Browser(HTMLParser):
    """The tags that a browser, which is not strict, would see."""

    def __init__(self, text):
        super().__init__()
        self.tags = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        del attrs
        self.tags.append(tag)


@given(st.text(max_size=30))
def test_any_text_makes_the_same_page(text):
    def tags(words):
        table = Table(words, (Column(words), Column("t", "token")), [(words, words)])
        return Browser(render(view(Note(words), table), Screen())).tags

    assert tags(f"x{text}") == tags("x")
