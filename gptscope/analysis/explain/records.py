"""What an explanation is made of: sums, steps and softmaxes, as plain records."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Term:
    """One summand; where it is a product, its factors as well."""

    name: str
    value: float
    factors: tuple[float, ...] = ()


@dataclass(frozen=True)
class Sum:
    """Terms that add up; if the model holds their sum, what they leave of it is rounding."""

    name: str
    axis: str  # what a term is: dimension, token, unit, head, part
    terms: tuple[Term, ...]
    held: float | None = None  # the sum as the model has it, where it has
    factors: tuple[str, ...] = ()  # what the factors of each term are
    source: str = ""  # where the terms come from: `layers.0.heads.0.q[5,i] x ...`

    @property
    def value(self) -> float:
        """What the terms add up to."""
        return math.fsum(term.value for term in self.terms)

    @property
    def remainder(self) -> float | None:
        """What the model has less what the terms add up to."""
        return None if self.held is None else self.held - self.value


@dataclass(frozen=True)
class Step:
    """One small computation: its name, its formula in words, its result."""

    name: str
    formula: str
    value: float


@dataclass(frozen=True, eq=False)
class Softmax:
    """A whole row on its way through exp(x - maximum) / sum."""

    scores: Array  # [n], -inf where hidden
    exponentials: Array  # [n]
    shares: Array  # [n]
    at: int  # which of them is explained

    @property
    def maximum(self) -> float:
        """The largest score."""
        return float(self.scores.max())

    @property
    def total(self) -> float:
        """The sum of the exponentials."""
        return math.fsum(self.exponentials)

    @property
    def value(self) -> float:
        """The share that is explained."""
        return float(self.shares[self.at])


Part = Sum | Step | Softmax


@dataclass(frozen=True)
class Explanation:
    """One number of a pass, and everything it was made of, in order."""

    name: str  # with its indices
    meaning: str
    value: float  # as it stands in the trace
    parts: tuple[Part, ...]
    tokens: tuple[tuple[str, int], ...] = ()  # what each index that is a position says

    @property
    def computed(self) -> float:
        """What the last part comes to: the value again, but for rounding."""
        return self.parts[-1].value


def products(
    name: str,
    axis: str,
    factors: tuple[str, str],
    pairs: tuple[Array, Array],
    held: float,
    bias: float | None = None,
) -> Sum:
    """A dot product, term by term: sum of a_i b_i, and a bias if there is one."""
    terms = [
        Term(str(i), float(a) * float(b), (float(a), float(b)))
        for i, (a, b) in enumerate(zip(*pairs, strict=True))
    ]
    terms += [] if bias is None else [Term("bias", float(bias))]
    return Sum(name, axis, tuple(terms), float(held), factors)
