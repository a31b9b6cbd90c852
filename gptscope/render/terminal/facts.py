"""Facts on a terminal: name and value, one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from gptscope.glyphs import encodable, visible
from gptscope.render.numbers import formatter
from gptscope.render.terminal.cells import padded, title, wide

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.render.terminal.cells import Line
    from gptscope.render.terminal.place import Place
    from gptscope.view import Facts, Kind

ROOM = 40  # cells that words beside a name should have


def facts(part: Facts, place: Place) -> Iterator[Line]:
    """Name and value; words that do not fit go on below, under their beginning."""
    yield from title(part.title, place)
    names = [place.words(column.name) for column, _ in part.pairs]
    longest = max(map(wide, names), default=0)
    for name, (column, value) in zip(names, part.pairs, strict=True):
        number = formatter(column.kind, [value], precision=place.screen.precision)
        shown = words(value, column.kind, place) if isinstance(value, str) else number(value)
        beside, first = longest + 2, name
        if place.width - beside < ROOM and wide(shown) > place.width - beside:  # a narrow screen
            yield name
            beside, first = 2, ""
        for i, line in enumerate(Text(shown).wrap(place.to, max(1, place.width - beside))):
            yield f"{padded('' if i else first, beside)}{line.plain}"


def words(value: str, kind: Kind, place: Place) -> str:
    """A token, or text that keeps its lines."""
    if kind == "token":
        return place.label(value, kind)
    return encodable(visible(value, keep="\n"), place.screen.charset)
