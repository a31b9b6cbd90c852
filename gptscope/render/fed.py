"""What a model was really given, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.glyphs import visible

if TYPE_CHECKING:
    from collections.abc import Mapping

SHOWN = 24  # ids


def fed(model: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """The model, the ids, and what stands around the text."""
    ids = " ".join(map(str, given["ids"][:SHOWN])) + (" …" if len(given["ids"]) > SHOWN else "")
    around = f"{given['prepended']} prepended" if given["prepended"] else "nothing prepended"
    around += f", {given['appended']} appended" if given["appended"] else ""
    n = len(given["ids"])
    return f"{visible(model['name'])} · {n} token{'s' * (n != 1)}: {ids} ({around})"
