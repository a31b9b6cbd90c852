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
from gptscope.engine.forward import block
from gptscope.engine.hook_points import BY_KEY
from gptscope.engine.step import looks_at, untouched

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gptscope.engine.step import Step
    from gptscope.model.weights import Attention, Block

Array = NDArray[np.floating[Any]]
ROWS = 256  # at the most, where a pass has fewer: more of them are hardly faster


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
    apart, at = Apart(steps), np.tile(first.at, len(steps))
    whole = replace(first, at=at, listener=apart, mixer=apart.mixed)
    return np.split(block(np.concatenate(streams), weights, whole), len(steps))


class Apart:
    """The hook of several passes: each part of a value goes through the hook of its pass."""

    def __init__(self, steps: Sequence[Step]) -> None:
        """Where each pass stands, and who listens to it."""
        self._steps = steps

    def __call__(self, key: str, value: Array, layer: int | None = None) -> Array:
        """The value [R T, ...] or [H, R T, d_h] as the hooks leave it."""
        if not self.wants(key, layer):
            return value
        axis = int(BY_KEY[key].per_head)
        parts = zip(self._steps, np.split(value, len(self._steps), axis), strict=True)
        return np.concatenate([step.hook(key, part) for step, part in parts], axis)

    def wants(self, key: str, layer: int | None) -> bool:
        """Whether any pass may look at this value."""
        return any(looks_at(step.listener, key, layer) for step in self._steps)

    def mixed(self, q: Array, k: Array, v: Array, w: Attention, _: Step) -> Array:
        """What the heads of each pass read from its own tokens: [H, R T, d_h]."""
        parts = (np.split(x, len(self._steps), axis=1) for x in (q, k, v))
        each = zip(*parts, self._steps, strict=True)
        return np.concatenate([mix(q, k, v, w, step) for q, k, v, step in each], axis=1)
