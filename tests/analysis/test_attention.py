import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

from gptscope.analysis import attention as a


@st.composite
def patterns(draw):
    """Weights [R, S] whose rows sum to 1 over what they see, and what is hidden."""
    n = draw(st.integers(1, 7))
    scores = draw(arrays(np.float64, (n, n), elements=st.floats(-30, 30)))
    hidden = np.triu(np.ones((n, n), bool), 1) & draw(st.booleans())
    weights = np.exp(np.where(hidden, -np.inf, scores))
    return weights / weights.sum(axis=1, keepdims=True), hidden


@given(patterns())
def test_rows_sum_to_one_without_the_first_column(pattern):
    weights, hidden = pattern
    before = weights.copy()
    kept, unseen = a.no_first(weights, hidden)
    assert_array_equal(weights, before)
    assert unseen[:, 0].all()
    nothing = unseen.all(axis=1)
    assert_array_equal(nothing, weights[:, 1:].sum(axis=1) == 0)
    assert_allclose(kept.sum(axis=1), np.where(nothing, 0, 1))
    assert_array_equal(unseen[~nothing, 1:], hidden[~nothing, 1:])
    ratio = weights[~nothing, 1:] / weights[~nothing, 1:].sum(axis=1, keepdims=True)
    assert_allclose(kept[~nothing, 1:], ratio)


def test_what_is_not_a_number_is_not_hidden():
    weights = np.array([[1.0, 0.0], [np.nan, np.nan]])
    kept, unseen = a.no_first(weights, np.array([[False, True], [False, False]]))
    assert_array_equal(unseen, [[True, True], [True, False]])
    assert np.isnan(kept[1, 1])


@given(arrays(np.float32, 9, elements=st.floats(0, 1, width=32)))
def test_powers_of_ten_rise_with_the_weight(weights):
    powers = a.powers_of_ten(weights)
    assert powers.dtype == np.float32
    assert (np.diff(powers[np.argsort(weights)]) >= 0).all()
    assert ((powers >= 0) & (powers <= 6)).all()
    assert_allclose(10.0**powers / 1e6, np.maximum(weights, 1e-6), rtol=1e-4)


@pytest.mark.parametrize(("weight", "power"), [(1, 6), (0.1, 5), (1e-3, 3), (1e-6, 0), (0, 0)])
def test_powers_of_ten(weight, power):
    assert_allclose(a.powers_of_ten(np.float32([weight])), [power], atol=1e-6)


@given(patterns())
def test_ranks_are_an_order_of_what_a_row_sees(pattern):
    weights, hidden = pattern
    ranks, shares = a.ranks(weights, hidden), a.rank_shares(weights, hidden)
    for w, r, share, h in zip(weights, ranks, shares, hidden, strict=True):
        n = int((~h).sum())
        assert sorted(r[~h]) == list(range(1, n + 1))
        assert (r[h] == 0).all()
        assert (np.diff(w[~h][np.argsort(r[~h])]) <= 0).all()
        assert_allclose(share[~h], (n + 1 - r[~h]) / n)


def test_equal_weights_rank_from_the_left_and_broken_rows_have_no_ranks():
    weights = np.array([[0.25, 0.5, 0.25], [np.nan, 0.5, 0.5]])
    hidden = np.zeros((2, 3), bool)
    assert_array_equal(a.ranks(weights, hidden)[0], [2, 1, 3])
    assert_allclose(a.rank_shares(weights, hidden), [[2 / 3, 1, 1 / 3], [np.nan] * 3])


@given(patterns(), st.data())
def test_a_sum_is_that_of_its_rows(pattern, data):
    weights, _ = pattern
    rows = data.draw(st.lists(st.integers(0, len(weights) - 1), min_size=1, max_size=5))
    total = a.summed(weights, rows)
    assert_allclose(total, sum(weights[i] for i in rows))
    assert_allclose(total.sum(), len(rows))


@given(patterns(), st.integers(1, 9))
def test_what_is_read_most_comes_first(pattern, n):
    for weights, hidden in zip(*pattern, strict=True):
        most = a.most_read(weights, hidden, n)
        seen = np.flatnonzero(~hidden)
        assert len(most) == min(n, len(seen))
        assert set(most) <= set(seen.tolist())
        assert list(weights[most]) == sorted(weights[seen], reverse=True)[:n]


def test_there_is_no_order_where_something_seen_is_not_a_number():
    weights = np.array([0.5, np.nan, 0.25])
    assert a.most_read(weights, np.zeros(3, bool), 2) == []
    assert a.most_read(weights, np.array([False, True, False]), 2) == [0, 2]
    assert a.most_read(weights, np.ones(3, bool), 2) == []


@given(patterns(), st.data())
def test_a_window_and_what_is_outside_make_the_whole(pattern, data):
    weights, _ = pattern
    n = len(weights)
    rows, columns = (
        data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=n, unique=True))
        for _ in range(2)
    )
    shown = a.windowed(weights, rows, columns)
    assert_array_equal(shown, weights[rows][:, columns])
    assert_allclose(shown.sum(axis=1) + a.outside(weights[rows], columns), np.ones(len(rows)))
