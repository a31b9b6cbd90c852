"""The weights of a model as named arrays: mapped, not read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

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

Array = NDArray[Any]


class Table(Protocol):
    """A tensor of a file; rows are read, and expanded where they are packed, when asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """How its numbers are handed out."""

    def __getitem__(self, index: Any, /) -> Array:  # noqa: ANN401
        """Some rows: a number, a slice, or an array of numbers."""

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> Array:  # noqa: ANN401
        """All of it."""


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
    return Checkpoint(path, arrays, header.metadata, (path,))


def _view(mapped: NDArray[np.uint8], entry: Entry) -> Array:
    flat = np.asarray(mapped[entry.begin : entry.end])
    return flat.view(entry.dtype).reshape(entry.shape)
