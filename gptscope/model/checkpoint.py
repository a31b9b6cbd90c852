"""A safetensors file as named arrays: mapped, not read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from gptscope.errors import ModelError
from gptscope.model.files import reason
from gptscope.model.header import read_header

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gptscope.model.header import Entry

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What one file holds: its tensors by name, and the strings of its metadata."""

    path: Path
    arrays: Mapping[str, Array]
    metadata: Mapping[str, str]


def open_checkpoint(path: Path) -> Checkpoint:
    """Map a safetensors file; no number is read before it is used.

    Raises:
        ModelError: the file is not there, is not safetensors, or holds a type that is not known.
    """
    header = read_header(path)  # says what is wrong, and where
    try:
        with safe_open(path, framework="numpy"):  # the library has the last word
            mapped = np.memmap(path, np.uint8, mode="r")
        arrays = {name: _view(mapped, entry) for name, entry in header.entries.items()}
    except (SafetensorError, OSError, ValueError) as fault:
        raise ModelError(f"{path} cannot be read as safetensors: {reason(fault)}") from fault
    return Checkpoint(path, arrays, header.metadata)


def _view(mapped: NDArray[np.uint8], entry: Entry) -> Array:
    flat = np.asarray(mapped[entry.begin : entry.end])
    return flat.view(entry.dtype).reshape(entry.shape)
