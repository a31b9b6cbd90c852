"""Where a view is drawn: how wide it is, which characters it takes, which colours it has."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rich.color import Color
from rich.style import Style

from gptscope.glyphs import encodable, token_glyphs, visible
from gptscope.render.palette import colour, ink, ink_on, scale_for

if TYPE_CHECKING:
    from rich.console import Console

    from gptscope.render.palette import RGB, Scale
    from gptscope.render.screen import Screen
    from gptscope.view import Kind

GREY: RGB = (95, 95, 95)  # on white, with a contrast of 6


@dataclass(frozen=True)
class Place:
    """A console, and what its screen is like."""

    to: Console
    screen: Screen

    @property
    def width(self) -> int:
        """Columns."""
        return self.to.width

    @cached_property
    def colours(self) -> bool:
        """Whether this place shows colours."""
        return self.to.color_system is not None and not self.to.no_color

    @cached_property
    def blocks(self) -> bool:
        """Whether half a character can have a colour of its own."""
        return self.colours and self.screen.unicode

    @cached_property
    def faint(self) -> Style:
        """Small print; a terminal's own "dim" cannot be read on a light background."""
        if not self.screen.light:
            return Style(dim=True)
        if self.to.color_system in ("truecolor", "256"):
            return Style(color=Color.from_rgb(*GREY))
        return Style()

    def paint(self, kind: Kind) -> Paint:
        """The colours of a kind of value."""
        return Paint(scale_for(kind, light=self.screen.light), self.to.color_system or "")

    def words(self, text: str) -> str:
        """Words made safe and visible, in characters that this place has."""
        return encodable(visible(text), self.screen.charset)

    def label(self, text: str, kind: Kind) -> str:
        """Words or a token made safe and visible, in characters that this place has."""
        return (
            encodable(token_glyphs(text), self.screen.charset)
            if kind == "token"
            else (self.words(text))
        )

    @cached_property
    def cut(self) -> str:
        """What stands where a text was cut."""
        return "…" if encodable("…", self.screen.charset) == "…" else ".."


@dataclass(frozen=True)
class Paint:
    """The colours of one kind of value on one terminal."""

    scale: Scale
    system: str

    def back(self, share: float) -> Color | None:
        """The colour of a share of the largest value; on 16 colours, little has none."""
        if self.system == "truecolor":
            return Color.from_rgb(*colour(share, self.scale.stops))
        number = self.scale.step(share, self.steps)
        return None if number is None else Color.from_ansi(number)

    def cell(self, share: float) -> Style:
        """A cell of this colour, with text that can be read on it."""
        if self.system == "truecolor":
            back = colour(share, self.scale.stops)
            return Style(color=Color.from_rgb(*ink(back)), bgcolor=Color.from_rgb(*back))
        number = self.scale.step(share, self.steps)
        if number is None:
            return Style()
        return Style(color=Color.from_ansi(ink_on(number)), bgcolor=Color.from_ansi(number))

    @property
    def steps(self) -> tuple[int | None, ...]:
        """The numbers of the colours, where there are few."""
        return self.scale.many if self.system == "256" else self.scale.few
