"""How a model is built, as its blocks tell: layers that are alike, heads that share, memory."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from gptscope.model.blocks import outlines

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gptscope.model.weights import Attention, Model

CLOSE = 1e-9


@dataclass(frozen=True)
class Kind:
    """What may differ from layer to layer in how heads look; None where a model has no such."""

    scale: float  # q k' times this
    window: int | None
    turned: int | None = None  # numbers of a head that turn: 2 P
    base: float | None = None  # where the speeds are those of one base
    slowest: float | None = None  # radians per token of distance
    factor: float | None = None  # cos and sin times this
    steepest: float | None = None  # of the slopes of ALiBi
    flattest: float | None = None


def kinds(model: Model) -> dict[Kind, list[int]]:
    """The layers of every kind, in their order."""
    found: dict[Kind, list[int]] = {}
    for layer, block in enumerate(outlines(model.blocks)):
        found.setdefault(kind(block.attention), []).append(layer)
    return found


def kind(attention: Attention) -> Kind:
    """How the heads of a layer look."""
    found, turning = Kind(attention.scale, attention.window), attention.turning
    if turning is not None:
        speeds = turning.speeds
        found = replace(found, turned=2 * len(speeds), base=base(speeds), slowest=min(speeds))
        found = replace(found, factor=turning.factor)
    if attention.slopes:
        ends = max(attention.slopes), min(attention.slopes)
        found = replace(found, steepest=ends[0], flattest=ends[1])
    return found


def base(speeds: Sequence[float]) -> float | None:
    """The base of speeds base^(-i/P), i = 0 ... P - 1; None where they are others, or but one.

    Su et al. 2021, "RoFormer", section 3.2.2.
    """
    n = len(speeds)
    if n < 2 or speeds[0] != 1 or not 0 < speeds[-1] < 1:
        return None
    found = speeds[-1] ** (-n / (n - 1))
    expected = (found ** (-i / n) for i in range(n))
    if not all(math.isclose(s, e, rel_tol=CLOSE) for s, e in zip(speeds, expected, strict=True)):
        return None
    return float(f"{found:.12g}")


def stretched(model: Model) -> bool:
    """Whether the speeds depend on how long the text is."""
    turnings = (block.attention.turning for block in outlines(model.blocks))
    return any(turning is not None and turning.stretched is not None for turning in turnings)


def ranges(numbers: Iterable[int]) -> str:
    """`0-3, 5`: whole numbers that rise, those in a row together."""
    listed = list(numbers)
    breaks = [i + 1 for i, (a, b) in enumerate(pairwise(listed)) if b != a + 1]
    runs = (listed[a:b] for a, b in pairwise([0, *breaks, len(listed)]) if a < b)
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def shared_heads(n_heads: int, n_kv_heads: int) -> list[tuple[int, range]]:
    """The heads that read each head of keys and values."""
    each = n_heads // n_kv_heads
    return [(g, range(g * each, (g + 1) * each)) for g in range(n_kv_heads)]


def cache_numbers(model: Model) -> int:
    """Keys and values of one token in all layers: 2 L G d_h."""
    s = model.spec
    return 2 * s.n_layers * s.n_kv_heads * s.d_head
