"""Bars beside numbers: as long as a share; or to either side of a line, for parts of a sum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gptscope.render.as_html.colours import DIVERGING
from gptscope.render.numbers import largest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gptscope.view import Kind

BARS: tuple[Kind, ...] = ("probability", "contribution")  # kinds that have one
NO_BAR = '<span class="bar none" aria-hidden="true"></span>'  # its room, where no number is


def bar_of(kind: Kind, values: Iterable[Any]) -> Callable[[Any], str]:
    """What draws the bar of a number in this column; nothing if the kind has none."""
    if kind == "probability":
        return bar
    if kind == "contribution":
        largest = largest_of(value for value in values if value is not None) or 1.0
        return lambda value: to_either_side(float(value) / largest)
    return lambda _: ""


def bar(share: float) -> str:
    """A bar as long as the share; the number stands beside it."""
    part = min(max(float(share), 0.0), 1.0) * 100 if math.isfinite(share) else 0.0
    return f'<span class="bar" aria-hidden="true"><i style="width:{part:.4g}%"></i></span>'


def to_either_side(share: float) -> str:
    """A bar from the middle: to the left below zero, to the right above."""
    half = abs(share) * 50 if math.isfinite(share) else 0.0
    look = DIVERGING.of(math.copysign(1.0, share), 1.0)
    start = 50 - half if share < 0 else 50.0
    inner = f'<i class="{look}" style="margin-left:{start:.4g}%;width:{half:.4g}%"></i>'
    return f'<span class="bar sides" aria-hidden="true">{inner}</span>'
