"""Numbers as text: the same kind of number looks alike everywhere, and columns line up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gptscope.view import Kind

SIGNIFICANT = 4
FIXED = 1e7  # from here on, fixed decimals would only be noise
ROUNDING = 1e-6  # below it, a number is what rounding left
NOISE = 1e-5  # below it, fixed decimals would be rows of zeros


def formatter(kind: Kind, values: Iterable[Any], grid: bool = False) -> Formatter:  # noqa: FBT001, FBT002
    """How the values of one column or grid are written."""
    if kind == "probability":
        return Formatter("z.2f") if grid else Formatter("z.4f", least=0.0001)
    if kind == "count":
        return Formatter(",d")
    if kind in ("signed", "length"):
        return Formatter(number_format(values))
    return Formatter("g", rounding=".0e") if kind == "number" else Formatter("")


def number_format(values: Iterable[Any]) -> str:
    """Fixed decimals, so that a column lines up; powers of ten where that would be noise."""
    known = [value for value in values if value is not None]
    largest = max((abs(float(v)) for v in known if math.isfinite(v)), default=0.0)
    if largest >= FIXED:
        return f".{SIGNIFICANT}g"
    if 0 < largest < NOISE:
        return "+.1e"
    return f"z.{decimals(known)}f"


def decimals(values: Iterable[Any]) -> int:
    """Digits after the point, so that the largest value has four significant ones."""
    sizes = (abs(float(v)) for v in values if math.isfinite(v))
    largest = max(sizes, default=0.0)
    if largest == 0:
        return 2
    return min(8, max(0, SIGNIFICANT - 1 - math.floor(math.log10(largest))))


class Formatter:
    """Writes one number; None, which means that nothing is there, as a dash."""

    def __init__(self, spec: str, least: float = 0.0, rounding: str = "") -> None:
        """`spec` and `rounding`, for what is next to nothing, are formats of Python.

        Below `least` a number is not zero.
        """
        self._spec, self._least, self._rounding = spec, least, rounding

    def __call__(self, value: Any) -> str:  # noqa: ANN401
        """The number as text."""
        if value is None:
            return "-"
        if self._least and 0 < value < self._least:
            return f"<{self._least}"
        if self._rounding and 0 < abs(value) < ROUNDING:
            return format(value, self._rounding)
        return format(value, self._spec)
