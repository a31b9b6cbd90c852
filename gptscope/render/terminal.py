"""A view on a terminal: the only owner of colours. Every cell is plain text, never markup."""

from __future__ import annotations

import io
import math
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.box import ASCII2, SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.color import Color
from rich.console import Console, JustifyMethod, RenderableType
from rich.style import Style
from rich.text import Text

from gptscope.glyphs import token_glyphs, visible
from gptscope.render.numbers import formatter
from gptscope.render.palette import DIVERGING, SEQUENTIAL, UNSEEN, Stops, colour, ink
from gptscope.view import Column, Facts, Grid, Note, Part, Table, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gptscope.render.screen import Screen
    from gptscope.view import Kind

ASCII = str.maketrans({"·": "_", "↵": "$", "⇥": ">", "█": "#", "…": "~", "─": "-"})
NUMBERS = ("id", "count", "probability", "signed", "length", "number")
BAR, STRIP, LABEL = 12, 64, 16  # cells
BESIDE_STRIP = 44  # cells that a strip leaves to the columns beside it


def render(view: View, screen: Screen) -> str:
    """The view as text, with escape codes where the place has colours."""
    out = io.StringIO()
    draw(view, console(screen, out), screen)
    text = out.getvalue()
    return text if screen.unicode else text.translate(ASCII)


def picture(view: View, screen: Screen, form: str) -> str:
    """The view as an SVG in full colour; the same view gives the same text."""
    to = console(screen, io.StringIO(), record=True, color_system="truecolor", no_color=False)
    draw(view, to, screen)
    return to.export_svg(title=f"gptscope {view.command}", code_format=form, unique_id="gptscope")


def console(screen: Screen, out: io.StringIO, **options: Any) -> Console:  # noqa: ANN401
    """A console that obeys NO_COLOR, FORCE_COLOR and TERM, and never reads markup."""
    forced = True if screen.terminal else None
    plain: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
    return Console(file=out, width=screen.width, force_terminal=forced, **plain, **options)


def draw(view: View, to: Console, screen: Screen) -> None:
    """Print what was fed, then every part."""
    if view.input:
        to.print(fed(view), style="dim", soft_wrap=False)
    for i, part in enumerate(view.parts):
        if i or view.input:
            to.print()
        for piece in pieces(part, to, screen):
            to.print(piece)


def fed(view: View) -> Text:
    """What the model was really given."""
    given, model = view.input or {}, view.model or {}
    ids = " ".join(map(str, given["ids"][:24])) + (" …" if len(given["ids"]) > 24 else "")
    before = f"{given['prepended']} prepended" if given["prepended"] else "nothing prepended"
    n = len(given["ids"])
    return Text(f"{visible(model['name'])} · {n} token{'s' * (n != 1)}: {ids} ({before})")


def pieces(part: Part, to: Console, screen: Screen) -> Iterator[RenderableType]:
    """What is printed for one part."""
    match part:
        case Table():
            yield from table(part, to, screen)
        case Grid():
            yield from grid(part, to)
        case Facts():
            yield from facts(part)
        case Note():
            yield Text(visible(part.text))


def title(text: str) -> Iterator[Text]:
    """A part's title, if it has one."""
    if text:
        yield Text(visible(text), style="bold")


def table(part: Table, to: Console, screen: Screen) -> Iterator[RenderableType]:
    """A table; long cells are folded, so nothing is cut."""
    from rich.table import Table as RichTable

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


def label(text: str, kind: Kind) -> str:
    """Text or a token, made safe and visible."""
    return token_glyphs(text) if kind == "token" else visible(text)


def bar(share: float | None) -> Text:
    """A bar as long as the share; the number stands beside it."""
    filled = 0 if share is None or math.isnan(share) else round(share * BAR)
    style = Style(color=Color.from_rgb(*colour(0.9, SEQUENTIAL)))
    return Text(" ") + Text("█" * filled, style=style) + Text(" " * (BAR - filled))


def facts(part: Facts) -> Iterator[RenderableType]:
    """Name and value, one a line."""
    yield from title(part.title)
    wide = max(cell_len(visible(column.name)) for column, _ in part.pairs)
    for column, value in part.pairs:
        number = formatter(column.kind, [value])
        shown = visible(value, keep="\n") if isinstance(value, str) else number(value)
        yield Text(f"{set_cell_size(visible(column.name), wide)}  {shown}")


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
    yield Text(" " * side + "".join(f"{i:>{wide}}" for i in range(first, len(heads))), style="dim")
    yield Text(" " * side + "".join(fit(h, wide - 1, wide) for h in heads[first:]))
    for name, row, values in zip(names, texts, part.values, strict=True):
        line = Text(fit(name, side - 1, side, left=True))
        for text, value in zip(row[first:], values[first:], strict=True):
            line.append(f"{text:>{wide}}", shade(float(value), scale, stops))
        yield line
    if first:
        yield Text(left_out(first, len(heads)))


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


def strip(values: Sequence[float], largest: float, to: Console) -> Text:
    """A list of numbers as coloured cells, two to a character; signs where there is no colour."""
    shares = [float(v) / (largest or 1.0) for v in values]
    wide = max(LABEL, min(STRIP, to.width - BESIDE_STRIP))
    if to.color_system is None or to.no_color:
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
