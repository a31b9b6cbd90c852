import numpy as np
import pytest

from gptscope.engine import products
from gptscope.engine.products import against_rows, linear, product
from gptscope.model.dtypes import BF16, widen
from gptscope.model.formats.packed import Packed
from tests.helpers.folders import bf16_bits

ALLOWED = {"float32": 2e-6, "float64": 1e-14}  # of the scale


@pytest.fixture(params=["as it is", "in pieces"], autouse=True)
def cut(request, monkeypatch):
    if request.param == "in pieces":  # micro matrices count as large
        monkeypatch.setattr(products, "LARGE", 8)
        monkeypatch.setattr(products, "PIECE", 20)
        monkeypatch.setattr(products, "LARGE_PIECE", 30)


def numbers(*shape, seed=0, dtype="float32"):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def same(actual, expected):
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert np.abs(actual - expected).max() <= ALLOWED[str(expected.dtype)] * np.abs(expected).max()


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("stored", ["float64", "float32", "float16", "bf16"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_rows", [1, 3, 16, 17, 40])
def test_a_product_with_weights_of_every_dtype(n_rows, dtype, stored, turned):
    if np.dtype(dtype).itemsize < (8 if stored == "float64" else 0):
        pytest.skip("weights are never narrowed: such a model is computed in float64")
    x, w = numbers(n_rows, 7, dtype=dtype), numbers(11, 7, seed=1)
    narrow = bf16_bits(w).view(BF16) if stored == "bf16" else w.astype(stored)
    weight = narrow.T if turned else np.ascontiguousarray(narrow.T)
    wide = widen(weight, np.dtype(dtype))
    same(product(x, weight), x @ wide)
    same(against_rows(x, weight.T), x @ wide)
    bias = numbers(11, seed=2, dtype=dtype)
    same(linear(x, weight, bias), x @ wide + bias)


@pytest.mark.parametrize("n_rows", [2, 20])
def test_a_product_with_packed_rows(n_rows):
    seen = []

    def expand(rows):
        seen.append(len(rows))
        return rows.astype(np.float32) / 8

    packed = np.arange(77, dtype=np.uint8).reshape(11, 7)
    x = numbers(n_rows, 7)
    same(against_rows(x, Packed(packed, (11, 7), expand)), x @ (packed.T.astype("float32") / 8))
    assert sum(seen) == 11


def test_a_product_changes_neither_factor():
    x, w = numbers(3, 7), numbers(11, 7, seed=1)
    before = x.copy(), w.copy()
    product(x, w.T)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(w, before[1])


def test_products_of_nothing():
    assert against_rows(numbers(3, 7), np.zeros((0, 7), np.float16)).shape == (3, 0)
    assert product(numbers(0, 7), numbers(7, 11)).shape == (0, 11)
    np.testing.assert_array_equal(product(numbers(3, 0), np.zeros((0, 5), np.float16)), 0)


@pytest.mark.parametrize("n_rows", [2, 20])
def test_a_fault_in_a_thread_is_a_fault(n_rows):
    def expand(_):
        raise OSError("the disk is gone")

    packed = Packed(np.zeros((11, 7), np.uint8), (11, 7), expand)
    with pytest.raises(OSError, match="the disk is gone"):
        against_rows(numbers(n_rows, 7), packed)
