import threading

import numpy as np
import pytest

from gptscope.engine import rows
from gptscope.engine.ops import ACTIVATIONS, mask_scores, softmax
from gptscope.engine.rows import by_rows

# Small enough that micro arrays count as large, so that they are cut.
SHAPES = [(7, 5), (3, 7, 5), (2, 2, 3, 4), (1, 40), (40, 1), (3, 1, 9), (64, 2)]


@pytest.fixture
def cut(monkeypatch):
    monkeypatch.setattr(rows, "LARGE", 8)
    monkeypatch.setattr(rows, "SLICE", 12)


def numbers(shape, dtype="float32"):
    return np.random.default_rng(3).normal(0, 3, shape).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["softmax", *ACTIVATIONS])
def test_slices_give_what_the_whole_gives(monkeypatch, name, shape, dtype):
    x, formula = numbers(shape, dtype), ACTIVATIONS.get(name, softmax)
    whole = formula(x)
    monkeypatch.setattr(rows, "LARGE", 8)
    monkeypatch.setattr(rows, "SLICE", 12)
    np.testing.assert_allclose(formula(x), whole, rtol=1e-6, strict=True)


@pytest.mark.parametrize("shape", [(3, 7, 7), (3, 7, 9), (7, 7, 7), (2, 1, 30), (5, 2, 2)])
def test_an_argument_with_the_same_rows_is_cut_with_them(monkeypatch, shape):
    x, hidden = numbers(shape), numbers(shape[1:]) > 0
    whole = mask_scores(x, hidden, 0.25)
    monkeypatch.setattr(rows, "LARGE", 8)
    monkeypatch.setattr(rows, "SLICE", 12)
    np.testing.assert_array_equal(mask_scores(x, hidden, 0.25), whole, strict=True)


@pytest.mark.usefixtures("cut")
@pytest.mark.parametrize("shape", SHAPES)
def test_every_row_is_seen_once(shape):
    seen = []

    @by_rows
    def double(x):
        seen.append(x.shape)
        return 2 * x

    x = numbers(shape)
    np.testing.assert_array_equal(double(x), 2 * x, strict=True)
    assert sum(part[-2] for part in seen) == shape[-2]
    assert {part[:-2] + part[-1:] for part in seen} == {shape[:-2] + shape[-1:]}


@pytest.mark.usefixtures("cut")
def test_large_arrays_are_cut_and_small_or_flat_ones_are_not():
    seen = []

    @by_rows
    def double(x):
        seen.append(threading.current_thread() is threading.main_thread())
        return 2 * x

    double(numbers((7, 1)))
    double(numbers(50))
    assert seen == [True, True]
    double(numbers((8, 3)))
    assert seen == [True, True, False, False]


@pytest.mark.usefixtures("cut")
def test_keywords_are_handed_on():
    @by_rows
    def scaled(x, factor=1.0):
        return x * factor

    x = numbers((8, 3))
    np.testing.assert_array_equal(scaled(x, factor=3.0), x * np.float32(3), strict=True)


@pytest.mark.usefixtures("cut")
def test_a_fault_in_a_slice_is_a_fault():
    @by_rows
    def never(_x):
        raise FloatingPointError("no such number")

    with pytest.raises(FloatingPointError, match="no such number"):
        never(numbers((8, 3)))


def test_the_real_limits_cut_as_well():
    x = numbers((1025, 1024))
    expected = np.exp(x.astype("float64"))
    expected /= expected.sum(-1, keepdims=True)
    np.testing.assert_allclose(softmax(x), expected.astype("float32"), rtol=2e-5, strict=True)


def test_the_formula_keeps_its_name():
    assert softmax.__name__ == "softmax"
    assert "Vaswani" in softmax.__doc__


@pytest.mark.usefixtures("cut")
def test_a_thread_never_waits_for_others(monkeypatch):
    class Pool:  # where all threads wait, they wait for ever
        busy = False

        def map(self, formula, parts):
            assert not self.busy
            self.busy = True
            yield from map(formula, parts)
            self.busy = False

    one = Pool()
    monkeypatch.setattr(rows, "pool", lambda: one)
    mask_scores(numbers((3, 7, 9)), np.zeros((7, 9), bool), 0.25, limit=2.0)
