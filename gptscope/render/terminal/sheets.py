"""Sheets on a terminal: small pictures of grids, side by side, two rows of cells to a character."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.color import Color
from rich.style import Style
from rich.text import Text

from gptscope.render.palette import colour
from gptscope.render.terminal.cells import has_colours, title
from gptscope.render.terminal.grids import legend, scale_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, RenderableType

    from gptscope.render.palette import RGB, Stops
    from gptscope.render.screen import Screen
    from gptscope.view import Grid, Sheet

GAP = 2  # cells between pictures
SHADES = " .:-=+*#%@"  # where there are no colours, from nothing to the largest


def sheet(part: Sheet, to: Console, screen: Screen) -> Iterator[RenderableType]:
    """Every grid as a picture under its title, as many in a row as fit."""
    yield from title(part.title)
    wide = max(max(len(grid.columns), len(grid.title)) for grid in part.grids) + GAP
    room = max(1, min(part.columns, (to.width + GAP) // wide))
    for first in range(0, len(part.grids), room):
        if first:
            yield Text()
        yield from beside(
            [picture(grid, to, screen) for grid in part.grids[first : first + room]], wide
        )
    if has_colours(to):
        yield legend(part.grids[0], *scale_of(part.grids[0]))
    else:
        yield Text(f"{SHADES!r}: from nothing to the largest", style="dim")


def beside(pictures: Sequence[Sequence[Text]], wide: int) -> Iterator[Text]:
    """Pictures side by side, line by line."""
    for i in range(max(map(len, pictures))):
        line = Text()
        for picture in pictures:
            cell = picture[i] if i < len(picture) else Text()
            line.append_text(cell)
            line.append(" " * (wide - cell.cell_len))
        line.rstrip()
        yield line


def picture(grid: Grid, to: Console, screen: Screen) -> list[Text]:
    """Title and cells: half blocks, two rows to a line, or shades where there are no colours."""
    cells = [[math.nan if cell is None else float(cell) for cell in row] for row in grid.cells()]
    scale, stops = scale_of(grid)
    if not has_colours(to) or not screen.unicode:
        rows = ["".join(shade(value / scale) for value in row) for row in cells]
        return [Text(grid.title, style="bold"), *map(Text, rows)]
    pairs = [
        (cells[i], cells[i + 1] if i + 1 < len(cells) else None) for i in range(0, len(cells), 2)
    ]
    return [Text(grid.title, style="bold"), *(halves(*pair, scale, stops) for pair in pairs)]


def halves(upper: list[float], lower: list[float] | None, scale: float, stops: Stops) -> Text:
    """Two rows of cells as one line: half blocks, in two colours."""
    text = Text()
    for i, value in enumerate(upper):
        top = painted(value / scale, stops)
        bottom = None if lower is None else painted(lower[i] / scale, stops)
        text.append(*half(top, bottom))
    return text


def half(top: RGB | None, bottom: RGB | None) -> tuple[str, Style]:
    """One character for two cells; a hidden cell keeps the background."""
    if top is None and bottom is None:
        return " ", Style()
    if top is None:
        return "\u2584", Style(color=Color.from_rgb(*bottom))  # type: ignore[misc]
    back = None if bottom is None else Color.from_rgb(*bottom)
    return "\u2580", Style(color=Color.from_rgb(*top), bgcolor=back)


def painted(share: float, stops: Stops) -> RGB | None:
    """The colour of a cell; none where nothing is."""
    return None if math.isnan(share) else colour(share, stops)


def shade(share: float) -> str:
    """A character for a cell."""
    if math.isnan(share):
        return " "
    return SHADES[min(len(SHADES) - 1, math.ceil(min(abs(share), 1.0) * (len(SHADES) - 1)))]
