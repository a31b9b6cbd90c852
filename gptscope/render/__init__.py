"""View -> text. A format is one module with `render(view, screen)`, listed here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gptscope.render.screen import Screen
    from gptscope.view import View

RENDERERS: Mapping[str, str] = {  # format -> module, loaded when it is asked for
    "table": "terminal",
    "json": "as_json",
    "csv": "as_csv",
    "svg": "as_svg",
}


def render(view: View, fmt: str, screen: Screen) -> str:
    """The view in one of the formats of `RENDERERS`."""
    module = import_module(f"gptscope.render.{RENDERERS[fmt]}")
    text: str = module.render(view, screen)
    return text
