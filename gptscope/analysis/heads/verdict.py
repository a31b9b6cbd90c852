"""When a head is called by a name: only far beyond chance. The one place of this rule."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

SHARE = 0.4  # of its attention, or of its tokens, at the least
TIMES = 3  # what chance would give, at the least
ERRORS = 5  # standard errors above chance, at the least

WORDS: Mapping[str, str] = {  # score -> what a head is called that has it
    "previous": "previous token",
    "itself": "itself",
    "first": "first token (sink)",
    "duplicate": "duplicate token",
    "induction": "induction",
    "copying": "copies",
}


def is_far_beyond(share: float, error: float, chance: float) -> bool:
    """Whether a share is at least SHARE, TIMES chance, and ERRORS standard errors above chance.

    Of what is not a number nothing is said.
    """
    levels = SHARE, TIMES * chance, chance + ERRORS * error
    return all(share >= level for level in levels)
