"""Keys and values of earlier tokens, so that a new token costs one row and not the whole text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gptscope.model.spec import Spec

Array = NDArray[np.floating[Any]]
FIRST_ROOM = 128  # tokens; it doubles whenever it is full


class Cache:
    """The keys and values of the tokens so far, in every layer."""

    def __init__(self, spec: Spec, dtype: np.dtype[Any]) -> None:
        """An empty cache."""
        shape = (spec.n_kv_heads, min(FIRST_ROOM, spec.n_ctx), spec.d_head)
        self._rows = [
            (np.empty(shape, dtype), np.empty(shape, dtype)) for _ in range(spec.n_layers)
        ]
        self.length = 0

    def extend(self, layer: int, k: Array, v: Array) -> tuple[Array, Array]:
        """Add this layer's new rows [G, T, d_h]; give back all of them: [G, S, d_h]."""
        seen = self.length + k.shape[1]
        keys, values = (with_room(old, seen) for old in self._rows[layer])
        keys[:, self.length : seen], values[:, self.length : seen] = k, v
        self._rows[layer] = keys, values
        return keys[:, :seen], values[:, :seen]

    def advance(self, n_tokens: int) -> None:
        """The new rows of every layer are in."""
        self.length += n_tokens


def with_room(old: Array, n: int) -> Array:
    """The array itself, or a copy of at least twice its rows, if it has fewer than `n`."""
    if n <= old.shape[1]:
        return old
    new = np.empty((old.shape[0], max(n, 2 * old.shape[1]), old.shape[2]), old.dtype)
    new[:, : old.shape[1]] = old
    return new
