"""The tensors of a checkpoint, handed out to the family that asks for them, and checked.

While a model opens, the tensors of its blocks are only asked after: names, shapes and kinds are
checked, and stand-ins of the right shape that hold no numbers are handed out. What a block is made
of is read, and widened to what is computed in, each time the block is made.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.errors import ModelError
from gptscope.model.blocks import Blocks
from gptscope.model.dtypes import widen
from gptscope.model.files import short
from gptscope.model.mapping import forgetter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gptscope.model.checkpoint import Checkpoint
    from gptscope.model.weights import Block, Table

Array = NDArray[Any]


class Tensors:
    """The tensors that a family asks for, by name and shape; none may be left over."""

    def __init__(
        self, checkpoint: Checkpoint, rename: Callable[[str], str], dtype: np.dtype[Any]
    ) -> None:
        """Names are renamed first, so that a family writes each of them in one way.

        `dtype` is what is computed in, at the least: arrays are widened to it, never narrowed.
        """
        self._checkpoint, self._file = checkpoint, checkpoint.path.name
        self._stored_names: dict[str, str] = {}
        for name in checkpoint.arrays:
            self._add(name, rename(name))
        self._arrays = {new: checkpoint.arrays[old] for new, old in self._stored_names.items()}
        self.dtype = dtype
        self.ignored: set[str] = set()
        self._taken: set[str] = set()
        self._outlined = False

    def _add(self, stored: str, name: str) -> None:
        if name in self._stored_names:
            pair = f"{short(self._stored_names[name])} and {short(stored)}"
            raise ModelError(f"{self._file} holds one tensor under two names: {pair}")
        self._stored_names[name] = stored

    def __contains__(self, name: str) -> bool:
        """Whether there is such a tensor."""
        return name in self._arrays

    @property
    def names(self) -> dict[str, str]:
        """What the family calls each tensor, by its name in the file."""
        return {stored: name for name, stored in self._stored_names.items()}

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor.

        Raises:
            ModelError: there is no such tensor.
        """
        return self._named(name).shape

    def take(self, name: str, *shape: int) -> Array:
        """The tensor, widened; it must have this shape and hold floating-point numbers.

        Raises:
            ModelError: it is missing, has another shape, or holds something else.
        """
        table = self.table(name, *shape)
        dtype = np.promote_types(self.dtype, np.float32 if table.dtype.kind == "V" else table.dtype)
        if self._outlined:
            return np.broadcast_to(np.zeros((), dtype), shape)
        return widen(np.asarray(table), dtype)

    def matrix(self, name: str, *shape: int) -> Array:
        """The tensor as it lies in the file: products widen a piece of it at a time; as `take`."""
        table = self.table(name, *shape)
        if self._outlined:
            return np.broadcast_to(np.zeros((), table.dtype), shape)
        return np.asarray(table)

    def table(self, name: str, *shape: int) -> Table:
        """The tensor as it lies in the file, to be read by rows.

        Raises:
            ModelError: it is missing, has another shape, or holds integers.
        """
        table = self._named(name)
        if table.shape != shape:
            found = f"has the shape {list(table.shape)}, and the config asks for {list(shape)}"
            raise ModelError(f"tensor {self._stored_names[name]} of {self._file} {found}")
        if table.dtype.kind not in "fV":
            raise ModelError(f"tensor {self._stored_names[name]} of {self._file} holds integers")
        self._taken.add(name)
        return table

    def blocks(self, n_layers: int, make: Callable[[int], Block]) -> Blocks:
        """The blocks, every tensor of them asked after now and read when it is needed.

        Raises:
            ModelError: a tensor is missing, has another shape, or holds something else.
        """
        with self._outlining():
            outlines = tuple(make(layer) for layer in range(n_layers))
        return Blocks(make, outlines, forgetter(self._checkpoint))

    @contextmanager
    def _outlining(self) -> Iterator[None]:
        self._outlined = True
        try:
            yield
        finally:
            self._outlined = False

    def ignore(self, names: Iterable[str]) -> None:
        """Pass over tensors that are known to carry no parameters."""
        self.ignored.update(name for name in names if name in self)

    def finish(self) -> None:
        """Nothing may be left over.

        Raises:
            ModelError: it names the tensors that nobody asked for.
        """
        asked = self._taken | self.ignored
        left = [short(stored) for name, stored in self._stored_names.items() if name not in asked]
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            raise ModelError(
                f"{self._file} holds tensors that this kind of model does not have: "
                f"{', '.join(left[:3])}{more}"
            )

    def _named(self, name: str) -> Table:
        if name not in self._arrays:
            raise ModelError(f"{self._file} lacks the tensor {name}")
        return self._arrays[name]
