"""A GGUF file (llama.cpp) as named arrays and a config, both in the words of Hugging Face.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.errors import ModelError
from gptscope.model.checkpoint import Checkpoint
from gptscope.model.dtypes import BF16
from gptscope.model.files import short
from gptscope.model.formats.gguf_config import config_of, whole
from gptscope.model.formats.gguf_dialects import SETTINGS, Dialect, dialect_of
from gptscope.model.formats.gguf_header import Header, Stored, read_header
from gptscope.model.formats.packed import Packed, Reordered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from gptscope.model.weights import Table

PLAIN: dict[int, np.dtype[Any]] = {  # ggml's number of a type -> as it is mapped
    0: np.dtype("<f4"),
    1: np.dtype("<f2"),
    24: np.dtype("i1"),
    25: np.dtype("<i2"),
    26: np.dtype("<i4"),
    27: np.dtype("<i8"),
    28: np.dtype("<f8"),
    30: BF16,
}
INSTALL = "pip install 'gptscope[gguf]'"


@dataclass(frozen=True)
class Packing:
    """How the numbers of a packed type lie: so many in a block of so many bytes."""

    name: str
    numbers: int
    width: int
    expand: Callable[[NDArray[np.uint8]], NDArray[np.float32]]


def open_gguf(path: Path) -> Checkpoint:
    """Map a GGUF file; packed rows are expanded when they are asked for.

    Raises:
        ModelError: it is not there, is no GGUF, holds a model or a type that is not understood, or
            packed numbers while the package that expands them is not installed.
    """
    header = read_header(path)
    refuse_part(path, header)
    dialect = dialect_of(path, header)
    config = config_of(path, header, dialect)
    arrays = tables(path, header, dialect, config)
    metadata = {key: value for key, value in header.values.items() if isinstance(value, str)}
    make = None
    if "tokenizer.ggml.tokens" in header.values:
        from gptscope.model.formats.gguf_tokens import tokenizer_of  # noqa: PLC0415

        make = partial(tokenizer_of, path, header.values)
    return Checkpoint(path, arrays, metadata, (path,), config, make)


def refuse_part(path: Path, header: Header) -> None:
    """A file must be whole.

    Raises:
        ModelError: it is one of several.
    """
    n_files = whole(header.values.get("split.count"))
    if n_files > 1:
        raise ModelError(
            f"{path} is one of {n_files} files, which are not opened together",
            hint="join them with llama.cpp: llama-gguf-split --merge FIRST_FILE NEW_FILE",
        )


def tables(
    path: Path, header: Header, dialect: Dialect, config: dict[str, Any]
) -> dict[str, Table]:
    """Every tensor that is no setting, by its name at Hugging Face.

    Raises:
        ModelError: one cannot be read, or two have one name.
    """
    packings = {kind: packing_of(path, kind) for kind in kinds_of(header) - PLAIN.keys()}
    arrays: dict[str, Table] = {}
    for stored, entry in header.tensors.items():
        table = table_of(f"tensor {short(stored)} of {path}", header.mapped, entry, packings)
        if stored not in SETTINGS:
            name = dialect.name(stored)
            if name in arrays:
                raise ModelError(f"{path} holds the tensor {short(name)} under two names")
            arrays[name] = in_order(dialect, stored, table, config)
    return arrays


def kinds_of(header: Header) -> set[int]:
    """The types of all tensors."""
    return {entry.kind for entry in header.tensors.values()}


def packing_of(path: Path, kind: int) -> Packing:
    """How a packed type is expanded, by the gguf package.

    Raises:
        ModelError: the package is not installed, or does not know the type.
    """
    try:
        quants = import_module("gguf.quants")
        constants = import_module("gguf.constants")
    except ImportError as fault:
        why = f"{path} holds packed numbers, which the gguf package expands, and it is not there"
        raise ModelError(why, hint=INSTALL) from fault
    try:
        known = constants.GGMLQuantizationType(kind)
        numbers, width = constants.GGML_QUANT_SIZES[known]
        quants.dequantize(np.zeros((1, width), np.uint8), known)
    except (ValueError, KeyError, NotImplementedError) as fault:
        why = f"{path} holds numbers packed as type {kind}, which the gguf package does not expand"
        raise ModelError(why, hint="a newer one may: pip install --upgrade gguf") from fault

    def expand(rows: NDArray[np.uint8]) -> NDArray[np.float32]:
        # As one long row: the package takes few rows at once, and much time for each few.
        with np.errstate(all="ignore"):  # a scale may be NaN, which is warned about elsewhere
            found: NDArray[np.float32] = quants.dequantize(rows.reshape(1, -1), known)
        return found.reshape(len(rows), -1)

    return Packing(known.name, numbers, width, expand)


def table_of(
    where: str, mapped: NDArray[np.uint8], entry: Stored, packings: dict[int, Packing]
) -> Table:
    """One tensor.

    Raises:
        ModelError: it does not lie within the file, or its rows are not whole blocks.
    """
    plain = PLAIN.get(entry.kind)
    if plain is not None:
        data = cut(where, mapped, entry.begin, math.prod(entry.shape) * plain.itemsize)
        return data.view(plain).reshape(entry.shape)
    packing = packings[entry.kind]
    *outer, row = entry.shape or (1,)
    if row % packing.numbers:
        blocks = f"which are not whole blocks of {packing.numbers} as {packing.name} has them"
        raise ModelError(f"{where} has rows of {row} numbers, {blocks}")
    width = row // packing.numbers * packing.width
    data = cut(where, mapped, entry.begin, math.prod(outer) * width)
    return Packed(data.reshape(*outer, width), (*outer, row), packing.expand, packing.name)


def cut(where: str, mapped: NDArray[np.uint8], begin: int, count: int) -> NDArray[np.uint8]:
    """The bytes of one tensor.

    Raises:
        ModelError: they go beyond the end of the file.
    """
    if begin + count > mapped.size:
        beyond = f"ends {begin + count - mapped.size:,} bytes behind the end of the file"
        raise ModelError(f"{where} {beyond}, which may have been cut short")
    return mapped[begin : begin + count]


def in_order(dialect: Dialect, stored: str, table: Table, config: dict[str, Any]) -> Table:
    """The rows as Hugging Face has them.

    Where it keeps the queries, keys and values of each head together, llama.cpp has put those of
    all heads side by side: [3, H, d_h] -> [H, 3, d_h].
    """
    if not dialect.by_head or ".attn_qkv." not in stored:
        return table
    heads = whole(config.get("num_attention_heads", config.get("n_head")))
    rows = table.shape[0] if table.shape else 1
    if rows % (3 * heads):
        return table  # a wrong shape, which the family will tell
    return Reordered(table, np.arange(rows).reshape(3, heads, -1).swapaxes(0, 1).reshape(-1))
