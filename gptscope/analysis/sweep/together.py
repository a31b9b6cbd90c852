"""One block for several passes at once: their rows stand below each other, [R T, d].

All of a block but the mixing of heads treats each row alone, and a product of many rows costs far
less than as many products of few. Only where tokens read each other are the passes held apart.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.attention import mix
from gptscope.engine.cache import Cache
from gptscope.engine.forward import block
from gptscope.engine.hook_points import BY_KEY
from gptscope.engine.step import Step, looks_at, untouched

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gptscope.model.weights import Block

Array = NDArray[np.floating[Any]]
ROWS = 256  # at the most, where a pass has fewer: more of them are hardly faster
MIXED = ("scores", "scaled_masked", "weights")  # of tokens that read each other


def at_once(n_passes: int, n_tokens: int) -> int:
    """How many of these passes are computed together."""
    return max(1, min(n_passes, ROWS // n_tokens))


def blocks_of(
    streams: Sequence[Array], weights: Block, steps: Sequence[Step], n: int
) -> Iterator[Array]:
    """What a block makes of the stream of every pass [T, d], n of them together.

    There are always n, the last one repeated if need be: a product may be rounded otherwise where
    it has more rows, and what is alike has to stay alike to the last bit.
    """
    for first in range(0, len(streams), n):
        part, made = streams[first : first + n], steps[first : first + n]
        more = n - len(part)
        blank = replace(made[-1], listener=untouched)
        every = together([*part, *([part[-1]] * more)], weights, [*made, *([blank] * more)])
        yield from every[: len(part)]


def together(streams: Sequence[Array], weights: Block, steps: Sequence[Step]) -> Sequence[Array]:
    """What a block makes of the stream of every pass, all at once."""
    first = steps[0]
    if len(steps) == 1:
        return [block(streams[0], weights, first)]
    apart = Apart(steps, weights)
    at = np.tile(first.at, len(steps))
    whole = Step(first.spec, first.layer, at, apart, apart.cache)
    return np.split(block(np.concatenate(streams), weights, whole), len(steps))


class Apart:
    """The hook of several passes: each part of a value goes through the hook of its pass."""

    def __init__(self, steps: Sequence[Step], weights: Block) -> None:
        """Where each pass stands, and who listens to it."""
        self._steps, self._weights = steps, weights.attention
        self.cache = Kept(len(steps[0].at))
        self._q: Array | None = None

    def __call__(self, key: str, value: Array, layer: int | None = None) -> Array:
        """The value as the hooks leave it; what heads mix, each pass for itself."""
        if key in MIXED:  # of the wrong tokens: `mixed` shows each pass its own
            return value
        if key == "out":
            value = self.mixed(value)
        if any(looks_at(step.listener, key, layer) for step in self._steps):
            axis = int(BY_KEY[key].per_head)  # of tokens: [T, ...] or [H, T, d_h]
            parts = zip(self._steps, np.split(value, len(self._steps), axis), strict=True)
            value = np.concatenate([step.hook(key, part) for step, part in parts], axis)
        if key == "q":
            self._q = value
        return value

    def wants(self, key: str, layer: int | None) -> bool:  # noqa: ARG002
        """All but what is mixed."""
        return key not in MIXED

    def mixed(self, like: Array) -> Array:
        """What the heads of each pass read from its own tokens: [H, R T, d_h]."""
        if self._q is None:
            return like
        parts = (np.split(x, len(self._steps), axis=1) for x in (self._q, *self.cache.kept))
        each = zip(*parts, self._steps, strict=True)
        return np.concatenate([mix(q, k, v, self._weights, step) for q, k, v, step in each], axis=1)


class Kept(Cache):
    """Keeps the keys and values of all passes; the block sees those of the first alone.

    What it mixes of them is thrown away, and has the right shape.
    """

    def __init__(self, n_tokens: int) -> None:
        """Of passes over so many tokens."""
        self.length, self._n = 0, n_tokens
        self.kept: tuple[Array, Array]

    def extend(self, layer: int, k: Array, v: Array) -> tuple[Array, Array]:  # noqa: ARG002
        """Keys and values [G, R T, d_h] -> those of the first pass [G, T, d_h]."""
        self.kept = k, v
        return k[:, : self._n], v[:, : self._n]
