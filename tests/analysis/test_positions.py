import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gptscope.analysis.positions import cosine_similarity, similarity_by_distance, wavelengths
from gptscope.model.positions import sinusoidal_positions

TABLE = np.random.default_rng(0).normal(size=(7, 5))
even = st.integers(1, 20).map(lambda half: 2 * half)


def test_wavelengths_of_the_toy():
    expected = 2 * np.pi * np.array([1.0, 10.0, 100.0, 1000.0])
    assert_allclose(wavelengths(8), expected, rtol=1e-12, strict=True)


@given(even)
def test_wavelengths_go_from_two_pi_to_almost_ten_thousand_times_that(d):
    waves = wavelengths(d)
    assert len(waves) == d // 2
    assert_allclose(waves[[0, -1]], [2 * np.pi, 2 * np.pi * 10_000 ** (1 - 2 / d)], rtol=1e-12)
    assert all(waves < 10_000 * 2 * np.pi)
    assert_allclose(waves[1:] / waves[:-1], 10_000 ** (2 / d), rtol=1e-9)


def test_an_odd_width_has_a_sine_more_than_cosines():
    assert len(wavelengths(5)) == 3


@given(even)
def test_the_table_is_made_of_these_waves(d):
    table = sinusoidal_positions(30, d)
    turns = 2 * np.pi * np.arange(30)[:, None] / wavelengths(d)
    assert_allclose(table[:, ::2], np.sin(turns), rtol=0, atol=1e-12)
    assert_allclose(table[:, 1::2], np.cos(turns), rtol=0, atol=1e-12)


def test_similarity_by_hand():
    table = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, -3.0]])
    half = 0.5**0.5
    expected = np.array([[1, half, 0], [half, 1, -half], [0, -half, 1]])
    assert_allclose(cosine_similarity(table), expected, atol=1e-12, strict=True)


def test_similarity_is_symmetric_and_within_one():
    alike = cosine_similarity(TABLE)
    assert_allclose(alike, alike.T, rtol=0, atol=1e-12)
    assert_allclose(np.diag(alike), 1, rtol=1e-12)
    assert np.abs(alike).max() <= 1


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 3.0, 1e200])
def test_length_does_not_count(scale):
    assert_allclose(cosine_similarity(TABLE * scale), cosine_similarity(TABLE), rtol=1e-9)


def test_a_row_of_zeros_is_like_no_other():
    alike = cosine_similarity(np.vstack([TABLE, np.zeros(5)]))
    assert_allclose(alike[:-1, :-1], cosine_similarity(TABLE), rtol=1e-12)
    assert not alike[-1].any()
    assert not alike[:, -1].any()


def test_what_is_not_a_number_stays_so():
    alike = cosine_similarity(np.array([[np.nan, 1.0], [1.0, 1.0]]))
    assert np.isnan(alike).tolist() == [[True, True], [True, False]]


def test_distances_are_the_diagonals():
    found = similarity_by_distance(TABLE, [1, 3, 6])
    assert [len(x) for x in found] == [6, 4, 1]
    for k, x in zip([1, 3, 6], found, strict=True):
        assert_allclose(x, np.diagonal(cosine_similarity(TABLE), k), rtol=1e-12, atol=1e-12)


@given(even, st.integers(2, 40), st.data())
def test_sinusoidal_positions_know_only_distances(d, n, data):
    k = data.draw(st.integers(1, n - 1))
    (found,) = similarity_by_distance(sinusoidal_positions(n, d), [k])
    expected = np.cos(k * 2 * np.pi / wavelengths(d)).mean()
    assert_allclose(found, expected, rtol=0, atol=1e-12)
