"""The weights of a model as named arrays: mapped, not read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from gptscope.errors import ModelError
from gptscope.model.files import reason
from gptscope.model.header import read_header

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import tokenizers

    from gptscope.model.header import Entry
    from gptscope.model.weights import Table

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """What one file or several hold: tensors by name, and what is said of them."""

    path: Path  # what was opened: the file, or the index of several
    arrays: Mapping[str, Table]  # by the names in the files, in their order
    metadata: Mapping[str, str]
    files: tuple[Path, ...]  # all that hold weights
    config: Mapping[str, Any] | None = None  # in the words of a config.json of Hugging Face
    make_tokenizer: Callable[[], tokenizers.Tokenizer] | None = None


def open_checkpoint(path: Path) -> Checkpoint:
    """Map the weights, in whichever format; no number is read before it is used.

    Raises:
        ModelError: a file is not there, is of no known format, or holds a type that is not known.
    """
    # Each format is imported when a file has it: most have the first.
    from gptscope.model import sharded  # noqa: PLC0415

    if path.name.endswith(".index.json"):
        return sharded.open_index(path)
    if path.suffix.lower() == ".gguf":
        from gptscope.model.formats.gguf import open_gguf  # noqa: PLC0415

        return open_gguf(path)
    if path.suffix.lower() == ".bin":
        from gptscope.model.formats.llama2c import open_llama2c  # noqa: PLC0415

        return open_llama2c(path)
    return sharded.open_set(path) if sharded.is_shard(path.name) else open_safetensors(path)


def open_safetensors(path: Path) -> Checkpoint:
    """Map one safetensors file.

    Raises:
        ModelError: it is not there, is not safetensors, or holds a type that is not known.
    """
    header = read_header(path)  # says what is wrong, and where
    try:
        with safe_open(path, framework="numpy"):  # the library has the last word
            mapped = np.memmap(path, np.uint8, mode="r")
        arrays = {name: _view(mapped, entry) for name, entry in header.entries.items()}
    except (SafetensorError, OSError, ValueError) as fault:
        raise ModelError(f"{path} cannot be read as safetensors: {reason(fault)}") from fault
    return Checkpoint(path, arrays, header.metadata, (path,), _config(header.metadata))


def _config(metadata: Mapping[str, str]) -> Mapping[str, Any] | None:
    """What transformer-visualized writes there: a config.json as one of the strings."""
    try:
        values = json.loads(metadata.get("config", "null"))
    except (ValueError, RecursionError):
        return None
    return values if isinstance(values, dict) else None


def _view(mapped: NDArray[np.uint8], entry: Entry) -> Array:
    flat = np.asarray(mapped[entry.begin : entry.end])
    return flat.view(entry.dtype).reshape(entry.shape)
