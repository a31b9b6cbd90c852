"""Tables on a terminal: numbers to the right, a bar beside a probability, a list as a strip."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.box import ASCII2, SIMPLE_HEAD
from rich.color import Color
from rich.style import Style
from rich.table import Table as RichTable
from rich.text import Text

from gptscope.glyphs import visible
from gptscope.render.numbers import formatter
from gptscope.render.palette import DIVERGING, SEQUENTIAL, colour
from gptscope.render.terminal.cells import LABEL, NUMBERS, has_colours, label, title

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console, JustifyMethod, RenderableType

    from gptscope.render.screen import Screen
    from gptscope.view import Column, Table

BAR, STRIP = 12, 64  # cells
BESIDE_STRIP = 44  # cells that a strip leaves to the columns beside it


def table(part: Table, to: Console, screen: Screen) -> Iterator[RenderableType]:
    """A table; long cells are folded, so nothing is cut."""
    yield from title(part.title)
    box = SIMPLE_HEAD if screen.unicode else ASCII2
    out = RichTable(box=box, header_style="bold", pad_edge=False, show_edge=False)
    for column in part.columns:
        side: JustifyMethod = (
            "right" if column.kind in NUMBERS and not has_bar(column, to) else "left"
        )
        out.add_column(Text(visible(column.name)), justify=side, overflow="fold")
    writers = [cells(c, [r[i] for r in part.rows], to) for i, c in enumerate(part.columns)]
    for row in part.rows:
        out.add_row(*(write(value) for write, value in zip(writers, row, strict=True)))
    yield out


def cells(column: Column, values: Sequence[Any], to: Console) -> Any:  # noqa: ANN401
    """The function that writes one cell of this column."""
    if column.kind == "vector":
        largest = max((abs(float(x)) for v in values for x in v), default=0.0)
        return partial(strip, largest=largest, to=to)
    write = formatter(column.kind, values if column.kind in NUMBERS else ())
    if has_bar(column, to):
        return lambda value: Text(f"{write(value):>6}") + bar(value)
    if column.kind in NUMBERS:
        return lambda value: Text(write(value))
    return lambda value: Text(label(value or "", column.kind))


def has_bar(column: Column, to: Console) -> bool:
    """Whether there is room to draw a probability beside its number."""
    return column.kind == "probability" and to.width >= 60


def bar(share: float | None) -> Text:
    """A bar as long as the share; the number stands beside it."""
    filled = 0 if share is None or math.isnan(share) else round(share * BAR)
    style = Style(color=Color.from_rgb(*colour(0.9, SEQUENTIAL)))
    return Text(" ") + Text("█" * filled, style=style) + Text(" " * (BAR - filled))


def strip(values: Sequence[float], largest: float, to: Console) -> Text:
    """A list of numbers as coloured cells, two to a character; signs where there is no colour."""
    shares = [float(v) / (largest or 1.0) for v in values]
    wide = max(LABEL, min(STRIP, to.width - BESIDE_STRIP))
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
