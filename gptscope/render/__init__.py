"""View -> text, or bytes. A format is one module with `render(view, screen)`, listed here."""

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
    "markdown": "as_markdown",
    "html": "as_html",
    "svg": "as_svg",
    "npz": "as_npz",
}
BINARY = frozenset({"npz"})  # bytes, which no terminal can show
ENDINGS: Mapping[str, str] = {  # of a file -> format
    "txt": "table",
    "json": "json",
    "csv": "csv",
    "md": "markdown",
    "html": "html",
    "htm": "html",
    "svg": "svg",
    "npz": "npz",
}


def render(view: View, fmt: str, screen: Screen) -> str | bytes:
    """The view in one of the formats of `RENDERERS`."""
    module = import_module(f"gptscope.render.{RENDERERS[fmt]}")
    made: str | bytes = module.render(view, screen)
    return made
