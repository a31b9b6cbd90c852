"""Grids on a terminal: every number on its colour, with a legend; nothing is left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.style import Style
from rich.text import Text

from gptscope.render.numbers import formatter
from gptscope.render.palette import UNSEEN
from gptscope.render.terminal.cells import LABEL, fit, legend, padded, title, wide

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gptscope.render.terminal.cells import Line
    from gptscope.render.terminal.place import Paint, Place
    from gptscope.view import Grid

HEAD = 12  # cells of a heading over numbers


def grid(part: Grid, place: Place) -> Iterator[Line]:
    """The numbers of a matrix, each on its colour; columns that do not fit come in bands below."""
    yield from title(part.title, place)
    cells, scale, paint = part.cells(), largest([part]), place.paint(part.kind)
    write = formatter(part.kind, seen(part), grid=True, precision=place.screen.precision)
    texts = [[write(value) for value in row] for row in cells]
    names = [place.label(r, part.row_kind) for r in part.rows]
    if part.row_kind == "token":
        names = [f"{i} {name}" for i, name in zip(part.at_rows, names, strict=True)]
    heads = [place.label(c, part.column_kind) for c in part.columns]
    side, column = layout(names, heads, texts, place.width)
    named = [padded(fit(name, side - 1, place.cut), side) for name in names]
    room = max(1, (place.width - side) // column)
    for first in range(0, len(heads), room):
        shown = slice(first, first + room)
        numbers = part.at_columns[shown] if part.column_kind == "token" else ()
        if first:
            yield ""
        yield from top(heads[shown], numbers, (side, column), place)
        for name, row, values in zip(named, texts, cells, strict=True):
            if any(value is not None for value in values[shown]):
                styles = [style(v, scale, paint, place.faint) for v in values[shown]]
                yield line(name, row[shown], styles, column)
    if place.colours:
        yield legend(paint, write(paint.scale.low * scale), write(scale), place)


def top(
    heads: Sequence[str], numbers: Sequence[int], sizes: tuple[int, int], place: Place
) -> Iterator[Line]:
    """Names over a band of columns, and of tokens their positions."""
    side, column = sizes
    if numbers:
        places = "".join(f"{i:>{column - 1}} " for i in numbers)
        yield Text(" " * side + places.rstrip(), style=place.faint)
    fitted = (fit(head, column - 1, place.cut) for head in heads)
    names = "".join(f"{padded(head, column - 1, right=True)} " for head in fitted)
    yield " " * side + names.rstrip()


def line(name: Line, texts: list[str], styles: list[Style], column: int) -> Text:
    """One row of a band."""
    text = Text(str(name))
    for shown, how in zip(texts, styles, strict=True):
        text.append(f"{shown:>{column - 1}} ", how)
    return text


def layout(
    names: list[str], heads: list[str], texts: list[list[str]], width: int
) -> tuple[int, int]:
    """Cells for the row labels, and for each column."""
    side = min(max(map(wide, names)), max(LABEL, width // 3)) + 1
    number = max(len(text) for row in texts for text in row) + 1
    column = max(number, min(max(map(wide, heads)) + 1, HEAD))
    if side + column * len(heads) > width:
        column = max(number, min(column, (width - side) // len(heads)))
    return side, column


def seen(part: Grid) -> list[float]:
    """Every value that is not hidden."""
    return [float(value) for row in part.cells() for value in row if value is not None]


def largest(parts: Sequence[Grid]) -> float:
    """The value that has the strongest colour: of a probability 1, else the largest there is."""
    if parts[0].kind == "probability":
        return 1.0
    sizes = (abs(value) for part in parts for value in seen(part) if math.isfinite(value))
    return max(sizes, default=1.0) or 1.0


def style(value: Any, scale: float, paint: Paint, faint: Style) -> Style:  # noqa: ANN401
    """The style of one cell: faint where nothing is, plain where the value is next to nothing."""
    if value is None or not math.isfinite(value):
        return faint
    share = float(value) / scale
    return Style() if abs(share) < UNSEEN else paint.cell(share)
