"""SVG: a picture of the terminal view, for slides and pages; it needs nothing from elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.render.screen import Screen
from gptscope.render.terminal import picture

if TYPE_CHECKING:
    from gptscope.view import View

WIDTH = 80
# What rich fills in; its own form fetches a font from a server.
FORM = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{
  font-family: "Fira Code", "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix" xml:space="preserve">
{matrix}
</g>
</g>
</svg>
"""


def render(view: View, screen: Screen) -> str:
    """The view as it looks on a terminal of 80 columns, or fewer if the screen has fewer."""
    width = min(screen.width, WIDTH)
    frame = Screen(width, terminal=True, light=screen.light, precision=screen.precision)
    text = picture(view, frame, FORM)
    return text.encode("ascii", "xmlcharrefreplace").decode()  # the same in every encoding
