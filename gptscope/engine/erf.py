"""The error function for arrays, which NumPy lacks.

W. J. Cody, "Rational Chebyshev approximations for the error function", Mathematics of Computation
23 (1969): one rational function near zero, one for the middle, one for the tail.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]

NEAR, TAIL, SATURATED = 0.46875, 4.0, 6.0
NEAR_P = (
    1.85777706184603153e-1,
    3.16112374387056560e00,
    1.13864154151050156e02,
    3.77485237685302021e02,
    3.20937758913846947e03,
)
NEAR_Q = (
    1.0,
    2.36012909523441209e01,
    2.44024637934444173e02,
    1.28261652607737228e03,
    2.84423683343917062e03,
)
MIDDLE_P = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e00,
    6.61191906371416295e01,
    2.98635138197400131e02,
    8.81952221241769090e02,
    1.71204761263407058e03,
    2.05107837782607147e03,
    1.23033935479799725e03,
)
MIDDLE_Q = (
    1.0,
    1.57449261107098347e01,
    1.17693950891312499e02,
    5.37181101862009858e02,
    1.62138957456669019e03,
    3.29079923573345963e03,
    4.36261909014324716e03,
    3.43936767414372164e03,
    1.23033935480374942e03,
)
TAIL_P = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
TAIL_Q = (
    1.0,
    2.56852019228982242e00,
    1.87295284992346725e00,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


def erf(x: Array) -> Array:
    """2/sqrt(pi) times the integral of exp(-t^2) from 0 to x, element by element, in float64."""
    x = np.asarray(x, np.float64)
    size = np.minimum(np.abs(x), SATURATED)  # NaN stays NaN
    near, tail = size <= NEAR, size > TAIL
    y = np.empty_like(size)
    y[near] = size[near] * _ratio(NEAR_P, NEAR_Q, size[near] ** 2)
    middle = size[~near & ~tail]
    y[~near & ~tail] = 1 - np.exp(-middle * middle) * _ratio(MIDDLE_P, MIDDLE_Q, middle)
    far = size[tail]
    y[tail] = 1 - np.exp(-far * far) / far * (np.pi**-0.5 - _tail(far**-2.0))
    return np.copysign(y, x)


def _ratio(p: tuple[float, ...], q: tuple[float, ...], x: Array) -> Array:
    return _horner(p, x) / _horner(q, x)


def _tail(z: Array) -> Array:
    return z * _ratio(TAIL_P, TAIL_Q, z)


def _horner(coefficients: tuple[float, ...], x: Array) -> Array:
    """Highest power first."""
    total = np.full_like(x, coefficients[0])
    for c in coefficients[1:]:
        total *= x
        total += c
    return total
