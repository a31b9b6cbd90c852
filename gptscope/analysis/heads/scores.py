"""Scores of every head in one pass, beside those of a head that spreads evenly over what it sees.

K scores, L layers, H heads, T tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.heads.patterns import PATTERNS
from gptscope.engine.ops import hidden
from gptscope.model.blocks import outlines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]
Counts = NDArray[np.int64]

SHARES = tuple(PATTERNS)
SCORES = (*SHARES, "entropy", "distance")


@dataclass(frozen=True, eq=False)
class Scores:
    """The scores of every head in one pass; NaN where no row counts, or a weight is no number."""

    values: Array  # [K, L, H], in the order of SCORES
    even: Array  # [K, L]: of a head that spreads evenly over the tokens that it sees
    rows: Counts  # [K, L]: how many rows count


def scores(model: Model, trace: Trace) -> Scores:
    """The scores of a pass whose `weights` were kept.

    Each is a mean over the rows that count. A share is that of a row's weights that lies on the
    pattern; rows count which see something on the pattern and something beside it, so that a head
    can do either. `entropy` is -sum(w log2 w) in bits, `distance` sum(w |i - j|) in tokens; rows
    count which see two tokens or more. An even head has the largest entropy that there can be.
    """
    spec, at = model.spec, np.arange(len(trace.ids))
    patterns = np.stack([PATTERNS[name](trace.ids) for name in SHARES])
    found = []
    for layer, block in enumerate(outlines(model.blocks)):
        seen = ~hidden(at, block.attention.window, causal=spec.causal)
        found.append(of_layer(trace.values["weights", layer], patterns, seen))
    values, even, rows = (np.stack(part, axis=1) for part in zip(*found, strict=True))
    return Scores(values, even, rows)


def unread(model: Model) -> Scores:
    """The scores where nothing was read: no row counts."""
    s = model.spec
    shape = len(SCORES), s.n_layers
    return Scores(
        np.full((*shape, s.n_heads), np.nan), np.full(shape, np.nan), np.zeros(shape, np.int64)
    )


def of_layer(weights: Array, patterns: Mask, seen: Mask) -> tuple[Array, Array, Counts]:
    """The scores of a layer's heads: [H, T, T], [K, T, T], [T, T] -> [K, H], [K], [K]."""
    flat = seen / seen.sum(-1, keepdims=True)  # what an even head has
    every = np.concatenate([weights, flat[None]])  # [H, T, T] -> [H+1, T, T]
    choice = seen.sum(-1) > 1
    rows, values = [], []
    for pattern in patterns & seen:
        counted = pattern.any(-1) & (seen & ~pattern).any(-1)
        rows.append(counted.sum())
        values.append(mean_of((every * pattern).sum(-1), counted))
    for one in (entropy(every), distance(every)):
        rows.append(choice.sum())
        values.append(mean_of(one, choice))
    found = np.stack(values)
    return found[:, :-1], found[:, -1], np.array(rows)


def mean_of(values: Array, counted: Mask) -> Array:
    """The mean over the rows that count, NaN if there is none: [..., T], [T] -> [...]."""
    if not counted.any():
        return np.full(values.shape[:-1], np.nan)
    found: Array = values[..., counted].mean(-1, dtype=np.float64)
    return found


def entropy(weights: Array) -> Array:
    """-sum(w log2 w) of each row, in bits: [..., T] -> [...]."""
    logs = np.log2(weights, out=np.zeros_like(weights), where=weights != 0)
    found: Array = -(weights * logs).sum(-1)
    return found


def distance(weights: Array) -> Array:
    """How far away a row reads on average, sum(w |i - j|), in tokens: [..., T, T] -> [..., T]."""
    at = np.arange(weights.shape[-1])
    found: Array = (weights * np.abs(at[:, None] - at)).sum(-1)
    return found


@dataclass(frozen=True, eq=False)
class Repeated:
    """The scores on repeated random tokens: means over the seeds, and their standard errors."""

    mean: Array  # [K, L, H]
    error: Array  # [K, L, H]
    even: Array  # [K, L]
    rows: Counts  # [K, L], in one pass


def over_seeds(passes: Sequence[Scores]) -> Repeated:
    """The means of several passes, and their standard errors: the deviation over sqrt(n).

    The deviation is that of a sample, which divides by n - 1.
    """
    values, n = np.stack([one.values for one in passes]), len(passes)
    error = values.std(0, ddof=1) / n**0.5
    even = np.mean([one.even for one in passes], axis=0)
    return Repeated(values.mean(0), error, even, passes[0].rows)
