"""An account of a logit: named terms that add up to it, but for a remainder."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from gptscope.analysis.attribution.directions import Directions
    from gptscope.analysis.wiring import Value

EDITED = "changed by --edit"  # after the name of a value, in that of its term
Kind = Literal[
    "embedding",  # of the token, of its position
    "head",
    "attention bias",
    "feed forward",
    "feed-forward bias",
    "norm shift",
    "output bias",  # and that of a matrix before the output
    "edit",  # what an edited value has more than what it is the sum of
]


@dataclass(frozen=True)
class Term:
    """What one part gives to the logit."""

    name: str  # as hook points are called: `layers.2.heads.1`, `layers.3.mlp`
    value: float
    kind: Kind
    layer: int | None = None
    head: int | None = None
    of: Value | None = None  # of the stream, or the logits; None of what comes after the stream


@dataclass(frozen=True, eq=False)
class Account:
    """The terms of a logit, or of a sum of logits, in the order of the pass."""

    terms: tuple[Term, ...]
    logit: float  # as the pass has it; before the cap, where logits have one
    found: Directions

    @property
    def total(self) -> float:
        """What the terms add up to."""
        return math.fsum(term.value for term in self.terms)

    @property
    def remainder(self) -> float:
        """What the pass has less what the terms add up to."""
        return self.logit - self.total
