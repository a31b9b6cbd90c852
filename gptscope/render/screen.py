"""What a renderer must know of the place that its text goes to."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TextIO

from gptscope.glyphs import has

UNBOUNDED = 100_000  # columns of a pipe or a file, where nothing has to be cut
GLYPHS = "·↵⇥▌▀▄█…─"
LIGHT = {"7", *map(str, range(9, 16))}  # backgrounds in COLORFGBG, as Vim reads it


@dataclass(frozen=True)
class Screen:
    """A terminal, or what stands in for one."""

    width: int = 80
    terminal: bool = False
    unicode: bool = True
    colours: bool = True  # where the terminal has them
    light: bool = False  # whether the background is
    precision: int | None = None  # significant digits, where they were asked for
    encoding: str = "utf-8"

    @property
    def charset(self) -> str:
        """The encoding that text must fit in: ASCII where plain characters were asked for."""
        return "ascii" if not self.unicode and has(self.encoding, GLYPHS) else self.encoding


def screen_of(stream: TextIO) -> Screen:
    """The screen behind a stream; COLUMNS counts everywhere, a pipe without it has no edge."""
    terminal = stream.isatty()
    fallback = (80 if terminal else UNBOUNDED, 24)
    width = shutil.get_terminal_size(fallback).columns if terminal else _columns() or UNBOUNDED
    encoding = stream.encoding or "ascii"
    unicode = can_encode(stream, GLYPHS)
    return Screen(width, terminal, unicode, light=is_light(), encoding=encoding)


def is_light() -> bool:
    """Whether the background is light, as far as COLORFGBG tells; without it, it is dark.

    A terminal could be asked for its background, but one that does not answer would hold the
    program up. COLORFGBG ("0;15") is set by Konsole, rxvt and others; `--theme` decides.
    """
    return os.environ.get("COLORFGBG", "").rpartition(";")[2] in LIGHT


def can_encode(stream: TextIO, text: str) -> bool:
    """Whether the stream's encoding has all of these characters."""
    return has(stream.encoding or "ascii", text)


def _columns() -> int:
    value = os.environ.get("COLUMNS", "")
    return int(value) if value.isdecimal() else 0
