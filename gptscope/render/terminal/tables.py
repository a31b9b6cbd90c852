"""Tables on a terminal: numbers to the right, a bar beside a probability, a list as a strip.

A table takes the first of `LAYOUTS` that fits; if none does, it is written row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.box import ASCII2, SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.style import Style
from rich.table import Table as RichTable
from rich.text import Text

from gptscope.glyphs import visible
from gptscope.render.numbers import formatter, is_nothing
from gptscope.render.palette import DIVERGING, SEQUENTIAL, colour
from gptscope.render.terminal.cells import NUMBERS, has_colours, label, title

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console, JustifyMethod, RenderableType

    from gptscope.render.screen import Screen
    from gptscope.view import Column, Table

BAR, GAP, FOLDED = 12, 3, 30  # cells


@dataclass(frozen=True)
class Layout:
    """How much room a table takes."""

    bars: bool  # beside probabilities
    stacked: bool  # the words of a heading one under the other
    strip: int  # cells in a line of a strip


LAYOUTS = (
    Layout(bars=True, stacked=False, strip=64),
    Layout(bars=False, stacked=False, strip=64),
    Layout(bars=False, stacked=True, strip=32),
)


def table(part: Table, to: Console, screen: Screen) -> Iterator[RenderableType]:
    """A table in the first layout that fits; nothing is cut."""
    yield from title(part.title)
    for layout in LAYOUTS:
        rows = written(part, to, layout)
        if width(part, rows, layout) <= to.width:
            yield in_columns(part, rows, layout, screen)
            return
    yield from one_by_one(
        part, written(part, to, Layout(bars=False, stacked=False, strip=to.width))
    )


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
    return sum(least) + GAP * (len(wide) - 1)


def widest(text: Text) -> int:
    """The widest line of a cell."""
    return max(map(cell_len, text.plain.split("\n")))


def in_columns(
    part: Table, rows: Sequence[Sequence[Text]], layout: Layout, screen: Screen
) -> RenderableType:
    """The usual layout."""
    box = SIMPLE_HEAD if screen.unicode else ASCII2
    out = RichTable(box=box, header_style="bold", pad_edge=False, show_edge=False)
    for column, head in zip(part.columns, headings(part, layout), strict=True):
        number = column.kind in NUMBERS and not (layout.bars and column.kind == "probability")
        side: JustifyMethod = "right" if number else "left"
        out.add_column(head, justify=side, overflow="fold", no_wrap=column.kind != "text")
    for row in rows:
        out.add_row(*row)
    return out


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
        largest = max((abs(float(x)) for v in values for x in v), default=0.0)
        return lambda value: strip(value, largest, layout.strip, to)
    if column.kind not in NUMBERS:
        return lambda value: Text(label(value or "", column.kind))
    write = formatter(column.kind, values)
    if column.kind == "probability" and layout.bars:
        return lambda value: Text(f"{write(value):>6} ") + bar(value)
    return lambda value: Text(write(value))


def bar(share: float | None) -> Text:
    """A bar as long as the share; the number stands beside it."""
    filled = 0 if is_nothing(share) else round(float(share or 0) * BAR)
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
        left, right = (Color.from_rgb(*colour(share, DIVERGING)) for share in pair)
        text.append("▌", Style(color=left, bgcolor=right))
    return text


def sign(share: float) -> str:
    """One character for a value: = - . + # from far below zero to far above."""
    if abs(share) < 0.15:
        return "."
    return ("+", "#")[share > 0.5] if share > 0 else ("-", "=")[share < -0.5]
