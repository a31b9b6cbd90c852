"""Keys and values of earlier tokens, so that a new token costs one row and not the whole text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gptscope.model.spec import Spec

Array = NDArray[np.floating[Any]]


class Cache:
    """Room for the keys and values of n_ctx tokens in every layer."""

    def __init__(self, spec: Spec, dtype: np.dtype[Any]) -> None:
        """An empty cache; memory is touched only as it fills."""
        shape = (spec.n_layers, spec.n_heads, spec.n_ctx, spec.d_head)
        self._keys, self._values = np.empty(shape, dtype), np.empty(shape, dtype)
        self.length = 0

    def extend(self, layer: int, k: Array, v: Array) -> tuple[Array, Array]:
        """Add this layer's new rows [H, T, d_h]; give back all of them: [H, S, d_h]."""
        seen = self.length + k.shape[1]
        self._keys[layer, :, self.length : seen] = k
        self._values[layer, :, self.length : seen] = v
        return self._keys[layer, :, :seen], self._values[layer, :, :seen]

    def advance(self, n_tokens: int) -> None:
        """The new rows of every layer are in."""
        self.length += n_tokens
