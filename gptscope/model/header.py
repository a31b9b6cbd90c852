"""The header of a safetensors file: which tensor lies where, with every number of it checked.

8 bytes, little-endian: the header's length; the header, a JSON object; then the numbers.
https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

from gptscope.errors import ModelError
from gptscope.model.dtypes import DTYPES
from gptscope.model.files import LONGEST_JSON, counted, reason, refuse_pointer, short, size_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import numpy as np

PREFIX = 8
LONGEST_AXES = 32
LARGEST = 1 << 62  # above every size and place
PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")  # as PyTorch writes


@dataclass(frozen=True)
class Entry:
    """One tensor: how its numbers are written, and the bytes of the file that hold them."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class Header:
    """Every tensor by its name, and the strings of the metadata."""

    entries: Mapping[str, Entry]
    metadata: Mapping[str, str]


def read_header(path: Path) -> Header:
    """Read and check the header; the numbers behind it stay where they are.

    Raises:
        ModelError: the file is not there, is no safetensors, is cut short, or contradicts itself.
    """
    size = size_of(path)
    refuse_pointer(path)
    try:
        with path.open("rb") as file:
            start = file.read(PREFIX)
            check_start(path, start, size)
            file.seek(PREFIX)
            length = header_length(path, start, size)
            data = file.read(length)
        values = parsed(data)
    except (OSError, ValueError, RecursionError) as fault:
        raise unreadable(path, f"its header is not JSON: {reason(fault)}") from fault
    except Twice as fault:
        raise unreadable(path, f"its header has {short(fault.args[0])} twice") from fault
    if not isinstance(values, dict):
        raise unreadable(path, "its header is not a JSON object")
    metadata = values.pop("__metadata__", None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise unreadable(path, "its metadata must be strings")
    first = PREFIX + length
    entries = {name: entry_of(path, name, value, first) for name, value in values.items()}
    check_places(path, entries, first, size)
    return Header(entries, metadata)


def parsed(data: bytes) -> Any:  # noqa: ANN401
    """The value of strict JSON: no NaN, no key twice, no half characters.

    Raises:
        ValueError: it is something else.
        RecursionError: it is too deep.
        Twice: a key is there twice.
    """
    values = json.loads(
        data.decode(), object_pairs_hook=without_duplicates, parse_constant=no_constant
    )
    if b"\\u" in data:
        json.dumps(values, ensure_ascii=False).encode()
    return values


class Twice(Exception):  # noqa: N818 - caught a few lines above
    """A JSON object has a key twice."""


def without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object in which no key may hide another."""
    values = dict(pairs)
    if len(values) < len(pairs):
        counts = Counter(name for name, _ in pairs)
        raise Twice(counts.most_common(1)[0][0])
    return values


def no_constant(word: str) -> None:
    """NaN and Infinity, which Python reads and JSON does not have."""
    raise ValueError(f"{word} is no number")


def unreadable(path: Path, why: str) -> ModelError:
    """The fault of a file that is no safetensors, or a broken one."""
    return ModelError(f"{path} cannot be read as safetensors: {why}")


def check_start(path: Path, start: bytes, size: int) -> None:
    """What often lies there in place of the weights, and is known by its first bytes.

    Raises:
        ModelError: it is a pickle, or too short for anything.
    """
    if start.startswith(PICKLES) and int.from_bytes(start, "little") > size:
        why = "it begins like a PyTorch file, which may run code when it is opened"
        raise unreadable(path, why)
    if size < PREFIX:
        raise unreadable(path, f"it has {size} bytes, and the length of the header takes {PREFIX}")


def header_length(path: Path, start: bytes, size: int) -> int:
    """The length that the first 8 bytes say.

    Raises:
        ModelError: the file is shorter, or no header is so long.
    """
    length = int.from_bytes(start[:PREFIX], "little")
    if length > size - PREFIX:
        why = (
            f"its first bytes say that {length:,} bytes of header follow, and {size - PREFIX:,} do"
        )
        raise unreadable(path, why)
    if length > LONGEST_JSON:
        raise unreadable(path, f"its header is longer than {LONGEST_JSON:,} bytes")
    return length


def entry_of(path: Path, name: str, value: Any, first: int) -> Entry:  # noqa: ANN401
    """One tensor of the header.

    Raises:
        ModelError: its type is unknown, or its shape and its place are no whole numbers that fit.
    """
    where = f"tensor {short(name)} of {path}"
    if not isinstance(value, dict):
        raise ModelError(f"{where} has no dtype, shape and data_offsets")
    kind, shape, place = value.get("dtype"), value.get("shape"), value.get("data_offsets")
    dtype = DTYPES.get(kind) if isinstance(kind, str) else None
    if dtype is None:
        raise ModelError(f"{where} is stored as {short(str(kind))}, which is not supported")
    if not is_counts(shape) or len(shape) > LONGEST_AXES:
        raise ModelError(f"{where} has the shape {short(str(shape))}, which is not a list of sizes")
    if not is_counts(place) or len(place) != 2 or place[0] > place[1]:
        raise ModelError(
            f"{where} has the data_offsets {short(str(place))}, which are not begin and end"
        )
    taken, given = math.prod(shape) * dtype.itemsize, place[1] - place[0]
    if taken != given:
        needed = counted(taken, "byte") if taken < LARGEST else "too many bytes for any file"
        sizes = f"takes {needed} as {kind} {shape}, and its data_offsets give it {given:,}"
        raise ModelError(f"{where} {sizes}")
    return Entry(dtype, tuple(shape), first + place[0], first + place[1])


def is_counts(values: Any) -> TypeGuard[list[int]]:  # noqa: ANN401
    """Whether this is a list of whole numbers from 0 on that a machine can count."""
    return isinstance(values, list) and all(type(v) is int and 0 <= v < LARGEST for v in values)


def check_places(path: Path, entries: Mapping[str, Entry], first: int, size: int) -> None:
    """The tensors must lie one behind the other, and fill the file.

    Raises:
        ModelError: the file is cut short, two overlap, or there are bytes that belong to none.
    """
    before, reached = "the header", first
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin < reached:
            raise unreadable(path, f"the tensors {short(before)} and {short(name)} overlap")
        if entry.begin > reached:
            gap = counted(entry.begin - reached, "byte")
            raise unreadable(path, f"{gap} before the tensor {short(name)} belong to no tensor")
        before, reached = name, entry.end
    if reached > size:
        over = counted(reached - size, "byte")
        why = f"the tensor {short(before)} ends {over} behind the end of the file"
        raise unreadable(path, f"{why}, which may have been cut short")
    if reached < size:
        left = counted(size - reached, "byte")
        raise unreadable(path, f"{left} at its end belong to no tensor")
