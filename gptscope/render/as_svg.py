"""SVG: a picture of the terminal view, for slides and pages; it needs nothing from elsewhere."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gptscope.render.screen import Screen
from gptscope.render.terminal import picture

if TYPE_CHECKING:
    from gptscope.view import View

WIDTH = 80
CLIP = re.compile(r' clip-path="url\(#[\w-]*\)"')
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
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
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
    # A font wider than expected would be cut at the end of each line.
    text = CLIP.sub("", picture(view, frame, FORM))
    return text.encode("ascii", "xmlcharrefreplace").decode()  # the same in every encoding
