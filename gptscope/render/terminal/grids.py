"""Grids on a terminal: every number on its colour, with a legend; nothing is left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.style import Style
from rich.text import Text

from gptscope.render.numbers import formatter
from gptscope.render.palette import DIVERGING, SEQUENTIAL, UNSEEN, Stops, colour, ink
from gptscope.render.terminal.cells import LABEL, LEGEND, has_colours, label, title

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType

    from gptscope.view import Grid


def grid(part: Grid, to: Console) -> Iterator[RenderableType]:
    """The numbers of a matrix, each on its colour; columns that do not fit come in bands below."""
    yield from title(part.title)
    write = formatter(part.kind, seen(part), grid=True)
    texts = [[write(value) for value in row] for row in part.cells()]
    names = [label(r, part.row_kind) for r in part.rows]
    if part.row_kind == "token":
        names = [f"{i} {name}" for i, name in enumerate(names)]
    heads = [label(c, part.column_kind) for c in part.columns]
    counted = part.column_kind == "token"
    side, wide = layout(names, heads, texts, to.width)
    room = max(1, (to.width - side) // wide)
    colours = scale_of(part)
    for first in range(0, len(heads), room):
        shown = slice(first, first + room)
        yield from top(heads, shown, (side, wide), counted=counted)
        for name, row, cells in zip(names, texts, part.cells(), strict=True):
            if any(cell is not None for cell in cells[shown]):
                named = fit(name, side - 1, side, left=True)
                yield line(named, row[shown], cells[shown], wide, colours)
    if has_colours(to):
        yield legend(part, *colours)


def top(heads: list[str], shown: slice, sizes: tuple[int, int], *, counted: bool) -> Iterator[Text]:
    """Names over a band of columns, of tokens their positions; an empty line between bands."""
    side, wide = sizes
    if shown.start:
        yield Text()
    if counted:
        places = "".join(f"{i:>{wide - 1}} " for i in range(len(heads))[shown])
        yield Text(" " * side + places.rstrip(), style="dim")
    names = "".join(fit(head, wide - 1, wide - 1) + " " for head in heads[shown])
    yield Text(" " * side + names.rstrip())


def line(
    name: str, texts: list[str], cells: list[Any], wide: int, colours: tuple[float, Stops]
) -> Text:
    """One row of a band."""
    text = Text(name)
    for shown, cell in zip(texts, cells, strict=True):
        value = math.nan if cell is None else float(cell)
        text.append(f"{shown:>{wide - 1}} ", shade(value, *colours))
    return text


def legend(part: Grid, scale: float, stops: Stops) -> Text:
    """What the colours of a grid mean, from one end of the scale to the other."""
    low = stops[0][0]
    write = formatter(part.kind, [scale], grid=True)
    text = Text().append(f"{write(low * scale)} ", "dim")
    for i in range(LEGEND):
        share = low + (i + 0.5) / LEGEND * (stops[-1][0] - low)
        text.append(" ", Style(bgcolor=Color.from_rgb(*colour(share, stops))))
    return text.append(f" {write(scale)}", "dim")


def layout(
    names: list[str], heads: list[str], texts: list[list[str]], width: int
) -> tuple[int, int]:
    """Cells for the row labels, and for each column."""
    side = min(max(map(cell_len, names)), max(LABEL, width // 3)) + 1
    number = max(len(text) for row in texts for text in row) + 1
    wide = max(number, min(max(map(cell_len, heads)) + 1, 12))
    if side + wide * len(heads) > width:
        wide = max(number, min(wide, (width - side) // len(heads)))
    return side, wide


def fit(text: str, most: int, wide: int, *, left: bool = False) -> str:
    """The text in exactly `wide` cells, with an ellipsis if it takes more than `most`."""
    if cell_len(text) > most:
        text = set_cell_size(text, most - 1).rstrip() + "…"
    gap = " " * (wide - cell_len(text))
    return text + gap if left else gap + text


def seen(part: Grid) -> list[float]:
    """Every value that is not hidden."""
    return [float(value) for row in part.cells() for value in row if value is not None]


def scale_of(part: Grid) -> tuple[float, Stops]:
    """The value that has the strongest colour, and the colours."""
    stops = DIVERGING if part.kind == "signed" else SEQUENTIAL
    if part.kind == "probability":
        return 1.0, stops
    sizes = [abs(value) for value in seen(part) if math.isfinite(value)]
    return max(sizes, default=1.0) or 1.0, stops


def shade(value: float, scale: float, stops: Stops) -> Style:
    """The style of one cell: dim where nothing is, plain where the value is next to nothing."""
    if not math.isfinite(value):
        return Style(dim=True)
    if abs(value) / scale < UNSEEN:
        return Style()
    back = colour(value / scale, stops)
    return Style(color=Color.from_rgb(*ink(back)), bgcolor=Color.from_rgb(*back))
