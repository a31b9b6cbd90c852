"""Named arrays in a file: what `gptscope trace` and `gptscope steer` write, or NumPy itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.errors import GptscopeError
from gptscope.model.files import reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray


def read_arrays(file: str) -> Mapping[str, NDArray[Any]]:
    """The arrays of a safetensors, npz or npy file by name; the one of an npy file has none.

    Raises:
        GptscopeError: it is not there, or is none of these.
    """
    path = Path(file)
    if path.suffix.lower() == ".safetensors":
        from gptscope.model.checkpoint import open_safetensors  # noqa: PLC0415 - where there is one

        arrays = open_safetensors(path).arrays
        return {name: array for name, array in arrays.items() if isinstance(array, np.ndarray)}
    try:
        with path.open("rb") as stream:
            made = np.load(stream, allow_pickle=False)
            return {"": made} if isinstance(made, np.ndarray) else dict(made)
    except Exception as fault:  # a broken file makes zipfile and NumPy raise whatever it likes
        why = reason(fault) if isinstance(fault, OSError) else "it is no npz, npy or safetensors"
        raise GptscopeError(f"{file} cannot be read: {why}") from fault


def words_in(file: str, arrays: Mapping[str, NDArray[Any]]) -> Mapping[str, str]:
    """What such a file says in words: metadata of safetensors, texts among the arrays of npz."""
    path = Path(file)
    if path.suffix.lower() == ".safetensors":
        from gptscope.model.checkpoint import open_safetensors  # noqa: PLC0415 - where there is one

        return open_safetensors(path).metadata
    return {name: str(array) for name, array in arrays.items() if array.dtype.kind == "U"}
