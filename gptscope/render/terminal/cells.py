"""What tables and grids share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from gptscope.glyphs import token_glyphs, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from gptscope.view import Kind

NUMBERS = ("id", "count", "probability", "signed", "length", "number")
LABEL, LEGEND = 16, 24  # cells


def title(text: str) -> Iterator[Text]:
    """A part's title, if it has one."""
    if text:
        yield Text(visible(text), style="bold")


def label(text: str, kind: Kind) -> str:
    """Text or a token, made safe and visible."""
    return token_glyphs(text) if kind == "token" else visible(text)


def has_colours(to: Console) -> bool:
    """Whether this place shows colours."""
    return to.color_system is not None and not to.no_color
