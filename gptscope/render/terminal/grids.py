"""Grids on a terminal: every number on its colour, with a legend; nothing is left out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from rich.style import Style
from rich.text import Text

from gptscope.render.numbers import formatter, largest_of
from gptscope.render.palette import UNSEEN
from gptscope.render.terminal.cells import LABEL, fit, legend, padded, title, wide

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gptscope.render.terminal.cells import Line
    from gptscope.render.terminal.place import Paint, Place
    from gptscope.view import Grid, Kind

HEAD = 12  # cells of a heading over numbers, at the most
WORD = 8  # cells of a token in a cell and the space after it, if it needs as many


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
    above = [[place.label(t or "", "token") for t in row] for row in part.cell_tokens() or ()]
    side, column = layout(names, heads, (texts, above), place.width)
    named = [padded(fit(name, side - 1, place.cut), side) for name in names]
    room = max(1, (place.width - side) // column)
    if above:
        room = even(len(heads), room)
    for first in range(0, len(heads), room):
        shown = slice(first, first + room)
        numbers = part.at_columns[shown] if part.column_kind == "token" else ()
        if first:
            yield ""
        yield from top(heads[shown], numbers, (side, column), place)
        for i, values in enumerate(cells):
            if any(value is not None for value in values[shown]):
                styles = [style(v, scale, paint, place.faint) for v in values[shown]]
                both = [row[i][shown] for row in (above, texts) if row]
                yield from row_of(named[i], both, styles, column, place)
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


def row_of(
    name: Line, rows: Sequence[list[str]], styles: list[Style], column: int, place: Place
) -> Iterator[Line]:
    """One row of a band: the numbers, and above them the tokens if there are any."""
    for texts in rows:
        text = Text(str(name))
        for shown, how in zip(texts, styles, strict=True):
            fitted = fit(shown, column - 1, place.cut)
            text.append(f"{padded(fitted, column - 1, right=True)} ", how)
        yield text
        name = " " * wide(name)


def layout(
    names: list[str],
    heads: list[str],
    cells: tuple[list[list[str]], list[list[str]]],
    width: int,
) -> tuple[int, int]:
    """Cells for the row labels, and for each column of numbers, with tokens above them or not."""
    side = min(max(map(wide, names)), max(LABEL, width // 3)) + 1
    number, word = (max((wide(t) for row in c for t in row), default=0) + 1 for c in cells)
    wish = max(number, min(max(word, *(wide(head) + 1 for head in heads)), HEAD))
    room, n = max(1, width - side), len(heads)
    if wish * n <= room:
        return side, wish
    least = max(number, min(word, WORD, room))
    if word == 1 or least * n <= room:
        return side, max(least, min(wish, room // n))
    return side, max(least, min(wish, room // even(n, max(1, room // least))))


def even(n: int, most: int) -> int:
    """Columns of a band, where all bands have about as many: more room for every token."""
    return math.ceil(n / math.ceil(n / most))


def seen(part: Grid) -> list[float]:
    """Every value that is not hidden."""
    return [float(value) for row in part.cells() for value in row if value is not None]


def largest(parts: Sequence[Grid]) -> float:
    """The value that has the strongest colour: of a probability 1, else the largest there is."""
    return full_scale(parts[0].kind, [value for part in parts for value in seen(part)])


def full_scale(kind: Kind, values: Sequence[float]) -> float:
    """The same for numbers that stand by themselves."""
    return 1.0 if kind == "probability" else largest_of(values) or 1.0


def style(value: Any, scale: float, paint: Paint, faint: Style) -> Style:  # noqa: ANN401
    """The style of one cell: faint where nothing is, plain where the value is next to nothing."""
    if value is None or not math.isfinite(value):
        return faint
    share = float(value) / scale
    return Style() if abs(share) < UNSEEN else paint.cell(share)
