import math

import numpy as np
import pytest

from gptscope.engine.erf import MIDDLE_P, NEAR, SATURATED, TAIL, erf

EDGES = [NEAR, TAIL, SATURATED]


def test_against_the_standard_library():
    small = np.geomspace(1e-300, 1, 400)
    x = np.concatenate([np.linspace(-8, 8, 20_001), small, -small])
    expected = np.array([math.erf(value) for value in x])
    np.testing.assert_allclose(erf(x), expected, rtol=1e-15, atol=0, strict=True)


@pytest.mark.parametrize("edge", EDGES)
def test_where_one_formula_takes_over_from_another(edge):
    x = np.array([np.nextafter(edge, 0), edge, np.nextafter(edge, 9)])
    np.testing.assert_allclose(erf(x), [math.erf(value) for value in x], rtol=1e-15)
    np.testing.assert_array_equal(erf(-x), -erf(x))


def test_the_ends():
    x = np.array([-np.inf, -1e300, -0.0, 0.0, 1e300, np.inf])
    y = erf(x)
    np.testing.assert_array_equal(y, [-1, -1, 0, 0, 1, 1])
    assert np.signbit(y).tolist() == [True, True, True, False, False, False]


def test_nan_stays_nan():
    assert np.isnan(erf(np.array([np.nan, 1.0]))).tolist() == [True, False]


def test_it_never_leaves_its_range():
    y = erf(np.linspace(-10, 10, 100_001))
    assert np.abs(y).max() == 1
    assert (np.diff(y) >= -2e-16).all()


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 0, 4)])
def test_shapes(shape):
    x = np.full(shape, 0.7, "float32")
    assert erf(x).shape == shape
    assert erf(x).dtype == "float64"
    np.testing.assert_allclose(erf(x), math.erf(np.float32(0.7)), rtol=4e-16)


def test_the_input_is_not_changed():
    x = np.array([-5.0, -2, 0.1, 3])
    before = x.copy()
    erf(x)
    np.testing.assert_array_equal(x, before)


def test_the_coefficients_are_those_of_the_paper():
    # At 0 the middle formula must give erfc(0) = 1, so its last coefficients are all but equal.
    assert len(MIDDLE_P) == 9
    assert erf(np.array([0.5])) == pytest.approx(0.5204998778130465, rel=1e-16)
