"""Numbers as text: the same kind of number looks alike everywhere, and columns line up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gptscope.view import Kind

SIGNIFICANT = 4


def formatter(kind: Kind, values: Iterable[Any], grid: bool = False) -> Formatter:  # noqa: FBT001, FBT002
    """How the values of one column or grid are written."""
    if kind == "probability":
        return Formatter("z.2f" if grid else "z.4f")
    if kind == "count":
        return Formatter(",d")
    if kind in ("signed", "length"):
        return Formatter(f"z.{decimals(values)}f")
    return Formatter("g" if kind == "number" else "")


def decimals(values: Iterable[Any]) -> int:
    """Digits after the point, so that the largest value has four significant ones."""
    sizes = (abs(float(v)) for v in values if v is not None and math.isfinite(v))
    largest = max(sizes, default=0.0)
    if largest == 0:
        return 2
    return min(8, max(0, SIGNIFICANT - 1 - math.floor(math.log10(largest))))


class Formatter:
    """Writes one number; None and NaN, which mean that nothing is there, as a dash."""

    def __init__(self, spec: str) -> None:
        """`spec` is a format specification of Python."""
        self._spec = spec

    def __call__(self, value: Any) -> str:  # noqa: ANN401
        """The number as text."""
        return "-" if is_nothing(value) else format(value, self._spec)


def is_nothing(value: Any) -> bool:  # noqa: ANN401
    """Whether this is None or NaN, which mean that nothing is there."""
    return value is None or bool(value != value)  # noqa: PLR0124 - NaN is not itself
