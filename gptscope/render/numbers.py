"""Numbers as text: the same kind of number looks alike everywhere, and columns line up.

`precision` is how many significant digits the largest number of a column has; the others have as
many decimals. Digits before the point are never rounded away, except in powers of ten. A
probability has that many decimals; a setting at least six digits; an error three, and one below
0.0001; a whole number all of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gptscope.view import Kind

SIGNIFICANT, SETTING, ERROR = 4, 6, 3
SHORT = 2  # decimals of a probability in a grid
MOST = 8  # decimals, where nobody asked for more
FIXED = 1e7  # from here on, fixed decimals would only be noise
ROUNDING = {"number": 1e-6, "error": 1e-4}  # below it, a number is what rounding left
NOISE = 1e-5  # below it, fixed decimals would be rows of zeros


def formatter(
    kind: Kind,
    values: Iterable[Any],
    grid: bool = False,  # noqa: FBT001, FBT002
    precision: int | None = None,
) -> Formatter:
    """How the values of one column or grid are written."""
    if kind == "probability":
        places = precision or (SHORT if grid else SIGNIFICANT)
        return Formatter(f"z.{places}f", least=0 if grid else places)
    if kind == "count":
        return Formatter(",d")
    if kind in ("signed", "contribution", "length"):
        return Formatter(number_format(values, precision))
    if kind in ROUNDING:
        digits = max(SETTING, precision or 0) if kind == "number" else precision or ERROR
        rounding = f".{(precision or 1) - 1}e", ROUNDING[kind]
        return Formatter(f".{digits}g", rounding=rounding)
    return Formatter("")


def number_format(values: Iterable[Any], precision: int | None = None) -> str:
    """Fixed decimals, so that a column lines up; powers of ten where that would be noise."""
    known = [value for value in values if value is not None]
    largest = largest_of(known)
    if largest >= max(FIXED, 10.0 ** (precision or 0)):
        return f".{precision or SIGNIFICANT}g"
    if 0 < largest < NOISE:
        return f"+.{(precision or 2) - 1}e"
    return f"z.{decimals(known, precision)}f"


def decimals(values: Iterable[Any], precision: int | None = None) -> int:
    """Digits after the point, so that the largest value has as many as asked, or four."""
    largest = largest_of(values)
    if largest == 0:
        return 2
    most = max(MOST, precision + 4 if precision else 0)
    return min(most, max(0, (precision or SIGNIFICANT) - 1 - math.floor(math.log10(largest))))


def largest_of(values: Iterable[Any]) -> float:
    """The largest finite value without its sign; 0 if there is none."""
    return max((abs(float(v)) for v in values if math.isfinite(v)), default=0.0)


def brief(value: float, precision: int | None = None) -> str:
    """A number beside a legend."""
    return f"{value:.{precision or SIGNIFICANT}g}"


class Formatter:
    """Writes one number; None, which means that nothing is there, as a dash."""

    def __init__(self, spec: str, least: int = 0, rounding: tuple[str, float] = ("", 0)) -> None:
        """`spec` is a format of Python; `rounding` another one, and below which number it is taken.

        Below 10 to the power of -`least`, a number is not zero.
        """
        self._spec, (self._rounding, self._nothing) = spec, rounding
        self._least = f"{10.0**-least:.{least}f}" if least else ""
        self._floor = float(self._least or 0)

    def __call__(self, value: Any) -> str:  # noqa: ANN401
        """The number as text."""
        if value is None:
            return "-"
        if self._least and 0 < value < self._floor:
            return f"<{self._least}"
        if 0 < abs(value) < self._nothing:
            return format(value, self._rounding)
        return format(value, self._spec)
