import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from gptscope.glyphs import token_glyphs, visible
from gptscope.render.as_markdown import note, plain, render, token
from gptscope.render.screen import Screen
from gptscope.view import Column, Facts, Note, Sheet, Table
from tests.helpers.views import EVERYTHING, FACTS, GRID, INF, NAN, grid, view

HOSTILE = [
    "a|b",
    "`code`",
    "<b>x</b>",
    "<script>",
    "&amp;",
    "[a](b)",
    "![a](b)",
    "*a* _b_ __c__",
    "~~a~~",
    "$x$",
    "\\|",
    "\\",
    "a\\",
    "`",
    "``|`",
    "https://a.b",
    "www.a.b",
    "@me",
    "a@b.c",
    ":smile:",
    "#12",
    "layers.0.heads.1.mean_square",
    "\x1b[31m",
    "\u202e",
    "two\nlines",
]
PAGE = MarkdownIt("commonmark").enable(["table", "strikethrough"])


class Reader(HTMLParser):
    """The words and the tags of a page."""

    def __init__(self, page):
        super().__init__()
        self.words, self.tags = "", set()
        self.feed(page)

    def handle_data(self, data):
        self.words += data

    def handle_starttag(self, tag, attrs):
        assert attrs in ([], [("style", "text-align:right")])
        self.tags.add(tag)


def shown(markdown):
    reader = Reader(PAGE.render(markdown))
    return reader.words.strip("\n"), reader.tags - {"p"}


def body(*parts, screen=None):
    head, _, rest = render(view(*parts), screen or Screen()).partition("\n\n")
    assert head == "## gptscope test"
    return rest.removesuffix("\n")


def lines(*parts):
    return body(*parts).split("\n")


def test_what_was_fed_stands_above():
    text = render(EVERYTHING, Screen())
    assert text.split("\n\n")[1] == "a model \u00b7 2 tokens: 1 2 (nothing prepended)"


def test_a_grid_is_a_table():
    assert lines(GRID) == [
        "### a grid",
        "",
        "|  | 0 `c0` | 1 `c1` |",
        "| --- | ---: | ---: |",
        "| 0 `r0` | 1.00 | - |",
        "| 1 `r1` | 0.25 | 0.75 |",
    ]


def test_labels_that_are_words_have_no_positions():
    part = grid([[1.0]], rows=["a*b"], row_kind="text")
    assert lines(part)[-1] == "| a\\*b | 1.00 |"


def test_a_table_has_numbers_as_the_terminal_has_them():
    _, _, head, sides, first, second = lines(*EVERYTHING.parts[:1])
    assert head.startswith("| text | token | id | count | probability |")
    assert sides == "| --- | --- |" + " ---: |" * 9
    assert first == (
        "| some words | `\u00b7tok` | 7 | 1,234 | 0.2500 | -1.500 | 2.000 | 0.8 | 2e-05 | -0.5000 "
        "| 1.000 -1.000 0.250 |"
    )
    assert second == "|  | `\u21b5` | - | - | - | - | - | - | - | - | 0.000 0.500 -0.500 |"


def test_precision_is_obeyed():
    assert lines_of_precision(2)[-1] == "| 0 `r0` | 1.2 |"
    assert lines_of_precision(None)[-1] == "| 0 `r0` | 1.235 |"


def lines_of_precision(precision):
    part = grid([[1.23456]], kind="signed")
    return body(part, screen=Screen(precision=precision)).split("\n")


def test_facts_are_a_table_without_a_head():
    assert lines(FACTS)[2:] == [
        "|  |  |",
        "| --- | --- |",
        "| name | value |",
        "| n | 1,000 |",
    ]


def test_lines_of_a_fact_stay_lines():
    part = Facts("", ((Column("x"), "def f():\n  return 1"), (Column("y", "count"), None)))
    assert lines(part)[-2:] == ["| x | def f():<br>&nbsp;&nbsp;return 1 |", "| y | - |"]


def test_a_sheet_is_its_grids():
    text = body(Sheet("all", (GRID, GRID), 2))
    assert re.findall("^#+ .*$", text, re.MULTILINE) == ["### all", "#### a grid", "#### a grid"]


def test_a_table_without_rows_keeps_its_head():
    assert lines(Table("", (Column("x"),), [])) == ["| x |", "| --- |"]


def test_numbers_that_are_none():
    part = grid([[NAN, INF, -INF]], kind="signed", hidden=np.array([[False, False, False]]))
    assert lines(part)[-1] == "| 0 `r0` | nan | inf | -inf |"


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_text_stays_text(text):
    assert shown(plain(text))[0] == visible(text)
    assert shown(plain(text))[1] <= {"span"}
    table = Table("", (Column(text), Column("t", "token")), [(text, text)])
    words, tags = shown(body(table))
    assert words.count(visible(text)) >= 2
    assert token_glyphs(text) in words
    assert tags <= {"table", "thead", "tbody", "tr", "th", "td", "code", "span"}


@pytest.mark.parametrize(
    "text", ["1. x", "12) x", "- x", "+ x", "# x", "> x", "===", "---", "    x", "* x", "```"]
)
def test_a_note_is_a_paragraph(text):
    assert shown(note(text)) == (text.strip(), set())
    assert lines(Note(text)) == [note(text)]


@pytest.mark.parametrize("text", ["@me", "a@b", ":smile:", "#12", "https://x", "www.x", "HTTP://x"])
def test_github_finds_nothing(text):
    assert "<span>" in plain(text)
    assert not re.search(r"@\w|:\w+:|#\d|://|www\.", plain(text))


@pytest.mark.parametrize("text", ["a: b", "a # b", "p_i = x * y".replace("*", "x"), "-> [", "1.5"])
def test_harmless_text_is_hardly_changed(text):
    assert plain(text) == text.replace("[", "\\[")


@given(st.text(max_size=20))
def test_any_text_stays_text(text):
    words, tags = shown(note(text))
    assert (words, tags - {"span"}) == (visible(text.strip()).strip(), set())
    if text:
        words, tags = shown(f"| x |\n| --- |\n| {token(text)} |")
        assert words.replace("\n", "") == "x" + token_glyphs(text)
        assert tags == {"table", "thead", "tbody", "tr", "th", "td", "code"}
