"""Strips on a terminal: a list of numbers as coloured cells, two to a character."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from gptscope.render.numbers import brief, largest_of
from gptscope.render.terminal.cells import SIGNS, WRONG, legend, sign

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.color import Color

    from gptscope.render.terminal.cells import Line
    from gptscope.render.terminal.place import Paint, Place


def strip(values: Sequence[float], largest: float, room: int, place: Place) -> Line:
    """The numbers in lines of `room` cells; signs where there is no colour or no half block."""
    shares = [float(v) / (largest or 1.0) for v in values]
    if not place.colours:
        signs = "".join(map(sign, shares))
        return "\n".join(signs[i : i + room] for i in range(0, len(signs), room))
    paint, text = place.paint("vector"), Text()
    each = 2 if place.blocks else 1
    for i in range(0, len(shares), each):
        if i and i % (each * room) == 0:
            text.append("\n")
        text.append(*(pair(shares[i : i + 2], paint) if each == 2 else signed(shares[i], paint)))
    return text


def pair(shares: Sequence[float], paint: Paint) -> tuple[str, Style]:
    """Two numbers in one character; an odd last one fills it alone."""
    if any(map(math.isnan, shares)):
        return WRONG, Style()
    return split(paint.back(shares[0]), paint.back(shares[-1]), "▌▐")


def split(first: Color | None, second: Color | None, halves: str) -> tuple[str, Style]:
    """A character in two colours; what has none keeps the background."""
    if first is None:
        return (" ", Style()) if second is None else (halves[1], Style(color=second))
    return halves[0], Style(color=first, bgcolor=second)


def signed(share: float, paint: Paint) -> tuple[str, Style]:
    """One number as a sign on its colour."""
    return sign(share), Style() if math.isnan(share) else paint.cell(share)


def largest_in(lists: Iterable[Sequence[float]]) -> float:
    """The largest finite number without its sign, which has the strongest colour."""
    return max(map(largest_of, lists), default=0.0)


def strip_legend(largest: float, place: Place) -> Line:
    """What the cells of a strip mean."""
    high, low = (brief(end, place.screen.precision) for end in (largest, -largest))
    if not place.colours:
        return Text(f"{SIGNS}: from {high} over 0 to {low}", style=place.faint)
    return legend(place.paint("vector"), low, high, place)
