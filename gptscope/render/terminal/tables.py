"""Tables on a terminal: numbers to the right, a bar beside a probability, a list as a strip.

A table takes the first of `LAYOUTS` that fits; if none does, it is written row by row. It is
worked on column by column, and what has no style stays a plain string: tables can be long.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gptscope.render.numbers import formatter
from gptscope.render.terminal.bars import BARS, with_bars
from gptscope.render.terminal.cells import NUMBERS, padded, title, wide
from gptscope.render.terminal.strips import largest_in, strip, strip_legend

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gptscope.render.terminal.cells import Line
    from gptscope.render.terminal.place import Place
    from gptscope.view import Column, Table

FOLDED = 30  # cells


@dataclass(frozen=True)
class Layout:
    """How much room a table takes."""

    bars: bool  # beside probabilities and contributions
    stacked: bool  # the words of a heading one under the other
    strip: int  # cells in a line of a strip
    gap: int = 3  # cells between columns


LAYOUTS = (
    Layout(bars=True, stacked=False, strip=64),
    Layout(bars=False, stacked=False, strip=64),
    Layout(bars=False, stacked=True, strip=32, gap=2),
)


def table(part: Table, place: Place) -> Iterator[Line]:
    """A table in the first layout that fits; nothing is cut."""
    yield from title(part.title, place)
    cells = Cells(part, place)
    for layout in LAYOUTS:
        heads, columns = headings(part, layout, place), cells.written(layout)
        sizes = [max(map(widest, (h, *cs))) for h, cs in zip(heads, columns, strict=True)]
        if least(part, sizes, layout) <= place.width:
            yield from in_columns(part, columns, (heads, sizes), layout, place)
            break
    else:
        narrow = Layout(bars=False, stacked=False, strip=place.width)
        yield from one_by_one(part, cells.written(narrow), place)
    if any(column.kind == "vector" for column in part.columns):
        yield strip_legend(cells.largest(), place)


class Cells:
    """The cells of a table as text, column by column; layouts share most of them."""

    def __init__(self, part: Table, place: Place) -> None:
        """Nothing is written yet."""
        self._part, self._place = part, place
        self._values = [[row[i] for row in part.rows] for i in range(len(part.columns))]
        self._done: dict[tuple[int, bool, int], list[Line]] = {}

    def written(self, layout: Layout) -> list[list[Line]]:
        """Every column in a layout."""
        return [self._column(i, column, layout) for i, column in enumerate(self._part.columns)]

    def largest(self) -> float:
        """The largest number of all lists."""
        return largest_in(self._lists())

    def _lists(self) -> list[Sequence[float]]:
        pairs = zip(self._part.columns, self._values, strict=True)
        return [v for column, values in pairs if column.kind == "vector" for v in values]

    def _column(self, i: int, column: Column, layout: Layout) -> list[Line]:
        bars = layout.bars and column.kind in BARS
        key = i, bars, layout.strip if column.kind == "vector" else 0
        if key not in self._done:
            like = self._lists() if column.kind == "vector" else self._values[i]
            write = writer(column, like, self._place, layout)
            self._done[key] = [write(value) for value in self._values[i]]
        return self._done[key]


def headings(part: Table, layout: Layout, place: Place) -> list[str]:
    """The names of the columns."""
    names = (place.words(column.name) for column in part.columns)
    return [name.replace(" ", "\n") if layout.stacked else name for name in names]


def least(part: Table, sizes: Sequence[int], layout: Layout) -> int:
    """How many cells the table takes at the least, side by side; long words can be folded."""
    pairs = zip(sizes, part.columns, strict=True)
    cells = (min(n, FOLDED) if column.kind == "text" else n for n, column in pairs)
    return sum(cells) + layout.gap * (len(sizes) - 1)


def widest(cell: Line) -> int:
    """The widest line of a cell."""
    text = cell if isinstance(cell, str) else cell.plain
    return max(map(wide, text.split("\n"))) if "\n" in text else wide(text)


def in_columns(
    part: Table,
    cells: Sequence[Sequence[Line]],
    top: tuple[Sequence[str], Sequence[int]],
    layout: Layout,
    place: Place,
) -> Iterator[Line]:
    """The usual layout; only words are folded."""
    heads, sizes = top[0], list(top[1])
    words = [i for i, column in enumerate(part.columns) if column.kind == "text"]
    between = layout.gap * (len(sizes) - 1)
    over = sum(sizes) + between - place.width
    for i in sorted(words, key=lambda i: -sizes[i]):
        less = min(max(over, 0), max(sizes[i] - FOLDED, 0))
        sizes[i], over = sizes[i] - less, over - less
    right = [
        column.kind in NUMBERS and not (layout.bars and column.kind in BARS)
        for column in part.columns
    ]
    for line in lines([[head] for head in heads], sizes, right, layout.gap, place):
        yield Text(str(line), style="bold")
    yield ("─" if place.screen.unicode else "-") * (sum(sizes) + between)
    yield from lines(cells, sizes, right, layout.gap, place)


def lines(
    columns: Sequence[Sequence[Line]],
    sizes: Sequence[int],
    right: Sequence[bool],
    gap: int,
    place: Place,
) -> Iterator[Line]:
    """The rows: each as many lines as its longest cell has."""
    blocks = [
        [
            [padded(line, n, right=to_the_right) for line in folded(cell, n, place)]
            for cell in column
        ]
        for column, n, to_the_right in zip(columns, sizes, right, strict=True)
    ]
    empty = [" " * n for n in sizes]
    for row in zip(*blocks, strict=True):
        for parts in zip_longest(*row):
            yield joined([e if p is None else p for p, e in zip(parts, empty, strict=True)], gap)


def folded(cell: Line, n: int, place: Place) -> list[Line]:
    """The lines of a cell, none wider than `n`."""
    if widest(cell) > n:
        text = Text(cell) if isinstance(cell, str) else cell
        return [line.plain if isinstance(cell, str) else line for line in text.wrap(place.to, n)]
    return list(cell.split("\n"))


def joined(parts: Sequence[Line], gap: int) -> Line:
    """Cells side by side, without spaces at the end."""
    if all(isinstance(part, str) for part in parts):
        return (" " * gap).join(map(str, parts)).rstrip(" ")
    line = Text()
    for i, part in enumerate(parts):
        line.append(" " * gap if i else "")
        line.append(part)
    line.rstrip()
    return line


def one_by_one(part: Table, cells: Sequence[Sequence[Line]], place: Place) -> Iterator[Line]:
    """A line for each cell, for a narrow screen."""
    names = [place.words(column.name) for column in part.columns]
    side = max(map(wide, names)) + 2
    heads = [padded(name, side) for name in names]
    for i, row in enumerate(zip(*cells, strict=True)):
        if i:
            yield ""
        for name, head, cell in zip(names, heads, row, strict=True):
            first, *rest = cell.split("\n")
            yield from (name, first, *rest) if rest else (joined([head, first], 0),)


def writer(
    column: Column, values: Sequence[Any], place: Place, layout: Layout
) -> Callable[[Any], Line]:
    """The function that writes one cell of this column."""
    if column.kind == "vector":
        largest = largest_in(values)
        return lambda value: strip(value, largest, layout.strip, place)
    if column.kind not in NUMBERS:
        return lambda value: place.label(value or "", column.kind)
    write = formatter(column.kind, values, precision=place.screen.precision)
    return with_bars(column.kind, write, values, place) if layout.bars else write
