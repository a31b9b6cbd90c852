"""Tensors whose rows are computed when they are asked for: unpacked, scaled, or reordered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gptscope.model.weights import Table

FLOAT32: np.dtype[Any] = np.dtype(np.float32)
AT_ONCE = 1 << 16  # numbers: what is expanded together stays in the cache


class Computed:
    """What the tables of this module have in common."""

    def __getitem__(self, index: Any, /) -> NDArray[Any]:  # noqa: ANN401
        """Some rows: a number, a slice, or an array of numbers."""
        raise NotImplementedError

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> NDArray[Any]:  # noqa: ANN401
        """All of it, which is always a copy.

        Raises:
            ValueError: no copy was to be made.
        """
        if copy is False:
            raise ValueError("what is computed is a copy")
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)


@dataclass(frozen=True, eq=False)
class Packed(Computed):
    """Rows of bytes, which a function turns into rows of numbers."""

    rows: NDArray[np.uint8]  # the shape, with bytes in place of the last size
    shape: tuple[int, ...]
    expand: Callable[[NDArray[np.uint8]], NDArray[np.float32]]  # [n, bytes] -> [n, numbers]
    name: str = "packed"  # of the way they are packed: Q4_1
    dtype: np.dtype[Any] = FLOAT32

    def __getitem__(self, index: Any, /) -> NDArray[Any]:  # noqa: ANN401
        """Some rows: a number, a slice, or an array of numbers."""
        chosen = self.rows[index]
        flat = chosen.reshape(-1, chosen.shape[-1])
        out = np.empty((len(flat), self.shape[-1]), np.float32)
        step = max(1, AT_ONCE // max(1, self.shape[-1]))
        for i in range(0, len(flat), step):
            out[i : i + step] = self.expand(flat[i : i + step])
        return out.reshape(*chosen.shape[:-1], self.shape[-1])


@dataclass(frozen=True, eq=False)
class Grouped(Computed):
    """Rows of int8, in which every few neighbours share a scale."""

    numbers: NDArray[np.int8]  # [out, in]
    scales: NDArray[np.float32]  # [out, in / group]
    dtype: np.dtype[Any] = FLOAT32

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return self.numbers.shape

    def __getitem__(self, index: Any, /) -> NDArray[Any]:  # noqa: ANN401
        """Some rows: a number, a slice, or an array of numbers."""
        numbers, scales = self.numbers[index], self.scales[index]
        groups: NDArray[np.float32] = numbers.reshape(*scales.shape, -1) * scales[..., None]
        return groups.reshape(numbers.shape)


@dataclass(frozen=True, eq=False)
class Reordered(Computed):
    """Rows of another table in another order."""

    table: Table
    order: NDArray[np.intp]

    @property
    def shape(self) -> tuple[int, ...]:
        """As that of the other."""
        return self.table.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """As that of the other."""
        return self.table.dtype

    def __getitem__(self, index: Any, /) -> NDArray[Any]:  # noqa: ANN401
        """Some rows: a number, a slice, or an array of numbers."""
        return self.table[self.order[index]]
