import warnings

import numpy as np
import pytest

from gptscope.errors import NotFiniteWarning
from gptscope.model.dtypes import BF16, F8_E4M3, F8_E5M2
from gptscope.model.finite import AT_ONCE, check_finite, first_not_finite, is_finite
from tests.helpers.folders import bf16_bits

BAD = [np.nan, np.inf, -np.inf]


class Rows:
    # A table that is no array, as packed tensors are; it notes how much of it is read at once.
    def __init__(self, array):
        self.array, self.shape, self.dtype, self.read = array, array.shape, array.dtype, []

    def __getitem__(self, index):
        rows = self.array[index]
        self.read.append(rows.size)
        return rows


@pytest.mark.parametrize("value", BAD)
@pytest.mark.parametrize("dtype", ["float64", "float32", "float16"])
@pytest.mark.parametrize("place", [0, 7, -1])
def test_one_number_is_found_wherever_it_is(value, dtype, place):
    x = np.ones((3, 5), dtype)
    assert is_finite(x)
    x.flat[place] = value
    for view in (x, x.T, Rows(x), np.pad(x, 1)[:, 1:-1]):
        assert not is_finite(view)


@pytest.mark.parametrize("value", [*BAD, 3.3e38, -3.3e38, 0.0])
def test_bf16(value):
    stored = bf16_bits(np.array([1, value, -2], "float32")).view(BF16)
    assert is_finite(stored) == np.isfinite(value)


@pytest.mark.parametrize(
    ("dtype", "bad"),
    [(F8_E4M3, {0x7F, 0xFF}), (F8_E5M2, {*range(0x7C, 0x80), *range(0xFC, 0x100)})],
    ids=str,
)
def test_f8(dtype, bad):
    every = np.arange(256, dtype=np.uint8).view(dtype)
    assert {i for i in range(256) if not is_finite(every[i : i + 1])} == bad


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (0, 3)])
def test_shapes_without_numbers_or_without_axes(shape):
    assert is_finite(np.ones(shape, "float32"))


def test_a_single_nan():
    assert not is_finite(np.array(np.nan))


def test_integers_are_finite():
    assert is_finite(np.array([1, 2]))


def test_a_table_is_read_in_pieces():
    table = Rows(np.zeros((4 * AT_ONCE // 64, 64), "float32"))
    assert is_finite(table)
    assert max(table.read) <= AT_ONCE
    assert sum(table.read) == table.array.size


def test_the_first_is_named():
    good, bad = np.ones(2), np.array([1, np.nan])
    assert first_not_finite([("a", good), ("b", bad), ("c", bad)]) == "b"
    assert first_not_finite([("a", good)]) is None


def test_the_warning(tmp_path):
    with pytest.warns(NotFiniteWarning, match=r"^tensor b of .*x holds NaN or infinite numbers$"):
        check_finite([("b", np.array([np.inf]))], tmp_path / "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_finite([("a", np.ones(3))], tmp_path / "x")
