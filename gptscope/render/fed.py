"""What a model was really given, in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.glyphs import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

SHOWN = 24  # ids


def fed(model: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """The model, the ids, and what stands around the text."""
    ids = " ".join(map(str, given["ids"][:SHOWN])) + (" …" if len(given["ids"]) > SHOWN else "")
    return f"{summary(model, given)}: {ids} ({around(given)})"


def changed(edits: Iterable[str]) -> str:
    """What was changed while the model ran, in one line."""
    return f"changed: {', '.join(map(visible, edits))}"


def summary(model: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    """The model, and how many tokens it read."""
    n = len(given["ids"])
    return f"{visible(model['name'])} · {n} token{'s' * (n != 1)}"


def around(given: Mapping[str, Any]) -> str:
    """How many tokens the tokenizer put before and after the text."""
    before = f"{given['prepended']} prepended" if given["prepended"] else "nothing prepended"
    return before + (f", {given['appended']} appended" if given["appended"] else "")
