"""Attention weights as people look at them: without the sink, in other scales, added, in order.

R rows (tokens that read), S columns (tokens that are read); hidden [R, S] is what a row cannot see.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]

LEAST = 1e-6  # smaller weights are all alike in powers of ten


def no_first(weights: Array, hidden: Mask) -> tuple[Array, Mask]:
    """Each row [R, S] without its first column, divided by what is left; and what is hidden then.

    The first token is often a sink: rows rest there when they have nothing to read (Xiao et al.
    2023, "Efficient Streaming Language Models with Attention Sinks"). A row that reads nothing else
    is hidden whole.
    """
    kept = weights.copy()
    kept[:, 0] = 0
    left = kept.sum(axis=1, keepdims=True)  # [R, S] -> [R, 1]
    nothing = left == 0  # a sum that is not a number stays to be seen
    unseen = hidden | nothing
    unseen[:, 0] = True
    return kept / np.where(nothing, 1, left), unseen


def powers_of_ten(weights: Array) -> Array:
    """How many powers of ten each weight is above a millionth: log10(weight / LEAST), at least 0.

    1 is 6, 0.1 is 5, 0.01 is 4; what is not a number stays so.
    """
    above = np.log10(np.maximum(weights, LEAST)) - math.log10(LEAST)
    found: Array = np.maximum(above, 0)  # rounding
    return found


def ranks(weights: Array, hidden: Mask) -> NDArray[np.int64]:
    """The place of each weight in its row: 1 the largest, equal ones from the left, 0 hidden."""
    order = np.argsort(-np.where(hidden, -np.inf, weights), axis=1, kind="stable")
    found = np.empty(weights.shape, np.int64)
    places = np.broadcast_to(np.arange(1, weights.shape[1] + 1), weights.shape)
    np.put_along_axis(found, order, places, axis=1)
    return np.where(hidden, 0, found)


def rank_shares(weights: Array, hidden: Mask) -> Array:
    """Ranks as shares of the n weights that a row sees: 1 the largest, 1/n the least.

    A row that holds something which is not a number has no ranks, and is all NaN.
    """
    n = (~hidden).sum(axis=1, keepdims=True)
    found = (n - ranks(weights, hidden) + 1) / np.maximum(n, 1)
    wrong = (np.isnan(weights) & ~hidden).any(axis=1, keepdims=True)
    shares: Array = np.where(hidden, 0, np.where(wrong, np.nan, found))
    return shares


def summed(weights: Array, rows: Sequence[int]) -> Array:
    """The chosen rows added up: [R, S] -> [S]."""
    found: Array = weights[list(rows)].sum(axis=0)
    return found


def most_read(weights: Array, hidden: Mask, n: int) -> list[int]:
    """The n columns that one row [S] reads most, most first; fewer if it sees fewer.

    There are none if something is not a number, since there is no order then.
    """
    seen = np.flatnonzero(~hidden)
    if np.isnan(weights[seen]).any():
        return []
    order = np.argsort(-weights[seen], kind="stable")[:n]
    return [int(i) for i in seen[order]]


def windowed(values: NDArray[Any], rows: Sequence[int], columns: Sequence[int]) -> NDArray[Any]:
    """Some rows and columns of [R, S], in the order given."""
    return values[np.ix_(list(rows), list(columns))]


def outside(weights: Array, columns: Sequence[int]) -> Array:
    """How much of each row lies in other columns than these: [R, S] -> [R]."""
    others = np.ones(weights.shape[1], np.bool_)
    others[list(columns)] = False
    found: Array = weights[:, others].sum(axis=1)
    return found
