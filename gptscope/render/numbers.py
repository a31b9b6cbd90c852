"""Numbers as text: the same kind of number looks alike everywhere, and columns line up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gptscope.view import Kind

SIGNIFICANT = 4
FIXED = 1e7  # from here on, fixed decimals would only be noise
NOISE = 1e-5  # below it, rows of zeros


def formatter(kind: Kind, values: Iterable[Any], grid: bool = False) -> Formatter:  # noqa: FBT001, FBT002
    """How the values of one column or grid are written."""
    if kind == "probability":
        return Formatter("z.2f") if grid else Formatter("z.4f", least=0.0001)
    if kind == "count":
        return Formatter(",d")
    if kind in ("signed", "length"):
        return Formatter(number_format(values))
    return Formatter("g" if kind == "number" else "")


def number_format(values: Iterable[Any]) -> str:
    """Fixed decimals, so that a column lines up; powers of ten where that would be noise."""
    known = [value for value in values if value is not None]
    largest = max((abs(float(v)) for v in known if math.isfinite(v)), default=0.0)
    if largest >= FIXED:
        return f".{SIGNIFICANT}g"
    if 0 < largest < NOISE:
        return "z.1e"
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

    def __init__(self, spec: str, least: float = 0.0) -> None:
        """`spec` is a format specification of Python; below `least` a number is not zero."""
        self._spec, self._least = spec, least

    def __call__(self, value: Any) -> str:  # noqa: ANN401
        """The number as text."""
        if value is None:
            return "-"
        if self._least and 0 < value < self._least:
            return f"<{self._least}"
        return format(value, self._spec)
