"""Sheets on a terminal: small pictures of grids, side by side, two rows of cells to a character.

A picture that is too wide is made smaller: each cell then shows the strongest of the values that
it stands for, since a mean would hide the few strong ones, which is what one looks for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.style import Style
from rich.text import Text

from gptscope.render.numbers import formatter
from gptscope.render.palette import SPREAD
from gptscope.render.terminal.cells import SIGNS, WRONG, fit, legend, padded, sign, title, wide
from gptscope.render.terminal.grids import largest
from gptscope.render.terminal.strips import split

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.color import Color

    from gptscope.render.terminal.cells import Line
    from gptscope.render.terminal.place import Paint, Place
    from gptscope.view import Grid, Sheet

    Cells = Sequence[Sequence[float | None]]  # shares of the largest; None where nothing is

GAP, LEAST = 2, 4  # cells between pictures; and of a picture that can still be read
SHADES = ".:-=+*#%@"  # where there are no colours, from nothing to the largest


@dataclass(frozen=True)
class Plan:
    """How the pictures of a sheet stand: so many in a line, each in so many cells."""

    room: int
    side: int  # of the largest picture, drawn
    full: int  # of the largest picture, as it is
    wide: int  # a picture or its name
    gap: int

    @property
    def merged(self) -> int:
        """How many values, in each direction, one cell stands for at the most."""
        return math.ceil(self.full / self.side)


def sheet(part: Sheet, place: Place) -> Iterator[Line]:
    """Every grid as a picture under its title, as many of a row of the sheet as fit."""
    yield from title(part.title, place)
    if not part.grids:
        return
    names = [place.words(grid.title) for grid in part.grids]
    full = max(1, *(len(grid.columns) for grid in part.grids))
    plan = planned(part.columns, full, max(map(wide, names)), place.width)
    scale, n = largest(part.grids), len(names)
    for row in range(0, n, part.columns):
        end = min(row + part.columns, n)
        for first in range(row, end, plan.room):
            if first:
                yield ""
            shown = range(first, min(first + plan.room, end))
            pictures = [picture(part.grids[i], scale, plan, place) for i in shown]
            yield from beside([names[i] for i in shown], pictures, plan, place)
    yield ""
    yield from explained(part.grids[0], scale, plan, place)


def planned(columns: int, full: int, name: int, width: int) -> Plan:
    """Pictures as they are; or smaller, but none less than its name; or in more lines."""
    least = max(min(full, LEAST), name)
    for parts in range(1, columns + 1):
        room = math.ceil(columns / parts)
        if (max(full, name) + GAP) * room - GAP <= width:
            return Plan(room, full, full, max(full, name), GAP)
        most = (width + 1) // room - 1
        if most >= least:
            return Plan(room, min(full, most), full, max(min(full, most), name), 1)
    return Plan(1, min(full, width), full, min(max(full, name), width), 1)


def beside(
    names: Sequence[str], pictures: Sequence[Sequence[Line]], plan: Plan, place: Place
) -> Iterator[Line]:
    """Pictures side by side, line by line, each under its name."""
    heads = [padded(fit(name, plan.wide, place.cut), plan.wide) for name in names]
    yield Text((" " * plan.gap).join(map(str, heads)).rstrip(), style="bold")
    for parts in zip_longest(*pictures, fillvalue=""):
        line = Text(" " * plan.gap).join(Text() + padded(part, plan.wide) for part in parts)
        line.rstrip()
        yield line


def picture(grid: Grid, scale: float, plan: Plan, place: Place) -> list[Line]:
    """The cells: half blocks, two rows to a line; shades where there are none."""
    cells = smaller(shares(grid, scale), plan.side / plan.full)
    paint = place.paint(grid.kind)
    if place.blocks:
        below = [*cells[1::2], *([[None] * len(cells[0])] if len(cells) % 2 else [])]
        return [halves(*pair, paint) for pair in zip(cells[::2], below, strict=True)]
    spread = grid.kind in SPREAD
    if place.colours:
        return [Text.assemble(*(marked(v, paint, spread=spread) for v in row)) for row in cells]
    return ["".join(mark(share, spread=spread) for share in row) for row in cells]


def shares(grid: Grid, scale: float) -> Cells:
    """Every value as a share of the largest."""
    return [[None if v is None else float(v) / scale for v in row] for row in grid.cells()]


def smaller(cells: Cells, factor: float) -> Cells:
    """The cells of a picture that is smaller by this factor: the strongest of each block."""
    if factor >= 1 or not cells:
        return cells
    down, across = blocks(len(cells), factor), blocks(len(cells[0]), factor)
    return [[strongest([v for row in cells[y] for v in row[x]]) for x in across] for y in down]


def blocks(n: int, factor: float) -> list[slice]:
    """`n` cells in fewer blocks, whose sizes differ by one at the most."""
    few = max(1, math.ceil(n * factor - 1e-9))
    return [slice(i * n // few, (i + 1) * n // few) for i in range(few)]


def strongest(values: Sequence[float | None]) -> float | None:
    """The value farthest from zero; not a number, if one is not."""
    there = [value for value in values if value is not None]
    return max(there, key=lambda v: (math.isnan(v), abs(v)), default=None)


def halves(upper: Sequence[float | None], lower: Sequence[float | None], paint: Paint) -> Text:
    """Two rows of cells as one line: half blocks, in two colours."""
    text = Text()
    for pair in zip(upper, lower, strict=True):
        if any(share is not None and math.isnan(share) for share in pair):
            text.append(WRONG)
        else:
            top, bottom = (back(share, paint) for share in pair)
            text.append(*split(top, bottom, "▀▄"))
    return text


def back(share: float | None, paint: Paint) -> Color | None:
    """The colour of a cell; where nothing is, the background stays."""
    return None if share is None else paint.back(share)


def mark(share: float | None, *, spread: bool) -> str:
    """A character for a cell: a shade, or a sign where values lie on both sides of zero."""
    if share is None:
        return " "
    if spread or math.isnan(share):
        return sign(share)
    return SHADES[round(min(max(share, 0.0), 1.0) * (len(SHADES) - 1))]


def marked(share: float | None, paint: Paint, *, spread: bool) -> tuple[str, Style]:
    """The same on its colour, for a terminal without half blocks."""
    plain = share is None or math.isnan(share)
    return mark(share, spread=spread), Style() if plain else paint.cell(share or 0.0)


def explained(first: Grid, scale: float, plan: Plan, place: Place) -> Iterator[Line]:
    """What the colours, or the characters, mean; and what one cell stands for."""
    spread, paint = first.kind in SPREAD, place.paint(first.kind)
    write = formatter(first.kind, [scale], grid=True, precision=place.screen.precision)
    low, high = write(paint.scale.low * scale), write(scale)
    if place.colours:
        yield legend(paint, low, high, place)
    elif spread:
        yield Text(f"{SIGNS}: from {high} over 0 to {low}", style=place.faint)
    else:
        yield Text(f"{SHADES}: from {low} to {high}", style=place.faint)
    if plan.merged > 1:
        n = plan.merged
        told = f"each cell shows the strongest of up to {n} x {n} values"
        yield Text(told, style=place.faint)
