"""Grids on a terminal: every number on its colour, with a legend; what does not fit is said."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.style import Style
from rich.text import Text

from gptscope.render.numbers import formatter
from gptscope.render.palette import DIVERGING, SEQUENTIAL, UNSEEN, Stops, colour, ink
from gptscope.render.terminal.cells import LABEL, has_colours, label, title

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console, RenderableType

    from gptscope.view import Grid

LEGEND = 24  # cells


def grid(part: Grid, to: Console) -> Iterator[RenderableType]:
    """The numbers of a matrix, each on its colour; what does not fit is said."""
    yield from title(part.title)
    scale, stops = scale_of(part)
    write = formatter(part.kind, part.values.ravel(), grid=True)
    texts = [[write(float(v)) for v in row] for row in part.values]
    names = [label(r, part.row_kind) for r in part.rows]
    if part.row_kind == "token":
        names = [f"{i} {name}" for i, name in enumerate(names)]
    heads = [label(c, "token") for c in part.columns]
    side, wide, first = layout(names, heads, texts, to.width)
    places = "".join(f"{i:>{wide - 1}} " for i in range(first, len(heads)))
    yield Text(" " * side + places.rstrip(), style="dim")
    yield Text(
        " " * side + "".join(fit(h, wide - 1, wide - 1) + " " for h in heads[first:]).rstrip()
    )
    for name, row, values in zip(names, texts, part.values, strict=True):
        line = Text(fit(name, side - 1, side, left=True))
        for text, value in zip(row[first:], values[first:], strict=True):
            line.append(f"{text:>{wide - 1}} ", shade(float(value), scale, stops))
        yield line
    if has_colours(to):
        yield legend(part, scale, stops)
    if first:
        yield Text(left_out(first, len(heads)))


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
) -> tuple[int, int, int]:
    """Cells for the row labels and for each column, and the first column that is shown."""
    side = min(max(map(cell_len, names)), max(LABEL, width // 3)) + 1
    number = max(len(text) for row in texts for text in row) + 1
    wide = max(number, min(max(map(cell_len, heads)) + 1, 12))
    if side + wide * len(heads) > width:
        wide = max(number, (width - side) // len(heads))
    room = max(1, (width - side) // wide)
    return side, wide, max(0, len(heads) - room)


def left_out(first: int, n: int) -> str:
    """What a narrow screen does not show, and where it is."""
    columns = "column 0 is" if first == 1 else f"columns 0 to {first - 1} are"
    return f"{columns} left out of {n}: widen the terminal, or use --format csv or json"


def fit(text: str, most: int, wide: int, *, left: bool = False) -> str:
    """The text in exactly `wide` cells, with an ellipsis if it takes more than `most`."""
    if cell_len(text) > most:
        text = set_cell_size(text, most - 1).rstrip() + "…"
    gap = " " * (wide - cell_len(text))
    return text + gap if left else gap + text


def scale_of(part: Grid) -> tuple[float, Stops]:
    """The value that has the strongest colour, and the colours."""
    stops = DIVERGING if part.kind == "signed" else SEQUENTIAL
    if part.kind == "probability":
        return 1.0, stops
    sizes = [abs(float(v)) for v in part.values.ravel() if math.isfinite(v)]
    return max(sizes, default=1.0) or 1.0, stops


def shade(value: float, scale: float, stops: Stops) -> Style:
    """The style of one cell: dim where nothing is, plain where the value is next to nothing."""
    if not math.isfinite(value):
        return Style(dim=True)
    if abs(value) / scale < UNSEEN:
        return Style()
    back = colour(value / scale, stops)
    return Style(color=Color.from_rgb(*ink(back)), bgcolor=Color.from_rgb(*back))
