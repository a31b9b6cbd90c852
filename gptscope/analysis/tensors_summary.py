"""What the numbers of tensors are like, read in pieces: little memory, and exact to float64."""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.lengths import lengths
from gptscope.model.dtypes import widen
from gptscope.model.pieces import numbers as in_pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gptscope.model.weights import Table

Array = NDArray[np.floating[Any]]
FLOAT64 = np.dtype(np.float64)
AT_ONCE = 1 << 15  # numbers: what is looked at together stays in the cache
BINS = 9  # of a histogram, the one in the middle around the mean
HUGE = 1e100  # its square is far from the largest float64, as is the sum of many
ROUNDING = 1e-12  # of the largest: numbers that lie closer are the same
SPAN = 6  # standard deviations that they take together


@dataclass(frozen=True)
class Moments:
    """Of the finite numbers: how many, their mean, the sum of their squared distances from it."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0  # in units of `unit(largest)`
    largest: float = 0.0  # without its sign
    zeros: int = 0
    not_finite: int = 0

    @property
    def std(self) -> float:
        """The population standard deviation."""
        return unit(self.largest) * math.sqrt(self.squares / self.n) if self.n else 0.0

    def __add__(self, other: Moments) -> Moments:
        """The moments of both together. Chan, Golub and LeVeque 1979, the pairwise rule."""
        n, apart = self.n + other.n, other.mean - self.mean
        share, largest = other.n / n if n else 0.0, max(self.largest, other.largest)
        one = unit(largest)
        squares = sum(each.squares * (unit(each.largest) / one) ** 2 for each in (self, other))
        return Moments(
            n,
            self.mean + apart * share,
            squares + (apart / one) ** 2 * self.n * share,
            largest,
            self.zeros + other.zeros,
            self.not_finite + other.not_finite,
        )


@dataclass(frozen=True)
class Summary:
    """The moments of tensors, and how many numbers lie in each of the bins around the mean."""

    moments: Moments
    counts: tuple[int, ...]  # [BINS]; the first and the last hold all that lie beyond

    @property
    def heights(self) -> Array:
        """The counts over the largest of them: 0 to 1, [BINS]."""
        return np.array(self.counts) / max(1, *self.counts)


def unit(largest: float) -> float:
    """What numbers up to this are divided by before they are squared: 1, if they are not huge."""
    return 1.0 if largest < HUGE else 2.0 ** (math.frexp(largest)[1] - 1)


def finite(numbers: Array) -> Array:
    """The numbers without NaN and infinities: [n] -> [m]."""
    good = np.isfinite(numbers)
    return numbers if good.all() else numbers[good]


def moments(numbers: Array) -> Moments:
    """The moments of one piece: [n]."""
    known = finite(numbers)
    n = len(known)
    if not n:
        return Moments(not_finite=len(numbers))
    largest = float(max(known.max(), -known.min()))
    one = unit(largest)
    scaled = known if one == 1 else known / one
    mean = float(scaled.mean())
    squares = float(np.square(scaled - mean).sum())
    zeros = n - int(np.count_nonzero(known))
    return Moments(n, one * mean, squares, largest, zeros, len(numbers) - n)


def counts(numbers: Array, whole: Moments) -> NDArray[np.int64]:
    """How many numbers lie in each bin, 2/3 of a standard deviation wide: [n] -> [BINS]."""
    known, std = finite(numbers), max(whole.std, ROUNDING * whole.largest) or 1.0
    edges = whole.mean + SPAN / BINS * std * (np.arange(1, BINS) - BINS / 2)
    below = [np.count_nonzero(known < edge) for edge in edges]
    return np.diff([0, *below, len(known)])


def summary(tables: Sequence[Table]) -> Summary:
    """The summary of one tensor, or of several as if they were one."""
    whole = sum(
        (moments(piece) for table in tables for piece in in_pieces(table, FLOAT64, AT_ONCE)),
        Moments(),
    )
    found = np.zeros(BINS, np.int64)
    for table in tables:
        for piece in in_pieces(table, FLOAT64, AT_ONCE):
            found += counts(piece, whole)
    return Summary(whole, tuple(found.tolist()))


def summaries(groups: Iterable[Sequence[Table]]) -> Iterator[Summary]:
    """The summary of each group in turn, computed on all cores."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from pool.map(summary, groups)


def row_lengths(table: Table) -> Array:
    """The Euclidean length of every row, read in pieces: [n, d] -> [n] in float64."""
    step = max(1, AT_ONCE // max(1, table.shape[1]))
    starts = range(0, table.shape[0], step)
    found = [lengths(widen(np.asarray(table[i : i + step]), FLOAT64)) for i in starts]
    return np.concatenate([np.zeros(0), *found])
