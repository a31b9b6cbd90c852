import json

import numpy as np
import pytest

from gptscope import __version__
from gptscope.render.as_json import plain, render
from gptscope.render.screen import Screen
from gptscope.view import Column, Table
from tests.helpers.views import EDITS, EVERYTHING, INF, INPUT, NAN, grid, view


def read(*parts):
    return json.loads(render(view(*parts), Screen()))["parts"]


def test_the_envelope():
    answer = json.loads(render(EVERYTHING, Screen()))
    parts = answer.pop("parts")
    assert answer == {
        "schema": "gptscope/view/2",
        "gptscope": __version__,
        "command": "test",
        "model": {"name": "a model"},
        "input": INPUT,
        "edits": list(EDITS),
    }
    assert [part["kind"] for part in parts] == [
        *("table", "grid", "facts", "note", "grid", "passage")
    ]


def test_every_kind_of_part():
    table, matrix, facts, note, *_ = read(*EVERYTHING.parts)
    assert table["columns"][4] == {"name": "probability", "kind": "probability"}
    assert table["rows"][0]["vector"] == [1, -1, 0.25]
    assert table["rows"][1]["count"] is None
    assert matrix == {
        "kind": "grid",
        "title": "a grid",
        "rows": ["r0", "r1"],
        "columns": ["c0", "c1"],
        "values": [[1.0, None], [0.25, 0.75]],
    }
    assert facts["facts"] == {"name": "value", "n": 1000}
    assert note == {"kind": "note", "text": "A note."}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_json_lacks(dtype):
    values = np.array([[NAN, INF, -INF, 0.0]], dtype)
    assert read(grid(values))[0]["values"] == [["NaN", "Infinity", "-Infinity", 0.0]]
    (table,) = read(Table("", (Column("x", "signed"),), [(value,) for value in values[0]]))
    assert [row["x"] for row in table["rows"]] == ["NaN", "Infinity", "-Infinity", 0.0]


def test_null_is_only_what_is_not_there():
    part = grid([[NAN, NAN, 0.0, 0.0]], hidden=np.array([[False, True, False, True]]))
    assert read(part)[0]["values"] == [["NaN", None, 0.0, None]]
    (table,) = read(Table("", (Column("x", "signed"),), [(None,), (NAN,)]))
    assert [row["x"] for row in table["rows"]] == [None, "NaN"]


def test_digits_give_back_the_same_number_and_are_few():
    rng = np.random.default_rng(0)
    values = rng.normal(size=500).astype("float32") * np.float32(10) ** rng.integers(-30, 30, 500)
    text = render(view(grid([values])), Screen())
    found = np.float32(json.loads(text)["parts"][0]["values"][0])
    assert np.array_equal(found, values.astype("float32"))
    assert json.dumps(plain(np.float32(0.1))) == "0.1"
    assert plain(np.float64(0.1)) == 0.1


@pytest.mark.parametrize("value", [np.int64(3), np.uint8(3), np.float32(3), 3])
def test_numpy_scalars_are_numbers(value):
    assert json.dumps(plain(value)) in ("3", "3.0")


@pytest.mark.parametrize("value", [True, False, None, "x", 2**70])
def test_plain_values_stay(value):
    assert plain(value) is value


def test_a_numpy_boolean_is_a_boolean():
    assert plain(np.bool_(1)) is True


def test_all_of_it_is_one_line_of_ascii():
    text = render(view(grid([[1.0]], rows=["\u6f22\x1b\u202e\n"])), Screen())
    assert text.isascii()
    assert text.count("\n") == 1
    assert "\x1b" not in text
