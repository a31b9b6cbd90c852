"""Two models on the same text, token by token where both cut it alike, else piece by piece."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.surprise import BIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gptscope.analysis.surprise import Surprise

    Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pair:
    """The pieces of a text that end where tokens of both end, each with the bits of its tokens.

    The bits of a piece are those of its tokens together, -log2 p(piece | what stands before), so
    that they add up whatever the tokens are; a token that one of the two has no number for is left
    out with its whole piece.
    """

    starts: tuple[Whole, Whole]  # the first token of each piece, counted in the text's own
    stops: tuple[Whole, Whole]  # after the last
    bits: tuple[NDArray[np.float64], NDArray[np.float64]]
    size: int  # of all pieces, in the unit of the places

    def __len__(self) -> int:
        """How many pieces."""
        return len(self.bits[0])

    @property
    def more(self) -> NDArray[np.float64]:
        """How many bits more the second model takes for each piece."""
        return self.bits[1] - self.bits[0]

    @property
    def single(self) -> int:
        """Pieces that are one token in both."""
        each = (stop - start == 1 for start, stop in zip(self.starts, self.stops, strict=True))
        return int(np.logical_and(*each).sum())

    def total(self, side: int) -> float:
        """Bits of all pieces together, for the first (0) or the second model (1)."""
        return math.fsum(self.bits[side])

    def n_tokens(self, side: int) -> int:
        """Tokens of all pieces."""
        return int((self.stops[side] - self.starts[side]).sum())


def paired(
    ends: tuple[Whole, Whole], made: tuple[Surprise, Surprise], prefix: tuple[int, int]
) -> Pair:
    """The pieces of a text from where each token of both ends [n], [m], and their surprise.

    `prefix` is how many tokens stand before the text in each.
    """
    cuts, which = common(*ends)
    starts = [np.concatenate([[0], at[:-1]]).astype(np.int64) for at in which]
    bits, known = zip(
        *(by_token(one, len(e), p) for one, e, p in zip(made, ends, prefix, strict=True)),
        strict=True,
    )
    there = np.ones(len(cuts), bool)
    for has, start in zip(known, starts, strict=True):
        there &= reduced(np.logical_and, has, start)
    sums = [reduced(np.add, b, start)[there] for b, start in zip(bits, starts, strict=True)]
    sizes = np.diff(cuts, prepend=0)[there]
    first, second = ((start[there], stop[there]) for start, stop in zip(starts, which, strict=True))
    return Pair((first[0], second[0]), (first[1], second[1]), (sums[0], sums[1]), int(sizes.sum()))


def common(a: Whole, b: Whole) -> tuple[Whole, tuple[Whole, Whole]]:
    """Where a token of both ends, and how many tokens of each end there or before."""
    a, b = np.maximum.accumulate(a), np.maximum.accumulate(b)
    cuts = np.intersect1d(a, b)
    i, j = (np.searchsorted(ends, cuts, "right") for ends in (a, b))
    return cuts, (i, j)


def by_token(made: Surprise, n: int, prefix: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The bits of each of the text's own n tokens, and which of them have a number."""
    bits, known = np.zeros(n), np.zeros(n, bool)
    at = made.at - prefix
    own = (at >= 0) & (at < n)
    bits[at[own]], known[at[own]] = made.nats[own] / BIT, True
    return bits, known


def reduced(how: Any, values: NDArray[Any], starts: Whole) -> NDArray[Any]:  # noqa: ANN401
    """Values of all tokens of each piece put together."""
    found: NDArray[Any] = how.reduceat(values, starts) if len(starts) else values[:0]
    return found
