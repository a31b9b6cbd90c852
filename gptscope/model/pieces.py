"""All numbers of tensors, some at a time: little memory is taken, and what is read stays cached."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.model.dtypes import widen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gptscope.model.weights import Table

    Array = NDArray[Any]

AT_ONCE = 1 << 18  # numbers


def pieces(*tables: Table, at_once: int = AT_ONCE) -> Iterator[tuple[Array, ...]]:
    """The same places of tensors of one shape, as they are stored; at least a row at a time.

    Where all of them lie in memory in one piece, rows do not count: [n] numbers each.
    """
    flat = not tables[0].shape or all(
        isinstance(table, np.ndarray) and table.flags.c_contiguous for table in tables
    )
    parts = [np.asarray(table).reshape(-1) for table in tables] if flat else tables
    step = max(1, at_once // max(1, math.prod(parts[0].shape[1:])))
    for start in range(0, parts[0].shape[0], step):
        yield tuple(np.asarray(part[start : start + step]) for part in parts)


def numbers(table: Table, dtype: np.dtype[Any], at_once: int = AT_ONCE) -> Iterator[Array]:
    """All numbers of one tensor, widened to at least `dtype`: [n] each."""
    for (piece,) in pieces(table, at_once=at_once):
        yield widen(piece, dtype).reshape(-1)
