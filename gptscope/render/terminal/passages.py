"""A running text on a terminal: each token on the colour of its number, or above it.

Lines are broken between tokens, and after every line end that a token has; only a token wider than
a whole line is divided.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from gptscope.render.numbers import formatter
from gptscope.render.terminal.cells import legend, padded, title, wide
from gptscope.render.terminal.grids import full_scale, style

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gptscope.render.terminal.cells import Line
    from gptscope.render.terminal.place import Place
    from gptscope.view import Passage

MOST = 100  # cells of a line that is still easy to read
GAP = 2  # cells between tokens that have their numbers under them
LINES = re.compile(r"[^\n]*\n|[^\n]+")
SIGNS = re.compile(r"<(?:0x[0-9A-F]{2}|U\+[0-9A-F]{4,6})>|.")  # one character, as it is shown


@dataclass(frozen=True)
class Piece:
    """What is shown of a token: all of it, or what stands in one line."""

    shown: str
    value: Any
    number: str  # under the first piece of a token
    ends: bool  # whether a new line begins after it

    @property
    def size(self) -> int:
        """Cells that it takes with its number under it."""
        return max(wide(self.shown), len(self.number))


def passage(part: Passage, place: Place) -> Iterator[Line]:
    """The text in colours, with a legend; without colours, with a number under every token."""
    yield from title(part.title, place)
    seen = [float(value) for value in part.values if value is not None]
    write = formatter(part.kind, seen, grid=True, precision=place.screen.precision)
    room = max(1, min(place.width, MOST))
    found = pieces(part, write, room, place)
    if not place.colours:
        for line in filled(found, room, lambda piece: piece.size + GAP, GAP):
            yield from over_numbers(line)
        return
    scale, paint = full_scale(part.kind, seen), place.paint(part.kind)
    for line in filled(found, room, lambda piece: wide(piece.shown)):
        text = Text()
        for piece in line:
            text.append(piece.shown, style(piece.value, scale, paint, place.faint))
        yield text
    if seen:
        yield legend(paint, write(paint.scale.low * scale), write(scale), place)


def pieces(part: Passage, write: Callable[[Any], str], room: int, place: Place) -> Iterator[Piece]:
    """Every token, in as many pieces as it takes lines."""
    for token, value in zip(part.tokens, part.values, strict=True):
        number = write(value)
        for one in LINES.findall(token) or [""]:
            label = place.label(one, "token")
            shown = [label] if wide(label) <= room else divided(label, room)
            for i, some in enumerate(shown, 1):
                yield Piece(some, value, number, one.endswith("\n") and i == len(shown))
                number = ""


def divided(label: str, room: int) -> list[str]:
    """A token in lines; what stands for one character stays whole."""
    shown = [""]
    for sign in SIGNS.findall(label):
        if shown[-1] and wide(shown[-1] + sign) > room:
            shown.append("")
        shown[-1] += sign
    return shown


def filled(
    found: Iterable[Piece], room: int, size: Callable[[Piece], int], over: int = 0
) -> Iterator[list[Piece]]:
    """Lines of pieces that fit; `over` cells at the end of each are not needed."""
    line: list[Piece] = []
    used = 0
    for piece in found:
        if line and used + size(piece) - over > room:
            yield line
            line, used = [], 0
        line.append(piece)
        used += size(piece)
        if piece.ends:
            yield line
            line, used = [], 0
    if line:
        yield line


def over_numbers(line: list[Piece]) -> Iterator[str]:
    """A line of tokens, and a line with their numbers."""
    between = " " * GAP
    yield between.join(str(padded(piece.shown, piece.size)) for piece in line).rstrip(" ")
    if any(piece.number for piece in line):
        yield between.join(f"{piece.number:<{piece.size}}" for piece in line).rstrip(" ")
