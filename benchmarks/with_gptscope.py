"""The side of gptscope in forward.py, and the yardstick; it runs in a process of its own."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from common import cores

import gptscope
from gptscope.model.checkpoint import open_checkpoint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

READINGS = 10  # a single one, 20 to 50 ms, would measure how fast threads wake up


@cache
def model(folder: str) -> gptscope.Model:
    """The model, opened once."""
    return gptscope.load(folder)


def n_params(folder: str) -> int:
    """How many numbers the model has."""
    return int(model(folder).n_params)


def blas() -> str:
    """The library that multiplies NumPy's matrices."""
    found = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return f"{found['name']} {found['version']}"


def error(folder: str, ids: Sequence[int], expected: str) -> float:
    """Largest |logit - expected| over max(1, largest |expected|); `expected` is a .npy file."""
    theirs = np.load(expected)
    ours = gptscope.trace(model(folder), ids, ["logits"]).logits
    return float(np.abs(ours - theirs).max() / max(1.0, np.abs(theirs).max()))


def forward(folder: str, ids: Sequence[int]) -> float:
    """Seconds for one pass that keeps every named value."""
    opened = model(folder)
    begin = time.perf_counter()
    kept = gptscope.trace(opened, ids)
    taken = time.perf_counter() - begin
    del kept  # giving memory back is not part of the pass
    return taken


def generate(folder: str, ids: Sequence[int], n: int, settings: dict[str, Any]) -> float:
    """Seconds for each of up to n new tokens, the pass over the prompt included."""
    opened = model(folder)
    begin = time.perf_counter()
    made = gptscope.generate(opened, ids, n, **settings)
    return (time.perf_counter() - begin) / len(made.ids)


def greedy_ids(folder: str, ids: Sequence[int], n: int) -> list[int]:
    """The likeliest continuation."""
    return list(gptscope.generate(model(folder), ids, n, temperature=0).ids)


@cache
def weight_arrays(folder: str) -> list[NDArray[Any]]:
    """Every array of the weights file, flat."""
    stored = open_checkpoint(Path(folder) / "model.safetensors").arrays
    return [array.ravel() for array in stored.values()]


@cache
def shares(folder: str) -> list[list[NDArray[Any]]]:
    """The same numbers for each core: a part of every array, so that all cores have as much."""
    parts = [np.array_split(array, cores()) for array in weight_arrays(folder)]
    return [list(share) for share in zip(*parts, strict=True)]


@cache
def pool() -> ThreadPoolExecutor:
    """A thread for every core."""
    return ThreadPoolExecutor(cores())


def maxima(arrays: Sequence[NDArray[Any]]) -> None:
    """Look at every number once."""
    for array in arrays:
        array.max()


def read(folder: str) -> float:
    """Seconds to read all weights once: the largest of every array, on one thread."""
    arrays = weight_arrays(folder)
    begin = time.perf_counter()
    for _ in range(READINGS):
        maxima(arrays)
    return (time.perf_counter() - begin) / READINGS


def read_on_all_cores(folder: str) -> float:
    """Seconds to read all weights once: the largest of every part, on a thread for each core."""
    threads, parts = pool(), shares(folder)
    begin = time.perf_counter()
    for _ in range(READINGS):
        list(threads.map(maxima, parts))
    return (time.perf_counter() - begin) / READINGS
