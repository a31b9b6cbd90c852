from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose, assert_array_equal

from gptscope.analysis import tensors_summary
from gptscope.analysis.tensors_summary import BINS, SPAN, row_lengths, summaries, summary
from gptscope.model.dtypes import BF16, F8_E4M3, F8_E5M2, widen
from gptscope.model.formats.packed import Grouped, Packed, Reordered

CLOSE = 1e-12
SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=40)
FLOAT64 = np.dtype(np.float64)


def floats(width):
    return st.floats(-1e6, 1e6, width=width, allow_subnormal=False)


ARRAYS = st.one_of(
    *(hnp.arrays(f"f{n}", SHAPES, elements=floats(8 * n)) for n in (4, 8)),
    hnp.arrays("f2", SHAPES, elements=st.floats(-1000, 1000, width=16)),
    hnp.arrays("i4", SHAPES),
    hnp.arrays("?", SHAPES),
)


def check(found, x):
    x = np.asarray(x, np.float64).ravel()
    scale = np.abs(x).max(initial=0)
    m = found.moments
    assert (m.n, m.zeros, m.largest) == (x.size, (x == 0).sum(), scale)
    if x.size:
        assert_allclose([m.mean, m.std], [x.mean(), x.std()], rtol=CLOSE, atol=CLOSE * scale)
    assert sum(found.counts) == x.size


@given(ARRAYS, st.integers(1, 50))
def test_moments_are_those_of_numpy_however_it_is_cut(x, at_once):
    with mock.patch.object(tensors_summary, "AT_ONCE", at_once):
        check(summary([x]), x)


@given(hnp.arrays("f8", st.integers(1, 60), elements=floats(64)), st.integers(1, 50))
def test_huge_numbers_are_scaled_before_they_are_squared(x, at_once):
    with mock.patch.object(tensors_summary, "AT_ONCE", at_once):
        found, like = summary([x * 2.0**950]), summary([x])
    assume(like.moments.largest * 2.0**950 >= tensors_summary.HUGE)
    assert_allclose(found.moments.std, like.moments.std * 2.0**950, rtol=1e-9)
    assert_allclose(found.moments.mean, like.moments.mean * 2.0**950, rtol=1e-9)


@given(st.lists(hnp.arrays("f4", SHAPES, elements=floats(32)), min_size=1, max_size=4))
def test_several_tensors_are_as_one(xs):
    check(summary(xs), np.concatenate([x.ravel() for x in xs]))


@given(hnp.arrays("f8", st.integers(1, 60), elements=floats(64)), st.data())
def test_what_is_not_finite_is_counted_and_left_out(x, data):
    bad = data.draw(hnp.arrays("?", x.shape))
    value = data.draw(st.sampled_from([np.nan, np.inf, -np.inf]))
    found = summary([np.where(bad, value, x)])
    check(found, x[~bad])
    assert found.moments.not_finite == bad.sum()


@pytest.mark.parametrize("dtype", [BF16, F8_E4M3, F8_E5M2], ids=str)
def test_numbers_that_numpy_cannot_read_are_widened(dtype):
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 1 << 8 * dtype.itemsize, (30, 7), f"u{dtype.itemsize}")
    x = widen(bits.view(dtype), FLOAT64)
    good = np.isfinite(x)
    found = summary([bits.view(dtype)])
    assert found.moments.not_finite == (~good).sum()
    check(found, x[good])


def test_packed_rows_are_expanded():
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 256, (4, 5, 3), np.uint8)
    packed = Packed(rows, (4, 5, 6), lambda r: np.repeat(r, 2, axis=1).astype(np.float32))
    check(summary([packed]), np.asarray(packed))
    grouped = Grouped(rng.integers(-9, 9, (6, 8), np.int8), rng.random((6, 2), np.float32))
    check(summary([grouped]), np.asarray(grouped))
    check(summary([Reordered(grouped, np.arange(6)[::-1])]), np.asarray(grouped))


def test_memory_stays_small():
    x = np.broadcast_to(np.float16(0.5), (1 << 12, 1 << 8))
    with mock.patch.object(tensors_summary, "moments", wraps=tensors_summary.moments) as seen:
        summary([np.array(x)])
    sizes = [call.args[0].size for call in seen.call_args_list]
    assert (max(sizes), sum(sizes)) == (tensors_summary.AT_ONCE, x.size)


@given(hnp.arrays("f8", st.integers(1, 200), elements=floats(64)))
def test_the_histogram_is_that_of_numpy(x):
    found, std = summary([x]), x.std()
    assume(std > 1e-6 * np.abs(x).max())
    ends = x.mean() + std * SPAN / 2 * np.array([-1, 1])
    inside = np.clip(x, *ends)
    expected, edges = np.histogram(inside, BINS, ends)
    near = np.abs(x[:, None] - edges).min() < 1e-9 * max(1, np.abs(x).max())
    if not near:
        assert_array_equal(found.counts, expected)
    assert found.heights.max() == 1


def test_equal_numbers_lie_in_the_middle():
    assert summary([np.full(7, 1.1)]).counts == (0, 0, 0, 0, 7, 0, 0, 0, 0)
    assert_array_equal(summary([np.zeros((0, 3))]).heights, np.zeros(BINS))


def test_groups_come_back_in_their_order():
    groups = [[np.full(n, n, "f4")] for n in range(1, 50)]
    assert [found.moments.mean for found in summaries(groups)] == list(range(1, 50))


@given(hnp.arrays("f4", st.tuples(st.integers(0, 30), st.integers(1, 9)), elements=floats(32)))
def test_lengths_of_rows_are_those_of_numpy(x):
    with mock.patch.object(tensors_summary, "AT_ONCE", 20):
        found = row_lengths(x)
    assert_allclose(found, np.linalg.norm(x.astype(np.float64), axis=1), rtol=CLOSE)
