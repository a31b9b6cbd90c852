"""How long the lists of a pass are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.engine.trace import Trace

Array = NDArray[np.floating[Any]]


def lengths(x: Array) -> Array:
    """The Euclidean length of each list, sqrt(sum of squares): [..., d] -> [...]."""
    found: Array = np.linalg.norm(x, axis=-1)
    return found


def lengths_of(trace: Trace, names: Sequence[str]) -> Array:
    """The length of each token's list in each of these values: [len(names), T]."""
    return np.stack([lengths(trace[name]) for name in names])
