import io
import zipfile

import numpy as np
import pytest

from gptscope.render.as_npz import Names, archive, column, render, slug
from gptscope.render.screen import Screen
from gptscope.view import Column, Facts, Sheet, Table
from tests.helpers.views import EVERYTHING, FACTS, GRID, INF, NAN, NOTE, grid, view


def read(*parts):
    return load(render(view(*parts), Screen()))


def load(whole):
    with np.load(io.BytesIO(whole), allow_pickle=False) as arrays:
        return dict(arrays)


def same(found, expected):
    np.testing.assert_array_equal(found, expected, strict=True)


def test_what_was_fed():
    arrays = load(render(EVERYTHING, Screen()))
    same(arrays["ids"], np.array([1, 2]))
    same(arrays["tokens"], np.array(["a", " b"]))


def test_a_grid_has_its_labels_beside_it():
    arrays = read(GRID)
    assert list(arrays) == ["a_grid", "a_grid.rows", "a_grid.columns", "a_grid.hidden"]
    same(arrays["a_grid"], np.array([[1.0, NAN], [0.25, 0.75]]))
    same(arrays["a_grid.rows"], np.array(["r0", "r1"]))
    same(arrays["a_grid.columns"], np.array(["c0", "c1"]))
    same(arrays["a_grid.hidden"], np.array([[False, True], [False, False]]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_grid_keeps_its_numbers_bit_for_bit(dtype):
    values = np.array([[NAN, INF, -0.0, 1e-30]], dtype)
    found = read(grid(values))["a_grid"]
    assert (found.dtype, found.tobytes()) == (values.dtype, values.tobytes())


def test_what_is_hidden_and_what_is_wrong_are_apart():
    arrays = read(grid([[NAN, 1.0]], hidden=np.array([[False, True]])))
    assert np.isnan(arrays["a_grid"]).all()
    same(arrays["a_grid.hidden"], np.array([[False, True]]))


def test_a_table_is_an_array_for_each_column():
    arrays = read(*EVERYTHING.parts[:1])
    same(arrays["a_table.text"], np.array(["some words", ""]))
    same(arrays["a_table.token"], np.array([" tok", "\n"]))
    same(arrays["a_table.id"], np.array([7, NAN]))
    same(arrays["a_table.signed"], np.array([-1.5, NAN]))
    same(arrays["a_table.vector"], np.float32([[1, -1, 0.25], [0, 0.5, -0.5]]))


def test_facts_are_single_values():
    arrays = read(FACTS)
    assert list(arrays) == ["some_facts.name", "some_facts.n"]
    same(arrays["some_facts.name"], np.array("value"))
    same(arrays["some_facts.n"], np.array(1000))
    lists = Facts("", ((Column("v", "vector"), [1.0, 2.0]), (Column("w", "count"), None)))
    same(read(lists)["facts.v"], np.array([1.0, 2.0]))
    same(read(lists)["facts.w"], np.array(NAN))


def test_a_sheet_is_its_grids():
    arrays = read(Sheet("All heads", (grid([[1.0]]), grid([[0.5]])), 2))
    names = [name for name in arrays if not name.endswith(("rows", "columns"))]
    assert names == ["all_heads.a_grid", "all_heads.a_grid_2"]
    same(arrays["all_heads.a_grid_2"], np.array([[0.5]]))


def test_a_note_is_left_out():
    assert read(NOTE) == {}


def test_no_name_is_taken_twice():
    tables = [Table(title, (Column("x"), Column("X!")), [("a", "b")]) for title in ("", "", "Ids")]
    assert list(read(*tables)) == [
        *("table.x", "table.x_2"),
        *("table_2.x", "table_2.x_2"),
        *("ids.x", "ids.x_2"),
    ]
    names = Names()
    assert [names.new(name) for name in ("a", "a", "a_2", "a")] == ["a", "a_2", "a_2_2", "a_3"]


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Layer 0, head 1: weights", "layer_0_head_1_weights"),
        ("\u00b7\u6f22../../etc", "etc"),
        ("\u6f22", "grid"),
        ("", "grid"),
        ("a" * 99, "a" * 80),
    ],
)
def test_names_are_plain(title, name):
    assert slug(title, "grid") == name


@pytest.mark.parametrize(
    ("values", "kind", "expected"),
    [
        ([1, 2], "count", np.array([1, 2])),
        ([np.int32(1), None], "id", np.array([1, NAN])),
        ([2**70, 1], "count", np.array([2.0**70, 1])),
        ([np.float32(0.1), None], "signed", np.array([0.1, NAN], "float32")),
        ([np.float32(0.1), 0.5], "signed", np.array([np.float32(0.1), 0.5])),
        ([None, None], "text", np.array(["", ""])),
        ([None], "length", np.array([NAN])),
        ([], "token", np.array([], str)),
        ([], "signed", np.array([], float)),
        ([], "vector", np.zeros((0, 0))),
        (["a", 1, None], "number", np.array(["a", "1", ""])),
        (["a\0"], "token", np.array(["a<0x00>"])),
    ],
    ids=str,
)
def test_a_column_is_an_array(values, kind, expected):
    same(column(values, kind), expected)


def test_the_date_within_is_fixed():
    with zipfile.ZipFile(io.BytesIO(render(EVERYTHING, Screen()))) as whole:
        assert {one.date_time for one in whole.infolist()} == {(1980, 1, 1, 0, 0, 0)}
        assert whole.testzip() is None


def test_an_archive_is_what_numpy_writes():
    arrays = {"layers.0.input": np.eye(3, dtype="float32"), "ids": np.arange(3)}
    ours, theirs = io.BytesIO(), io.BytesIO()
    archive(ours, arrays)
    np.savez(theirs, **arrays)
    assert load(ours.getvalue()).keys() == load(theirs.getvalue()).keys()
    for name, array in load(ours.getvalue()).items():
        same(array, arrays[name])
