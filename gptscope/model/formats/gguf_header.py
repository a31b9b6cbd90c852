"""The header of a GGUF file: the metadata, and which tensor lies where, every number checked.

"GGUF", version, number of tensors and of metadata; each metadatum as key, type, value; each tensor
as name, sizes (the innermost first), type, place; then the numbers, aligned. Little-endian.
https://github.com/ggml-org/ggml/blob/master/docs/gguf.md

The reader of the gguf package takes seconds for a vocabulary, whose strings are here only skipped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.errors import ModelError
from gptscope.model.files import reason, refuse_pointer, short, size_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

MAGIC = b"GGUF"
VERSIONS = (2, 3)
SCALARS = {  # type of a metadatum -> how NumPy calls it
    0: "u1",
    1: "i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    7: "?",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}
STRING, ARRAY = 8, 9
ALIGNMENT = 32  # bytes, unless the metadata say otherwise
MOST_AXES = 4
SHORTEST = 24  # bytes


class Broken(Exception):  # noqa: N818 - caught where the path is known
    """What is wrong with the file."""


@dataclass(frozen=True)
class Stored:
    """One tensor: sizes, the outermost first; ggml's number of its type; its first byte."""

    shape: tuple[int, ...]
    kind: int
    begin: int


@dataclass(frozen=True, eq=False)
class Strings:
    """Many strings of the file, made when they are asked for."""

    data: bytes

    def __call__(self) -> list[str]:
        """All of them; half characters are replaced."""
        found, at, data = [], 0, self.data
        while at < len(data):
            end = at + 8 + int.from_bytes(data[at : at + 8], "little")
            found.append(data[at + 8 : end].decode(errors="replace"))
            at = end
        return found


@dataclass(frozen=True, eq=False)
class Header:
    """The whole file as bytes, and what its header says."""

    mapped: NDArray[np.uint8]
    values: Mapping[str, Any]  # metadata: numbers, words, arrays of numbers, and Strings
    tensors: Mapping[str, Stored]


def read_header(path: Path) -> Header:
    """Read and check the header; the numbers behind it stay where they are.

    Raises:
        ModelError: the file is not there, is no GGUF, is cut short, or contradicts itself.
    """
    size = size_of(path)
    refuse_pointer(path)
    try:
        with path.open("rb") as file:
            start = file.read(len(MAGIC))
        check_start(start, size)
        mapped = np.asarray(np.memmap(path, np.uint8, mode="r"))
        return Header(mapped, *Reader(mapped.data).header())
    except Broken as fault:
        raise ModelError(f"{path} cannot be read as GGUF: {fault}") from fault
    except (OSError, ValueError, UnicodeDecodeError) as fault:
        raise ModelError(f"{path} cannot be read as GGUF: {reason(fault)}") from fault


def check_start(start: bytes, size: int) -> None:
    """What every such file begins with.

    Raises:
        Broken: this one does not.
    """
    if start != MAGIC:
        raise Broken("it does not begin with the letters GGUF")
    if size < SHORTEST:
        raise Broken("its header is cut short")


class Reader:
    """Reads on from a place; nothing behind the end is read, however many are said to follow."""

    def __init__(self, data: memoryview) -> None:
        """Begin behind the magic."""
        self._data, self._at = data, len(MAGIC)

    def header(self) -> tuple[dict[str, Any], dict[str, Stored]]:
        """The metadata and the tensors.

        Raises:
            Broken: the header contradicts itself or the file.
        """
        version = self._whole(4)
        if version not in VERSIONS:
            large = " (perhaps big-endian)" if version & 0xFFFF == 0 else ""
            raise Broken(f"its version is {version}{large}, and those read are 2 and 3")
        n_tensors, n_values = self._whole(8), self._whole(8)
        values: dict[str, Any] = {}
        for _ in range(n_values):
            key = self._string()
            if key in values:
                raise Broken(f"its metadata have {short(key)} twice")
            values[key] = self._value(self._whole(4))
        places = dict[str, Stored]()
        for _ in range(n_tensors):
            name, stored = self._tensor()
            if name in places:
                raise Broken(f"it has the tensor {short(name)} twice")
            places[name] = stored
        first = self._aligned(values.get("general.alignment", ALIGNMENT))
        return values, {n: Stored(s.shape, s.kind, s.begin + first) for n, s in places.items()}

    def _aligned(self, alignment: object) -> int:
        if not isinstance(alignment, int) or not 0 < alignment < 1 << 20:
            raise Broken(f"general.alignment is {short(repr(alignment))}")
        return -(-self._at // alignment) * alignment

    def _tensor(self) -> tuple[str, Stored]:
        name, axes = self._string(), self._whole(4)
        if axes > MOST_AXES:
            raise Broken(f"the tensor {short(name)} has {axes} axes")
        shape = tuple(self._whole(8) for _ in range(axes))[::-1]
        if math.prod(shape) >= 1 << 60:
            raise Broken(f"the tensor {short(name)} has the shape {list(shape)}")
        kind, begin = self._whole(4), self._whole(8)
        return name, Stored(shape, kind, begin)

    def _bytes(self, count: int) -> memoryview:
        begin, end = self._at, self._at + count
        if end > len(self._data):
            raise Broken("its header is cut short")
        self._at = end
        return self._data[begin:end]

    def _whole(self, width: int) -> int:
        return int.from_bytes(self._bytes(width), "little")

    def _string(self) -> str:
        return bytes(self._bytes(self._whole(8))).decode()

    def _value(self, kind: int) -> Any:  # noqa: ANN401
        if kind == STRING:
            return self._string()
        if kind == ARRAY:
            return self._array(self._whole(4), self._whole(8))
        return self._numbers(kind, 1)[0].item()

    def _array(self, kind: int, count: int) -> Sequence[Any] | Strings | NDArray[Any]:
        if kind != STRING:
            return self._numbers(kind, count)
        begin = at = self._at
        size, data = len(self._data), self._data
        for _ in range(count):
            at += 8 + int.from_bytes(data[at : at + 8], "little")
            if at > size:
                raise Broken("its header is cut short")
        self._at = at
        return Strings(bytes(data[begin:at]))

    def _numbers(self, kind: int, count: int) -> NDArray[Any]:
        if kind not in SCALARS:
            raise Broken(f"its metadata hold values of type {kind}, which is not known")
        dtype = np.dtype(SCALARS[kind])
        return np.frombuffer(self._bytes(count * dtype.itemsize), dtype)
