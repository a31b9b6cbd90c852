"""How long the lists of a pass are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.wiring import SOURCES, sources

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.engine.trace import Trace

Array = NDArray[np.floating[Any]]


def lengths(x: Array) -> Array:
    """The Euclidean length of each list, sqrt(sum of squares): [..., d] -> [...]."""
    found: Array = np.linalg.norm(x, axis=-1)
    return found


def sums(trace: Trace, layer: int) -> dict[str, list[str]]:
    """What is summed in a block: the name of each sum, or of the norm that reads it, and its parts.

    The first part of a sum is the stream as it was; the others are added to it.
    """
    return {
        f"layers.{layer}.{key}": [f"layers.{at}.{one}" for one, at in sources(trace, key, layer)]
        for key, reads in SOURCES[trace.spec.wiring].items()
        if len(reads) > 1
    }


def stream(trace: Trace, layer: int) -> list[str]:
    """The residual stream after each step of a block."""
    keys = ("resid_after_attn", "output")
    return [f"layers.{layer}.{key}" for key in keys if (key, layer) not in trace.lacks]


def additions(trace: Trace, layer: int) -> list[str]:
    """What attention and feed-forward layer add to the stream, after a norm where there is one."""
    return [part for parts in sums(trace, layer).values() for part in parts[1:]]


def remainder(trace: Trace) -> float:
    """The largest number, without its sign, by which a sum of the stream is not that of its parts.

    A sum that only a norm reads is no value of its own, and leaves nothing.
    """
    made = (pair for layer in range(trace.spec.n_layers) for pair in sums(trace, layer).items())
    left = [
        np.abs(trace[name] - sum(trace[part] for part in parts)).max()
        for name, parts in made
        if not name.endswith(("ln1", "ln2"))
    ]
    return float(np.max(left, initial=0))


def lengths_of(trace: Trace, names: Sequence[str]) -> Array:
    """The length of each token's list in each of these values: [len(names), T]."""
    return np.stack([lengths(trace[name]) for name in names])
