import csv
import io

import numpy as np
import pytest

from gptscope.render.as_csv import cell, render
from gptscope.render.screen import Screen
from gptscope.view import Column, Facts, Table
from tests.helpers.views import EVERYTHING, FACTS, GRID, INF, NAN, NOTE, grid, view


def read(*parts):
    text = render(view(*parts), Screen())
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


def test_a_grid_has_its_labels_on_two_sides():
    assert read(GRID) == [["", "c0", "c1"], ["r0", "1.0", ""], ["r1", "0.25", "0.75"]]


def test_only_what_is_hidden_is_empty():
    wrong = grid([[NAN, 1.0]], hidden=np.array([[False, True]]))
    assert read(wrong)[1] == ["r0", "nan", ""]


def test_facts_are_two_rows():
    assert read(FACTS) == [["name", "n"], ["value", "1000"]]


def test_a_fact_that_is_not_there_is_empty():
    assert read(Facts("", ((Column("x"), "a"), (Column("y", "count"), None))))[1] == ["a", ""]


def test_a_note_is_left_out():
    assert read(FACTS, NOTE) == read(FACTS)


def test_a_list_takes_a_column_for_each_number():
    head, row, _ = read(*EVERYTHING.parts[:1])
    assert head[-3:] == ["vector[0]", "vector[1]", "vector[2]"]
    assert row[:6] == ["some words", " tok", "7", "1234", "0.25", "-1.5"]
    assert row[-3:] == ["1.0", "-1.0", "0.25"]


def test_a_table_without_rows_keeps_its_head():
    assert read(Table("", (Column("x"), Column("v", "vector")), [])) == [["x", "v"]]


def test_several_parts_have_titles_and_a_blank_line_between_them():
    rows = read(GRID, FACTS)
    assert [rows[0], rows[4], rows[5]] == [["a grid"], [], ["some facts"]]
    assert len(rows) == 8


def test_a_part_without_a_title_has_no_line_for_it():
    facts = Facts("", FACTS.pairs)
    assert read(facts, GRID, facts) == [
        *read(facts),
        [],
        ["a grid"],
        *read(GRID),
        [],
        *read(facts),
    ]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_nan_and_infinity_are_told(dtype):
    values = np.array([[NAN, INF, -INF]], dtype)
    assert read(grid(values))[1] == ["r0", "nan", "inf", "-inf"]
    columns = tuple(Column(f"x{i}", "signed") for i in range(3))
    assert read(Table("", columns, [tuple(values[0])]))[1] == ["nan", "inf", "-inf"]


def test_none_is_empty():
    table = Table("", (Column("x", "id"), Column("y")), [(None, "a")])
    assert read(table) == [["x", "y"], ["", "a"]]


def test_digits_give_back_the_same_number():
    values = np.random.default_rng(0).normal(size=100).astype("float32")
    assert np.array_equal(np.float32(read(grid([values]))[1][1:]), values)


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@cmd"])
def test_text_is_no_formula(text):
    assert cell(text) == f"'{text}"
    columns = (Column(text), Column("v"))
    assert read(Table("", columns, [("a", text)]))[0][0][0] == "'"
    assert read(Facts("", ((Column("x"), text),)))[1][0][0] == "'"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\rb", "a<0x0D>b"),
        ("\x1b[31m", "<0x1B>[31m"),
        ("\u202e", "<U+202E>"),
        ("\t=1", "<0x09>=1"),
    ],
)
def test_control_characters_are_shown(text, shown):
    columns = (Column(text), Column("b"))
    assert read(Table("", columns, [("x", text)])) == [[shown, "b"], ["x", shown]]


@pytest.mark.parametrize("value", [-1, -1.5, np.float32(-2), "a=1", " =1", "", "'"])
def test_numbers_and_other_text_stay(value):
    assert cell(value) is value


@pytest.mark.parametrize(
    "text",
    [
        'a "quoted", word',
        "two\nlines",
        "\n\n",
        "\u6f22\U0001f469",
    ],
    ids=ascii,
)
def test_text_comes_back(text):
    assert read(Table("", (Column("a"), Column("b")), [("x", text)])) == [["a", "b"], ["x", text]]


@pytest.mark.parametrize(("text", "shown"), [("=1+1", "'=1+1"), ("\x1b[31m", "<0x1B>[31m")])
def test_a_title_is_a_cell_like_others(text, shown):
    part = Facts(text, FACTS.pairs)
    assert [row for row in read(part, part) if len(row) == 1] == [[shown], [shown]]
