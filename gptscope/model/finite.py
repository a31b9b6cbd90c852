"""NaN and infinite weights: looked for when a pass first reads the weights, not when they open."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from gptscope.errors import NotFiniteWarning
from gptscope.model.dtypes import BF16
from gptscope.model.files import short
from gptscope.model.weights import Block

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gptscope.model.checkpoint import Checkpoint

AT_ONCE = 1 << 20  # numbers
BF16_INFINITE = 0x7F80  # all bits of the exponent


class Watched(Sequence[Block]):
    """The blocks of a file; the first time one is asked for, every tensor is looked through.

    That costs a fraction of the pass that asks, which reads all of them; opening reads none.
    """

    def __init__(self, blocks: Sequence[Block], checkpoint: Checkpoint) -> None:
        """Nothing is read yet."""
        self._blocks, self._checkpoint, self._looked = blocks, checkpoint, False

    def __len__(self) -> int:
        """L."""
        return len(self._blocks)

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Block]: ...
    def __getitem__(self, index: int | slice) -> Block | Sequence[Block]:
        """One block, or several.

        Warns:
            NotFiniteWarning: it names the first tensor that holds NaN or an infinity.
        """
        if not self._looked:
            self._looked = True
            found = first_not_finite(self._checkpoint)
            if found is not None:
                warnings.warn(found, NotFiniteWarning, stacklevel=2)
        return self._blocks[index]


def first_not_finite(checkpoint: Checkpoint) -> str | None:
    """A sentence on the first tensor, in the order of the file, that holds NaN or an infinity."""
    for name, array in checkpoint.arrays.items():
        if not is_finite(array.reshape(-1)):
            return f"tensor {short(name)} of {checkpoint.path} holds NaN or infinite numbers"
    return None


def is_finite(flat: NDArray[Any]) -> bool:
    """Whether all numbers are finite; read in pieces, so that little memory is taken."""
    if flat.dtype.kind not in "fV":
        return True
    return all(_piece(flat[i : i + AT_ONCE]) for i in range(0, flat.size, AT_ONCE))


def _piece(numbers: NDArray[Any]) -> bool:
    if numbers.dtype == BF16:
        return bool(((numbers["bf16"] & BF16_INFINITE) != BF16_INFINITE).all())
    return bool(np.isfinite(numbers).all())
