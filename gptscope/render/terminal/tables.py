"""Tables on a terminal: numbers to the right, a bar beside a probability, a list as a strip.

A table takes the first of `LAYOUTS` that fits; if none does, it is written row by row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.style import Style
from rich.text import Text

from gptscope.glyphs import visible
from gptscope.render.numbers import formatter
from gptscope.render.palette import DIVERGING, SEQUENTIAL, colour
from gptscope.render.terminal.cells import LEGEND, NUMBERS, has_colours, label, title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console, RenderableType

    from gptscope.render.screen import Screen
    from gptscope.view import Column, Table

BAR, FOLDED = 12, 30  # cells
WRONG = "?"  # in a strip: not a number


@dataclass(frozen=True)
class Layout:
    """How much room a table takes."""

    bars: bool  # beside probabilities
    stacked: bool  # the words of a heading one under the other
    strip: int  # cells in a line of a strip
    gap: int = 3  # cells between columns


LAYOUTS = (
    Layout(bars=True, stacked=False, strip=64),
    Layout(bars=False, stacked=False, strip=64),
    Layout(bars=False, stacked=True, strip=32, gap=2),
)


def table(part: Table, to: Console, screen: Screen) -> Iterator[RenderableType]:
    """A table in the first layout that fits; nothing is cut."""
    yield from title(part.title)
    for layout in LAYOUTS:
        rows = written(part, to, layout)
        if width(part, rows, layout) <= to.width:
            yield from in_columns(part, rows, layout, to, screen)
            break
    else:
        narrow = Layout(bars=False, stacked=False, strip=to.width)
        yield from one_by_one(part, written(part, to, narrow))
    if any(column.kind == "vector" for column in part.columns):
        yield strip_legend(part, to)


def headings(part: Table, layout: Layout) -> list[Text]:
    """The names of the columns."""
    names = (visible(column.name) for column in part.columns)
    return [Text(name.replace(" ", "\n") if layout.stacked else name) for name in names]


def written(part: Table, to: Console, layout: Layout) -> list[list[Text]]:
    """Every cell as text."""
    writers = [
        writer(column, [row[i] for row in part.rows], to, layout)
        for i, column in enumerate(part.columns)
    ]
    return [[write(v) for write, v in zip(writers, row, strict=True)] for row in part.rows]


def width(part: Table, rows: Sequence[Sequence[Text]], layout: Layout) -> int:
    """How many cells the table takes at the least, side by side; long words can be folded."""
    wide = [max(map(widest, cells)) for cells in zip(headings(part, layout), *rows, strict=True)]
    least = (
        min(n, FOLDED) if column.kind == "text" else n
        for n, column in zip(wide, part.columns, strict=True)
    )
    return sum(least) + layout.gap * (len(wide) - 1)


def widest(text: Text) -> int:
    """The widest line of a cell."""
    return max(map(cell_len, text.plain.split("\n")))


def in_columns(
    part: Table, rows: Sequence[Sequence[Text]], layout: Layout, to: Console, screen: Screen
) -> Iterator[RenderableType]:
    """The usual layout; only words are folded."""
    heads = headings(part, layout)
    wide = [max(map(widest, cells)) for cells in zip(heads, *rows, strict=True)]
    words = [i for i, column in enumerate(part.columns) if column.kind == "text"]
    between = layout.gap * (len(wide) - 1)
    over = sum(wide) + between - to.width
    for i in sorted(words, key=lambda i: -wide[i]):
        less = min(max(over, 0), max(wide[i] - FOLDED, 0))
        wide[i], over = wide[i] - less, over - less
    right = [
        column.kind in NUMBERS and not (layout.bars and column.kind == "probability")
        for column in part.columns
    ]
    for head in lines(heads, wide, right, to, layout.gap):
        yield Text(head.plain, style="bold")
    yield Text(("─" if screen.unicode else "-") * (sum(wide) + between))
    for row in rows:
        yield from lines(row, wide, right, to, layout.gap)


def lines(
    cells: Sequence[Text], wide: Sequence[int], right: Sequence[bool], to: Console, gap: int
) -> Iterator[Text]:
    """One row: as many lines as its longest cell has."""
    folded = [
        list(cell.split("\n")) if widest(cell) <= n else list(cell.wrap(to, n))
        for cell, n in zip(cells, wide, strict=True)
    ]
    for parts in zip_longest(*folded, fillvalue=Text()):
        line = Text()
        for part, n, to_the_right in zip(parts, wide, right, strict=True):
            fill = " " * (n - part.cell_len)
            line.append(" " * gap if line else "")
            line = line.append(fill) + part if to_the_right else line + part + Text(fill)
        line.rstrip()
        yield line


def one_by_one(part: Table, rows: Sequence[Sequence[Text]]) -> Iterator[RenderableType]:
    """A line for each cell, for a narrow screen."""
    names = [visible(column.name) for column in part.columns]
    side = max(map(cell_len, names)) + 2
    for i, row in enumerate(rows):
        if i:
            yield Text()
        for name, cell in zip(names, row, strict=True):
            between = "\n" if "\n" in cell.plain else ""
            yield Text(set_cell_size(name, side) + between) + cell


def writer(
    column: Column, values: Sequence[Any], to: Console, layout: Layout
) -> Callable[[Any], Text]:
    """The function that writes one cell of this column."""
    if column.kind == "vector":
        largest = largest_in(values)
        return lambda value: strip(value, largest, layout.strip, to)
    if column.kind not in NUMBERS:
        return lambda value: Text(label(value or "", column.kind))
    write = formatter(column.kind, values)
    if column.kind == "probability" and layout.bars:
        wide = max((len(write(value)) for value in values), default=0)
        return lambda value: Text(f"{write(value):>{wide}} ") + bar(value)
    return lambda value: Text(write(value))


def bar(share: float | None) -> Text:
    """A bar as long as the share; the number stands beside it."""
    filled = round(share * BAR) if share is not None and math.isfinite(share) else 0
    style = Style(color=Color.from_rgb(*colour(0.6, SEQUENTIAL)))
    return Text("█" * filled, style=style) + Text(" " * (BAR - filled))


def strip(values: Sequence[float], largest: float, wide: int, to: Console) -> Text:
    """A list of numbers as coloured cells, two to a character; signs where there is no colour."""
    shares = [float(v) / (largest or 1.0) for v in values]
    if not has_colours(to):
        signs = "".join(sign(share) for share in shares)
        return Text("\n".join(signs[i : i + wide] for i in range(0, len(signs), wide)))
    text = Text()
    for i in range(0, len(shares), 2):
        if i and i % (2 * wide) == 0:
            text.append("\n")
        pair = (shares[i : i + 2] * 2)[:2]  # an odd last value fills its character alone
        if any(map(math.isnan, pair)):
            text.append(WRONG)
            continue
        left, right = (Color.from_rgb(*colour(share, DIVERGING)) for share in pair)
        text.append("▌", Style(color=left, bgcolor=right))
    return text


def largest_in(lists: Sequence[Sequence[float]]) -> float:
    """The largest finite number without its sign, which has the strongest colour."""
    sizes = (abs(float(x)) for one in lists for x in one)
    return max(filter(math.isfinite, sizes), default=0.0)


def strip_legend(part: Table, to: Console) -> Text:
    """What the cells of a strip mean."""
    (i,) = (i for i, column in enumerate(part.columns) if column.kind == "vector")
    largest = largest_in([row[i] for row in part.rows])
    if not has_colours(to):
        return Text(f"# + . - =: from {largest:.4g} over 0 to {-largest:.4g}", style="dim")
    text = Text().append(f"{-largest:.4g} ", "dim")
    for i in range(LEGEND):
        share = (2 * i + 1) / LEGEND - 1
        text.append(" ", Style(bgcolor=Color.from_rgb(*colour(share, DIVERGING))))
    return text.append(f" {largest:.4g}", "dim")


def sign(share: float) -> str:
    """One character for a value: = - . + # from far below zero to far above."""
    if math.isnan(share):
        return WRONG
    if abs(share) < 0.15:
        return "."
    return ("+", "#")[share > 0.5] if share > 0 else ("-", "=")[share < -0.5]
