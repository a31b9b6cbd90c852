"""Matrix products, with weights that may lie in a narrow dtype or in rows that are unpacked.

A wide copy of a whole matrix would go to memory and back; here a piece of it is widened, stays in
the cache, and is used at once. A product of few rows with a large matrix is made of dot products,
since the library behind `@` copies the whole matrix into another order before it begins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.rows import LARGE, pool
from gptscope.model.weights import rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.model.weights import Table

Array = NDArray[np.floating[Any]]
FEW = 16  # rows of x
PIECE = 1 << 18  # numbers of a matrix that stay in the cache
LARGE_PIECE = 1 << 22  # with many rows, the product itself takes the time


def linear(x: Array, weight: NDArray[Any], bias: Array | None = None) -> Array:
    """X W + b: [T, in] -> [T, out], with the weight [in, out]."""
    y = product(x, weight)
    if bias is not None:
        y += bias
    return y


def product(x: Array, weight: NDArray[Any]) -> Array:
    """X W: [T, in] x [in, out] -> [T, out]."""
    turned = weight.T
    few = len(x) <= FEW and turned.size >= LARGE and turned.strides[-1] == turned.itemsize
    if weight.dtype == x.dtype and not few:
        whole: Array = x @ weight
        return whole
    return against_rows(x, turned)


def against_rows(x: Array, table: Table) -> Array:
    """X times every row of a table: [T, d] x [n, d] -> [T, n]."""
    n, d = table.shape
    few, large = len(x) <= FEW, n * d >= LARGE
    if isinstance(table, np.ndarray) and table.dtype == x.dtype and not (few and large):
        whole: Array = x @ table.T
        return whole
    y = np.empty((len(x), n), x.dtype)

    def one(part: slice) -> None:
        wide = rows(table, part, x.dtype)
        if few:
            np.vecdot(x[:, None], np.ascontiguousarray(wide), out=y[:, part])
        else:
            np.matmul(x, wide.T, out=y[:, part])

    parts = pieces(n, (PIECE if few else LARGE_PIECE) // max(1, d))
    if few and large:
        for _ in pool().map(one, parts):
            pass
    else:
        for part in parts:
            one(part)
    return y


def pieces(n: int, at_once: int) -> Iterator[slice]:
    """So many rows in pieces."""
    step = max(1, at_once)
    return (slice(start, start + step) for start in range(0, n, step))
