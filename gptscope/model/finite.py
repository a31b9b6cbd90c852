"""NaN and infinite weights: looked for in what a pass reads, when it first reads it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.errors import NotFiniteWarning
from gptscope.model.dtypes import BF16, widen
from gptscope.model.files import short
from gptscope.model.pieces import AT_ONCE, pieces

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from numpy.typing import NDArray

    from gptscope.model.weights import Table

BF16_INFINITE = 0xFF00  # all bits of the exponent, the sign shifted out
FLOAT32 = np.dtype(np.float32)


def check_finite(tensors: Iterable[tuple[str, Table]], path: Path) -> None:
    """Look through tensors, by the names they have in a file.

    Warns:
        NotFiniteWarning: it names the first that holds NaN or an infinity.
    """
    found = first_not_finite(tensors)
    if found is not None:
        said = f"tensor {short(found)} of {path} holds NaN or infinite numbers"
        warnings.warn(said, NotFiniteWarning, stacklevel=2)


def first_not_finite(tensors: Iterable[tuple[str, Table]]) -> str | None:
    """The name of the first tensor that holds NaN or an infinity."""
    return next((name for name, table in tensors if not is_finite(table)), None)


def is_finite(table: Table) -> bool:
    """Whether all numbers are finite; read in pieces, so that little memory is taken."""
    if table.dtype.kind not in "fV" or 0 in table.shape:
        return True
    return all(_finite(piece) for (piece,) in pieces(table, at_once=AT_ONCE))


def _finite(numbers: NDArray[Any]) -> bool:
    if numbers.dtype == BF16:
        return bool((numbers["bf16"] << 1).max() < BF16_INFINITE)
    return bool(np.isfinite(widen(numbers, FLOAT32)).all())
