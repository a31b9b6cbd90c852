"""A running text in a page: each token on the colour of its number.

The number is the title of its token and read aloud after it; without colours it can be seen there.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from gptscope.glyphs import token_glyphs
from gptscope.render.as_html.colours import steps_for
from gptscope.render.as_html.pictures import ends, full_scale, look_of
from gptscope.render.numbers import formatter

if TYPE_CHECKING:
    from gptscope.view import Passage


def passage(part: Passage, precision: int | None) -> tuple[str, str]:
    """The text, in lines as it has them; and the legend."""
    seen = [float(value) for value in part.values if value is not None]
    write = formatter(part.kind, seen, grid=True, precision=precision)
    scale, steps = full_scale(part.kind, seen), steps_for(part.kind)
    text = []
    for words, value in zip(part.tokens, part.values, strict=True):
        look = " none" if value is None else look_of(float(value), scale, steps)
        shown = escape(token_glyphs(words)).replace("↵", "↵<br />")
        number = escape(write(value))
        inner = f"{shown}<small> {number} </small>"
        text.append(f'<span class="token{look}" title="{number}">{inner}</span>')
    legend = ends(part.kind, scale, precision) if seen else ""
    return f'<p class="passage">{"<wbr />".join(text)}</p>', legend
