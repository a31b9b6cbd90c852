"""What tables, grids and sheets share: text in so many cells, and the legend of a scale."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.render.terminal.place import Paint, Place

Line = str | Text  # of a picture; text that has no style needs no more than its characters

NUMBERS = ("id", "count", "probability", "signed", "length", "number", "error", "contribution")
LABEL, LEGEND = 16, 24  # cells
WRONG = "?"  # where there is no room for a number: not a number
WEAK, STRONG = 0.15, 0.5  # shares of the largest
SIGNS = "# + . - ="


def title(text: str, place: Place) -> Iterator[Line]:
    """A part's title, if it has one."""
    if text:
        yield Text(place.words(text), style="bold")


def wide(line: Line) -> int:
    """How many cells a line takes."""
    text = line if isinstance(line, str) else line.plain
    return len(text) if text.isascii() else cell_len(text)


def padded(line: Line, n: int, *, right: bool = False) -> Line:
    """A line in exactly `n` cells."""
    gap = " " * (n - wide(line))
    if isinstance(line, str):
        return gap + line if right else line + gap
    return Text(gap) + line if right else line + Text(gap)


def fit(text: str, most: int, cut: str) -> str:
    """The text in at most so many cells; where it is longer it ends in `cut`."""
    if wide(text) <= most:
        return text
    return set_cell_size(text, max(0, most - len(cut))).rstrip() + cut[:most]


def legend(paint: Paint, low: str, high: str, place: Place) -> Text:
    """What colours mean, from one end of the scale to the other."""
    text, start = Text().append(f"{low} ", place.faint), paint.scale.low
    n = max(1, min(LEGEND, place.width - wide(low) - wide(high) - 2))
    for i in range(n):
        share = start + (i + 0.5) / n * (1 - start)
        text.append(" ", Style(bgcolor=paint.back(share)))
    return text.append(f" {high}", place.faint)


def sign(share: float) -> str:
    """One character for a value: = - . + # from far below zero to far above."""
    if math.isnan(share):
        return WRONG
    if abs(share) < WEAK:
        return "."
    return ("+", "#")[share > STRONG] if share > 0 else ("-", "=")[share < -STRONG]
