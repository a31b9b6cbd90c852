"""What a model says of the characters it was trained on: the text.json in its folder.

`seen` is a string of every character that occurred; `mapped` says what was put for others before
the model learned: a string for each character. A folder without that file says nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gptscope.errors import ModelError
from gptscope.model.files import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

FILE = "text.json"
LONGEST_PUT = 16  # characters: a text must not grow without bounds


@dataclass(frozen=True)
class Mapped:
    """A text as the model's training data were written, and what was put for what."""

    text: str
    replaced: Mapping[str, int] = field(default_factory=dict)  # character -> how often


@dataclass(frozen=True)
class Characters:
    """The characters of the training data."""

    seen: frozenset[str]
    mapped: Mapping[str, str]

    def map(self, text: str) -> Mapped:
        """The text with its characters mapped as those of the training data were."""
        found = {char: text.count(char) for char in self.mapped}
        found = {char: count for char, count in found.items() if count}
        return Mapped(text.translate({ord(char): put for char, put in self.mapped.items()}), found)

    def unseen(self, text: str) -> list[str]:
        """The characters that never occurred, each once, as they come."""
        return [char for char in dict.fromkeys(text) if char not in self.seen]


def read_characters(folder: Path) -> Characters | None:
    """What the model in this folder says, or None where it says nothing.

    Raises:
        ModelError: its text.json cannot be read, or says something else.
    """
    path = folder / FILE
    if not path.exists() and not path.is_symlink():
        return None
    values = read_json(path)
    seen, mapped = values.get("seen"), values.get("mapped", {})
    if not isinstance(seen, str) or not is_map(mapped):
        what = "a string `seen`, and `mapped`, strings for single characters"
        raise ModelError(f"{path} must hold {what}")
    return Characters(frozenset(seen), mapped)


def is_map(values: Any) -> bool:  # noqa: ANN401
    """Whether these are strings, each short, for single characters."""
    return isinstance(values, dict) and all(
        len(char) == 1 and isinstance(put, str) and len(put) <= LONGEST_PUT
        for char, put in values.items()
    )
