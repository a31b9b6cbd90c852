"""What a norm makes of each list, in two numbers before, between and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gptscope.engine.trace import Trace

Array = NDArray[np.floating[Any]]


def std(x: Array) -> Array:
    """The population standard deviation over the last axis: [..., d] -> [...]."""
    found: Array = x.std(axis=-1)
    return found


def rms(x: Array) -> Array:
    """The root mean square over the last axis: [..., d] -> [...]."""
    found: Array = np.sqrt((x * x).mean(axis=-1))
    return found


# What a norm brings to 1: its name, and how it is measured.
SPREAD: Mapping[str, tuple[str, Callable[[Array], Array]]] = {
    "layer_norm": ("std", std),
    "rms_norm": ("rms", rms),
}


def statistics(trace: Trace, name: str) -> Array:
    """Mean and spread of the lists entering a norm, once normalised, and leaving it: [T, 6].

    The spread is what the norm divides by, but for eps: the standard deviation of a layer norm, the
    root mean square of an RMS norm. `name` is `layers.0.ln1`, `ln_final`, ...
    """
    normalized, out = trace[f"{name}.normalized"], trace[f"{name}.out"]
    _, spread = SPREAD[trace.spec.norm]
    if trace.spec.norm == "rms_norm":
        square = trace[f"{name}.mean_square"]
        mean, size = normalized.mean(-1) * np.sqrt(square + trace.spec.norm_eps), np.sqrt(square)
    else:
        mean, size = trace[f"{name}.mean"], np.sqrt(trace[f"{name}.variance"])
    between, after = ((x.mean(-1), spread(x)) for x in (normalized, out))
    return np.stack([mean, size, *between, *after], axis=-1)
