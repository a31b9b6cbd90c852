"""What the weights of heads say by themselves: copying, and composition with earlier heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.commands.heads_asked import FEW, Asked, Weights
from gptscope.view import Column, Facts, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

COPIES = (
    Column("layer", "id"),
    Column("head", "id"),
    Column("positive eigenvalues", "signed"),
    Column("itself most", "probability"),
    Column("among 5", "probability"),
    Column("above mean", "probability"),
)
PAIRS = (
    Column("composition"),
    Column("writes"),
    Column("reads"),
    Column("score", "length"),
    Column("chance", "length"),
    Column("times chance", "length"),
)


def copies(weights: Weights, heads: Sequence[tuple[int, int]]) -> tuple[Table, Facts]:
    """How much heads copy, and what chance would give."""
    c = weights.copying
    arrays = (c.eigenvalues, c.most, c.top, c.above_mean)
    rows = [(*at, *(float(one[at]) for one in arrays)) for at in heads]
    title = f"Copying: how often a token raises itself ({c.n:,} tokens)"
    pairs = zip(COPIES[2:], c.chance.values(), strict=True)
    return Table(title, COPIES, rows), Facts("What chance gives", tuple(pairs))


def pairs(weights: Weights, asked: Asked) -> Table | None:
    """The strongest pairs of each kind of composition; None where no head is earlier."""
    made, rows = weights.composition, list[tuple[Any, ...]]()
    if made is None:
        return None
    for way, scores in made.scores.items():
        for at in strongest(np.where(wanted(weights, asked), scores, np.nan), asked.top or FEW):
            one, two = f"{at[0]}.{at[1]}", f"{at[2]}.{at[3]}"
            score = float(scores[at])
            rows.append((way, one, two, score, made.level, score / made.level))
    return Table("Composition, the strongest of each kind", PAIRS, rows) if rows else None


def wanted(weights: Weights, asked: Asked) -> NDArray[np.bool_]:
    """Whether either head of a pair is looked at: [L, H, L, H]."""
    spec = weights.model.spec
    one = np.zeros((spec.n_layers, spec.n_heads), np.bool_)
    one[np.ix_(list(asked.layers(spec)), list(asked.heads(spec)))] = True
    return one[:, :, None, None] | one


def strongest(scores: NDArray[Any], n: int) -> list[tuple[int, ...]]:
    """Where the largest numbers are, the largest first."""
    flat = np.where(np.isnan(scores), -np.inf, scores).ravel()
    order = [int(i) for i in np.argsort(-flat, kind="stable")[:n] if np.isfinite(flat[i])]
    return [tuple(int(i) for i in np.unravel_index(at, scores.shape)) for at in order]
