"""What a table of positions is like: its waves, and how alike its rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.model.positions import BASE

if TYPE_CHECKING:
    from collections.abc import Sequence

Array = NDArray[np.floating[Any]]


def wavelengths(d: int) -> Array:
    """Positions until a pair (2i, 2i+1) comes round, 2 pi 10000^(2i/d): [ceil(d / 2)] in float64.

    From 2 pi upward, to 2 pi 10000^(1 - 2/d) where d is even. Vaswani et al. 2017, section 3.5.
    """
    waves: Array = 2 * np.pi * BASE ** (np.arange(0, d, 2) / d)
    return waves


def cosine_similarity(table: Array) -> Array:
    """The cosine of every two rows, a b' / (|a| |b|), -1 to 1: [n, d] -> [n, n] in float64.

    A row of zeros has no direction: its similarity to every row, itself as well, is 0.
    """
    rows = directions(table)
    return np.clip(rows @ rows.T, -1, 1)  # [n, d] -> [n, n]


def similarity_by_distance(table: Array, distances: Sequence[int]) -> list[Array]:
    """The cosine similarity of every two rows that lie so far apart: for each k, [n - k].

    Of a sinusoidal table of even width it depends on k alone: the mean of cos(k w) over the
    speeds w of its pairs, as sin a sin b + cos a cos b = cos(a - b).
    """
    rows = directions(table)
    pairs = ((rows[: len(rows) - k], rows[k:]) for k in distances)
    return [np.clip(np.vecdot(a, b), -1, 1) for a, b in pairs]


def directions(table: Array) -> Array:
    """Every row with length 1, or of zeros if it was: [n, d] -> [n, d] in float64."""
    rows: Array = table.astype(np.float64)
    rows = over(rows, np.abs(rows).max(axis=-1, keepdims=True))  # so that no square overflows
    return over(rows, np.linalg.norm(rows, axis=-1, keepdims=True))


def over(rows: Array, sizes: Array) -> Array:
    """Every row over its size; zero over zero is zero: [n, d], [n, 1] -> [n, d]."""
    quotient: Array = np.divide(rows, sizes, out=np.zeros_like(rows), where=sizes != 0)
    return quotient
