import numpy as np
import pytest

from gptscope.model.dtypes import BF16
from gptscope.model.pieces import numbers, pieces
from tests.helpers.folders import bf16_bits

FLOAT64 = np.dtype(np.float64)
X = np.arange(60, dtype="float32").reshape(20, 3)


class Rows:
    # A table that is no array, as packed tensors are; it notes how much of it is read at once.
    def __init__(self, array):
        self.array, self.shape, self.dtype, self.read = array, array.shape, array.dtype, []

    def __getitem__(self, index):
        rows = self.array[index]
        self.read.append(rows.size)
        return rows


@pytest.mark.parametrize("at_once", [1, 7, 60, 1 << 18])
@pytest.mark.parametrize("table", [X, X[:, :2], X.T, X.ravel(), X[:1], Rows(X)], ids=str)
def test_every_number_comes_once(table, at_once):
    expected = np.ravel(table.array if isinstance(table, Rows) else table)
    made = np.concatenate(list(numbers(table, FLOAT64, at_once)))
    np.testing.assert_array_equal(made, expected.astype(float), strict=True)


def test_a_row_is_the_least_of_what_is_no_array():
    table = Rows(X)
    list(pieces(table, at_once=7))
    assert set(table.read) == {6}
    assert max(piece.size for (piece,) in pieces(X, at_once=7)) == 7


def test_two_tensors_are_read_at_the_same_places():
    for x, y in pieces(X, Rows(X + 1), at_once=8):
        np.testing.assert_array_equal(x + 1, y, strict=True)


def test_nothing_and_one_number():
    assert list(pieces(np.zeros((3, 0)))) == []
    (one,) = numbers(np.array(2.5), FLOAT64)
    np.testing.assert_array_equal(one, [2.5], strict=True)


def test_pieces_are_as_stored_and_numbers_are_widened():
    stored = bf16_bits(X).view(BF16)
    assert {piece.dtype for (piece,) in pieces(stored)} == {BF16}
    (wide,) = numbers(stored, FLOAT64)
    np.testing.assert_array_equal(wide, X.ravel().astype(float), strict=True)
