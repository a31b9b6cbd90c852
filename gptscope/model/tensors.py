"""The tensors of a checkpoint, each handed out once to the family that asks for it, and checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from gptscope.errors import ModelError
from gptscope.model.files import short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gptscope.model.checkpoint import Checkpoint

Array = NDArray[Any]


class Tensors:
    """The tensors that a family asks for: each taken once, by name and shape; none left over."""

    def __init__(self, checkpoint: Checkpoint, rename: Callable[[str], str]) -> None:
        """Names are renamed first, so that a family writes each of them in one way."""
        self._file = checkpoint.path.name
        self._stored_names: dict[str, str] = {}
        for name in checkpoint.arrays:
            self._add(name, rename(name))
        self._arrays = {new: checkpoint.arrays[old] for new, old in self._stored_names.items()}

    def _add(self, stored: str, name: str) -> None:
        if name in self._stored_names:
            pair = f"{short(self._stored_names[name])} and {short(stored)}"
            raise ModelError(f"{self._file} holds one tensor under two names: {pair}")
        self._stored_names[name] = stored

    def __contains__(self, name: str) -> bool:
        """Whether the tensor is there and has not been taken."""
        return name in self._arrays

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of a tensor, without taking it.

        Raises:
            ModelError: there is no such tensor.
        """
        self._require(name)
        return self._arrays[name].shape

    def take(self, name: str, *shape: int) -> Array:
        """The tensor, which must have this shape and hold floating-point numbers.

        Raises:
            ModelError: it is missing, has another shape, or holds something else.
        """
        self._require(name)
        array = self._arrays.pop(name)
        if array.shape != shape:
            found = f"has the shape {list(array.shape)}, and the config asks for {list(shape)}"
            raise ModelError(f"tensor {self._stored_names[name]} of {self._file} {found}")
        if array.dtype.kind not in "fV":
            raise ModelError(f"tensor {self._stored_names[name]} of {self._file} holds integers")
        return array

    def ignore(self, names: Iterable[str]) -> None:
        """Pass over tensors that are known to carry no parameters."""
        for name in names:
            self._arrays.pop(name, None)

    def finish(self) -> None:
        """Nothing may be left over.

        Raises:
            ModelError: it names the tensors that nobody asked for.
        """
        left = [short(self._stored_names[name]) for name in self._arrays]
        if left:
            more = f" and {len(left) - 3} more" if len(left) > 3 else ""
            raise ModelError(
                f"{self._file} holds tensors that this kind of model does not have: "
                f"{', '.join(left[:3])}{more}"
            )

    def _require(self, name: str) -> None:
        if name not in self._arrays:
            raise ModelError(f"{self._file} lacks the tensor {name}")
