"""A view on a terminal: the only owner of colours. Every cell is plain text, never markup."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, SVG_EXPORT_THEME
from rich.text import Text

from gptscope.render.fed import changed, fed
from gptscope.render.terminal.cells import wide
from gptscope.render.terminal.facts import facts
from gptscope.render.terminal.grids import grid
from gptscope.render.terminal.passages import passage
from gptscope.render.terminal.place import Place
from gptscope.render.terminal.sheets import sheet
from gptscope.render.terminal.tables import table
from gptscope.view import Facts, Grid, Note, Part, Passage, Sheet, Table, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rich.console import ConsoleOptions

    from gptscope.render.screen import Screen
    from gptscope.render.terminal.cells import Line


class Lines:
    """Lines as they are; rich would measure and break again what fits already."""

    def __init__(self, lines: Iterable[Line]) -> None:
        """Each without its line end."""
        self._lines = lines

    def __rich_console__(self, to: Console, _: ConsoleOptions) -> Iterator[Segment]:
        """What is written; a line that is too wide goes on in the next."""
        width = to.width  # which looks at the environment
        for line in self._lines:
            if wide(line) <= width:
                yield from written(line, to)
            else:
                text = Text(line) if isinstance(line, str) else line
                for part in text.wrap(to, width):
                    yield from written(part, to)


def written(line: Line, to: Console) -> Iterator[Segment]:
    """One line, and its end."""
    if isinstance(line, str):
        yield Segment(f"{line}\n")
    elif line.spans:
        yield from line.render(to, end="\n")
    else:
        yield Segment(line.plain, to.get_style(line.style))
        yield Segment("\n")


def render(view: View, screen: Screen) -> str:
    """The view as text, with escape codes where the place has colours."""
    out = io.StringIO()
    draw(view, Place(console(screen, out), screen))
    return out.getvalue()


def picture(view: View, screen: Screen, form: str) -> str:
    """The view as an SVG in full colour; the same view gives the same text."""
    to = console(screen, io.StringIO(), record=True, color_system="truecolor", no_color=False)
    draw(view, Place(to, screen))
    theme = DEFAULT_TERMINAL_THEME if screen.light else SVG_EXPORT_THEME
    name = f"gptscope {view.command}"
    return to.export_svg(title=name, theme=theme, code_format=form, unique_id="gptscope")


def console(screen: Screen, out: io.StringIO, **options: Any) -> Console:  # noqa: ANN401
    """A console that obeys NO_COLOR, FORCE_COLOR and TERM, and never reads markup."""
    forced = True if screen.terminal else None
    options.setdefault("no_color", None if screen.colours else True)
    plain: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
    plain |= {"width": screen.width, "height": 24}  # without a height, TERM=dumb means 80 columns
    return Console(file=out, force_terminal=forced, **plain, **options)


def draw(view: View, place: Place) -> None:
    """Print what was fed, then every part."""
    place.to.print(Lines(lines(view, place)), crop=False)


def lines(view: View, place: Place) -> Iterator[Line]:
    """What was fed and changed, then every part, with an empty line between them."""
    if view.input:
        yield Text(given(view, place), style=place.faint)
    if view.edits:
        yield Text(place.words(changed(view.edits)), style="bold")
    for i, part in enumerate(view.parts):
        if i or view.input or view.edits:
            yield ""
        yield from pieces(part, place)


def given(view: View, place: Place) -> str:
    """What was fed, in characters that this place has."""
    line = fed(view.model or {}, view.input or {})
    if place.cut != "…":
        line = line.replace(" …", " ...")
    if place.words("·") != "·":
        line = line.replace(" · ", " - ", 1)
    return place.words(line)


def pieces(part: Part, place: Place) -> Iterator[Line]:
    """The lines of one part."""
    match part:
        case Table():
            yield from table(part, place)
        case Grid():
            yield from grid(part, place)
        case Sheet():
            yield from sheet(part, place)
        case Passage():
            yield from passage(part, place)
        case Facts():
            yield from facts(part, place)
        case Note():
            yield place.words(part.text)
