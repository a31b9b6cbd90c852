"""Weights in several safetensors files, with an index that says where each tensor lies or without.

https://huggingface.co/docs/transformers/big_models#sharded-checkpoints
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from gptscope.errors import ModelError
from gptscope.model.checkpoint import Checkpoint, open_safetensors
from gptscope.model.files import read_json, reason, short

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gptscope.model.weights import Table

SHARD = re.compile(r"(?P<start>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.safetensors")
MOST = 10_000  # files


def open_index(index: Path) -> Checkpoint:
    """Map every file that the index names; each must hold what the index says, and nothing else.

    Raises:
        ModelError: the index or a file is broken or not there, or the two disagree.
    """
    places = read_places(index)
    names = sorted(set(places.values()))
    parts = [open_safetensors(index.parent / name) for name in names]
    whole = join(index, parts)
    homes = {tensor: part.path for part in parts for tensor in part.arrays}
    for tensor, home in homes.items():
        if tensor not in places:
            raise ModelError(f"{home} holds {short(tensor)}, which {index.name} does not name")
    for tensor, name in places.items():
        if tensor not in homes or homes[tensor].name != name:
            where = f"{short(tensor)} lies in {short(name)}, which does not hold it"
            raise ModelError(f"{index} says that {where}")
    return whole


def read_places(index: Path) -> Mapping[str, str]:
    """The file of each tensor, all of them there, beside the index.

    Raises:
        ModelError: there is no such map, or it names a file elsewhere or one that is not there.
    """
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not all(isinstance(n, str) for n in places.values()):
        raise ModelError(f"{index} has no weight_map that names a file for each tensor")
    names = sorted(set(places.values()))
    if not names:
        raise ModelError(f"{index} names no file")
    outside = [name for name in names if Path(name).name != name]
    if outside:
        raise ModelError(f"{index} names {short(outside[0])}, which lies in another folder")
    there = names_in(index.parent)
    missing = [name for name in names if name not in there]
    if missing:
        raise ModelError(f"{index} names {short(missing[0])}, which is not there")
    return places


def is_shard(name: str) -> bool:
    """Whether this is called as one file of several: model-00001-of-00002.safetensors."""
    found = SHARD.fullmatch(name)
    return found is not None and int(found["count"]) > 1


def first_of_sets(names: Iterable[str]) -> list[str]:
    """Of each set of files, the name that comes first."""
    found: dict[tuple[str, str], str] = {}
    for name in sorted(names):
        match = SHARD.fullmatch(name)
        if match is not None:
            found.setdefault((match["start"], match["count"]), name)
    return list(found.values())


def open_set(shard: Path) -> Checkpoint:
    """Map all files of the set that one of them belongs to; their names say how many there are.

    Raises:
        ModelError: one of them is not there, or is broken, or two hold the same tensor.
    """
    found = SHARD.fullmatch(shard.name)
    start, count = (found["start"], int(found["count"])) if found else ("", 0)
    if not 0 < count <= MOST:
        raise ModelError(f"{shard} is one of {count} files, more than are opened together")
    names = [f"{start}-{i:05}-of-{count:05}.safetensors" for i in range(1, count + 1)]
    there = names_in(shard.parent)
    missing = [name for name in names if name not in there]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        others = f"{short(missing[0])}{more} of them not there"
        raise ModelError(f"{shard} is one of {count} files, with {others}")
    return join(shard, [open_safetensors(shard.parent / name) for name in names])


def join(path: Path, parts: Iterable[Checkpoint]) -> Checkpoint:
    """The tensors of all parts, in their order.

    Raises:
        ModelError: two parts hold a tensor of the same name.
    """
    arrays: dict[str, Table] = {}
    metadata: dict[str, str] = {}
    homes: dict[str, Path] = {}
    config = None
    for part in parts:
        for name in part.arrays:
            if name in homes:
                pair = f"{short(homes[name].name)} and {short(part.path.name)}"
                raise ModelError(f"{pair} in {path.parent} both hold the tensor {short(name)}")
            homes[name] = part.path
        arrays |= part.arrays
        metadata |= part.metadata
        config = config or part.config
    return Checkpoint(path, arrays, metadata, tuple(dict.fromkeys(homes.values())), config)


def names_in(folder: Path) -> set[str]:
    """The names of what lies in a folder.

    Raises:
        ModelError: it cannot be opened.
    """
    try:
        return {path.name for path in folder.iterdir()}
    except OSError as fault:
        raise ModelError(f"{folder} cannot be opened: {reason(fault)}") from fault
