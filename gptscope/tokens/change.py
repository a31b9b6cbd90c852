"""What a tokenizer did to a text that does not come back from its tokens."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

NEAR = 40  # characters on either side of the first difference that are compared
ALIKE = 0.5  # words of which more is the same differ in letters, others as a whole
SAME = "its bytes changed"
SHOWN = 20  # characters of a piece in a sentence
PIECES = re.compile(r"\w+|[^\w\s]+|\s+")


def first_change(text: str, back: str) -> str:
    """The first difference between a text and what its tokens give back, in a few words."""
    pairs = enumerate(zip(text, back, strict=False))
    end = next((i for i, (a, b) in pairs if a != b), min(len(text), len(back)))
    first = max(0, end - NEAR)
    begin = next((i for i in range(end, first, -1) if not text[i - 1].isalnum()), first)
    old, new = (PIECES.findall(side[begin : end + NEAR]) for side in (text, back))
    start, was, became = difference(old, new)
    if SequenceMatcher(None, was, became, autojunk=False).ratio() > ALIKE:
        more, was, became = difference(was, became)
        start += more
    return f"at character {begin + start}, {told(was, became)}" if was or became else SAME


def difference(old: Sequence[str], new: Sequence[str]) -> tuple[int, str, str]:
    """The first difference between two rows of pieces: how far in, and both sides of it."""
    for kind, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            return len("".join(old[:i])), "".join(old[i:j]), "".join(new[k:m])
    return 0, "", ""


def told(old: str, new: str) -> str:
    """What became of a piece."""
    if not old:
        return f"{cut(new)} was put in"
    return f"{cut(old)} was left out" if not new else f"{cut(old)} became {cut(new)}"


def cut(piece: str) -> str:
    """A piece in quotes, as a sentence can hold it."""
    return repr(piece if len(piece) <= SHOWN else f"{piece[:SHOWN]}...")
