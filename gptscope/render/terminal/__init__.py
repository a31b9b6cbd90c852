"""A view on a terminal: the only owner of colours. Every cell is plain text, never markup."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from gptscope.glyphs import visible
from gptscope.render.fed import fed
from gptscope.render.numbers import formatter
from gptscope.render.terminal.cells import title
from gptscope.render.terminal.grids import grid
from gptscope.render.terminal.sheets import sheet
from gptscope.render.terminal.tables import table
from gptscope.view import Facts, Grid, Note, Part, Sheet, Table, View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import RenderableType

    from gptscope.render.screen import Screen

ROOM = 40  # cells that words beside a name should have
ASCII = str.maketrans({"·": "_", "↵": "$", "⇥": ">", "█": "#", "▌": "|", "…": "~", "─": "-"})


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
    options.setdefault("no_color", None if screen.colours else True)
    plain: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
    plain |= {"width": screen.width, "height": 24}  # without a height, TERM=dumb means 80 columns
    return Console(file=out, force_terminal=forced, **plain, **options)


def draw(view: View, to: Console, screen: Screen) -> None:
    """Print what was fed, then every part."""
    if view.input:
        to.print(Text(fed(view.model or {}, view.input)), style="dim")
    for i, part in enumerate(view.parts):
        if i or view.input:
            to.print()
        for piece in pieces(part, to, screen):
            to.print(piece)


def pieces(part: Part, to: Console, screen: Screen) -> Iterator[RenderableType]:
    """What is printed for one part."""
    match part:
        case Table():
            yield from table(part, to, screen)
        case Grid():
            yield from grid(part, to)
        case Sheet():
            yield from sheet(part, to, screen)
        case Facts():
            yield from facts(part, to)
        case Note():
            yield Text(visible(part.text))


def facts(part: Facts, to: Console) -> Iterator[RenderableType]:
    """Name and value, one a line; words that do not fit go on below, under their beginning."""
    yield from title(part.title)
    names = [visible(column.name) for column, _ in part.pairs]
    wide = max(map(cell_len, names))
    for name, (column, value) in zip(names, part.pairs, strict=True):
        number = formatter(column.kind, [value])
        shown = visible(value, keep="\n") if isinstance(value, str) else number(value)
        beside, first = wide + 2, name
        if to.width - beside < ROOM and cell_len(shown) > to.width - beside:  # a narrow screen
            yield Text(name)
            beside, first = 2, ""
        for i, line in enumerate(Text(shown).wrap(to, to.width - beside)):
            yield Text(set_cell_size("" if i else first, beside)) + line
