import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import gptscope
from gptscope.analysis import neighbours
from gptscope.analysis.neighbours import combined, has_direction, near, nearest, space
from gptscope.model.dtypes import BF16
from tests.helpers.families import family_folder, one_of_each
from tests.helpers.folders import bf16_bits

SEEDS = st.integers(0, 2**32)


def drawn(seed, n=9, d=5):
    return np.random.default_rng(seed).normal(size=(n, d))


def by_hand(table, directions, *, centred=False):
    table = table - table.mean(axis=0) if centred else table
    sizes = np.outer(np.linalg.norm(directions, axis=1), np.linalg.norm(table, axis=1))
    return directions @ table.T / sizes, directions @ table.T


@pytest.mark.parametrize("centred", [False, True])
@given(SEEDS)
def test_cosines_and_dot_products_are_those_of_their_formulas(centred, seed):
    table, directions = drawn(seed), drawn(seed + 1, 3)
    found = near(space(table, centred=centred), directions)
    cosines, dots = by_hand(table, directions, centred=centred)
    assert_allclose(found.cosines, cosines, atol=1e-12, strict=True)
    assert_allclose(found.dots, dots, atol=1e-12, strict=True)


@pytest.mark.parametrize("centred", [False, True])
@given(SEEDS)
def test_a_row_is_nearest_to_itself_and_nearness_goes_both_ways(centred, seed):
    table = drawn(seed)
    seen = space(table, centred=centred)
    cosines = near(seen, seen.rows(slice(None))).cosines
    assert_allclose(cosines, cosines.T, atol=1e-12)
    assert_allclose(np.diag(cosines), 1, atol=1e-12)
    assert np.abs(cosines).max() <= 1
    assert [nearest(row, 1) for row in cosines] == [[i] for i in range(len(table))]


@given(SEEDS, st.floats(0.01, 100))
def test_a_longer_row_is_as_near_but_its_dot_product_grows(seed, factor):
    table = drawn(seed)
    one, longer = (near(space(table), x) for x in (table[:1], factor * table[:1]))
    assert_allclose(longer.cosines, one.cosines, atol=1e-12)
    assert_allclose(longer.dots, factor * one.dots, rtol=1e-9)


@pytest.mark.parametrize("at_once", [1, 12, 1000])
def test_the_size_of_the_pieces_does_not_matter(monkeypatch, at_once):
    table = drawn(3, 40, 6)
    whole = near(space(table, centred=True), table[:2])
    monkeypatch.setattr(neighbours, "AT_ONCE", at_once)
    parts = near(space(table, centred=True), table[:2])
    assert_allclose(parts.cosines, whole.cosines, atol=1e-12, strict=True)
    assert_allclose(parts.dots, whole.dots, atol=1e-12, strict=True)


def test_how_a_table_is_stored_does_not_matter():
    bits = bf16_bits(drawn(4).astype("float32"))
    wide = (bits.astype("uint32") << 16).view("float32")
    half = wide.astype("float16")
    for stored, same in ((bits.view(BF16), wide), (half, half.astype("float64"))):
        one, two = (near(space(x), drawn(5, 2)) for x in (stored, same))
        assert_array_equal(one.cosines, two.cosines, strict=True)
        assert_array_equal(one.dots, two.dots, strict=True)


@pytest.mark.parametrize("case", one_of_each())
def test_tables_of_every_family(case):
    model = gptscope.load(family_folder(case))
    for table in (model.token_table, model.output_table):
        wide = np.asarray(table[np.arange(table.shape[0])], np.float64)
        filled = wide[np.abs(wide).sum(axis=1) > 0]
        seen = space(table)
        assert_allclose(seen.mean, filled.mean(axis=0), atol=1e-12, strict=True)
        directions = combined(seen, {2: 1})[None]
        assert_array_equal(directions[0], wide[2])
        known = near(seen, directions)
        cosines, dots = by_hand(filled, directions)
        assert_allclose(known.cosines[0, seen.known], cosines[0], atol=1e-12)
        assert_allclose(known.dots[0, seen.known], dots[0], atol=1e-12)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
def test_rows_of_zeros_and_of_no_numbers_are_near_nothing(bad, centred):
    table = drawn(6)
    table[[2, 7]] = bad
    seen = space(table, centred=centred)
    good = np.delete(np.arange(9), [2, 7])
    assert seen.known.tolist() == [i in good for i in range(9)]
    assert_allclose(seen.mean, table[good].mean(axis=0), atol=1e-12)
    found = near(seen, seen.rows([0]))
    assert found.left_out == 2
    assert np.isnan(found.cosines[0, [2, 7]]).all()
    assert np.isnan(found.dots[0, [2, 7]]).all()
    assert sorted(nearest(found.cosines[0], 9)) == good.tolist()


def test_where_all_rows_are_equal_none_has_a_direction_from_their_mean():
    table = np.full((7, 3), 0.7)  # their mean, rounded, is not quite that
    assert near(space(table, centred=True), np.ones((1, 3))).left_out == 7
    seen = space(table)
    assert near(seen, np.ones((1, 3))).left_out == 0
    assert_allclose(near(seen, np.ones((1, 3))).cosines, np.ones((1, 7)))


@given(SEEDS, st.booleans())
def test_a_sum_of_rows_is_what_is_written(seed, centred):
    table = drawn(seed)
    seen = space(table, centred=centred)
    rows = table - table.mean(axis=0) if centred else table
    made = combined(seen, {1: 1, 4: -1, 6: 1})
    assert_allclose(made, rows[1] - rows[4] + rows[6], atol=1e-12, strict=True)
    assert_allclose(combined(seen, {4: 0, 6: 1}), rows[6], atol=1e-12, strict=True)
    assert has_direction(seen, made)
    assert not has_direction(seen, combined(seen, {4: 0}))


def test_the_nearest_are_in_order_without_those_that_are_left_out():
    values = np.array([0.5, np.nan, 0.9, 0.5, 0.9, -1])
    assert nearest(values, 10) == [2, 4, 0, 3, 5]
    assert nearest(values, 2, {2}) == [4, 0]
    assert nearest(values, 9, {2, 4, 0, 3, 5}) == []
