"""What a renderer must know of the place that its text goes to."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TextIO

UNBOUNDED = 100_000  # columns of a pipe or a file, where nothing has to be cut
GLYPHS = "·↵⇥▌█…─"


@dataclass(frozen=True)
class Screen:
    """A terminal, or what stands in for one."""

    width: int = 80
    terminal: bool = False
    unicode: bool = True
    colours: bool = True  # where the terminal has them
    light: bool = False  # whether the background is
    precision: int | None = None  # significant digits, where they were asked for


def screen_of(stream: TextIO) -> Screen:
    """The screen behind a stream; COLUMNS counts everywhere, a pipe without it has no edge."""
    terminal = stream.isatty()
    fallback = (80 if terminal else UNBOUNDED, 24)
    width = shutil.get_terminal_size(fallback).columns if terminal else _columns() or UNBOUNDED
    return Screen(width, terminal, can_encode(stream, GLYPHS))


def can_encode(stream: TextIO, text: str) -> bool:
    """Whether the stream's encoding has all of these characters."""
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _columns() -> int:
    value = os.environ.get("COLUMNS", "")
    return int(value) if value.isdecimal() else 0
