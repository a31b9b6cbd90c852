"""Bars beside numbers: as long as a share; or to either side of a line, for parts of a sum."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.style import Style
from rich.text import Text

from gptscope.render.numbers import largest_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gptscope.render.terminal.cells import Line
    from gptscope.render.terminal.place import Place
    from gptscope.view import Kind

BARS: tuple[Kind, ...] = ("probability", "contribution")  # kinds that have one
BAR, SIDE = 12, 8  # cells of a whole bar, and on each side of the line
BAR_SHARE = {False: 0.6, True: 0.75}  # whose colour stands out from a dark, from a light background


def with_bars(
    kind: Kind, write: Callable[[Any], str], values: Sequence[Any], place: Place
) -> Callable[[Any], Line]:
    """What writes a number of this column, and its bar if the kind has one."""
    if kind not in BARS:
        return write
    n = max((len(write(value)) for value in values), default=0)
    if kind == "probability":
        return lambda value: with_bar(f"{write(value):>{n}} ", value, place)
    largest = largest_of(value for value in values if value is not None)
    return lambda value: to_either_side(f"{write(value):>{n}} ", value, largest, place)


def with_bar(number: str, share: float | None, place: Place) -> Line:
    """A number and a bar as long as the share."""
    filled = round(share * BAR) if share is not None and math.isfinite(share) else 0
    text = full(place) * filled
    empty = " " * (BAR - filled)
    if not (text and place.colours):
        return number + text + empty
    back = place.paint("probability").back(BAR_SHARE[place.screen.light])
    return Text(number).append(text, Style(color=back)).append(empty)


def to_either_side(number: str, value: float | None, largest: float, place: Place) -> Line:
    """A number and a bar from the middle: to the left below zero, to the right above."""
    line = "│" if place.screen.unicode else "|"
    share = float(value) / largest if value is not None and largest else 0.0
    filled = round(abs(share) * SIDE) if math.isfinite(share) else 0
    text = full(place) * filled
    left, right = (f"{text:>{SIDE}}", " " * SIDE) if share < 0 else (" " * SIDE, f"{text:<{SIDE}}")
    if not place.colours:
        return number + left + line + right
    end = Style(color=place.paint("contribution").back(math.copysign(1.0, share)))
    return Text(number).append(left, end).append(line, place.faint).append(right, end)


def full(place: Place) -> str:
    """The character that bars are made of."""
    return "█" if place.screen.unicode else "#"
