"""Formulas that treat each row alone, run on slices of rows: on all cores, and inside the cache.

NumPy works on one core and writes every intermediate array to memory; slices stay in the cache.
"""

from __future__ import annotations

import os
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

Array = NDArray[np.floating[Any]]
F = TypeVar("F", bound="Callable[..., Array]")

LARGE = 1 << 20  # numbers; below, handing work to threads costs more than it saves
SLICE = 1 << 19  # numbers in a slice: small for the cache, large for the threads


def by_rows(formula: F) -> F:
    """The same formula of an array [..., T, n], in slices of T where the array is large."""

    @wraps(formula)
    def run(x: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        x = np.asarray(x)
        if x.dtype.kind != "f":
            x = x.astype(np.float64)
        if x.ndim < 2 or x.size < LARGE:
            return formula(x, *args, **kwargs)
        out = np.empty_like(x)

        def one(part: slice) -> None:
            here = [_rows(a, part, x.shape[-2]) for a in args]
            out[..., part, :] = formula(x[..., part, :], *here, **kwargs)

        for _ in pool().map(one, _slices(x)):
            pass
        return out

    return cast("F", run)


def _slices(x: Array) -> list[slice]:
    rows = max(1, SLICE * x.shape[-2] // x.size)
    return [slice(start, start + rows) for start in range(0, x.shape[-2], rows)]


def _rows(argument: Any, part: slice, n_rows: int) -> Any:  # noqa: ANN401
    """The same rows of an argument that has one for each row of the array."""
    has_rows = np.ndim(argument) > 1 and argument.shape[-2] == n_rows
    return argument[..., part, :] if has_rows else argument


@cache
def pool() -> ThreadPoolExecutor:
    """A thread for each core."""
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(os.cpu_count())
