"""What the weights of heads say by themselves: copying, and composition with earlier heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.heads.verdict import WORDS
from gptscope.commands.heads_asked import COPYING, FEW, Asked, has_word
from gptscope.view import Column, Facts, Part, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gptscope.commands.heads_found import Weights

COPIES = (
    Column("layer", "id"),
    Column("head", "id"),
    Column("eigen", "signed"),
    Column("itself most", "probability"),
    Column("among 5", "probability"),
    Column("above mean", "probability"),
    Column("verdict"),
)
SPREAD = Column("standard deviation of eigen", "length")
PAIRS = (
    Column("composition"),
    Column("writes"),
    Column("reads"),
    Column("score", "length"),
    Column("chance", "length"),
    Column("times chance", "length"),
)


def copies(weights: Weights, heads: Sequence[tuple[int, int]]) -> list[Part]:
    """How much heads copy, and what chance would give."""
    found, score = weights.copying, weights.best(COPYING)
    if found is None:
        return []
    arrays = (weights.eigen.eigenvalues, found.most, found.top, found.above_mean)
    rows = []
    for at in heads:
        named = has_word(score, at)
        rows.append((*at, *(float(one[at]) for one in arrays), WORDS[COPYING] if named else None))
    title = f"Copying: how often a token raises itself ({found.n:,} of {found.n_vocab:,} tokens)"
    chance = zip(COPIES[3:], found.chance.values(), strict=False)
    level = (COPIES[2], 0.0), (SPREAD, weights.eigen.spread), *chance
    return [Table(title, COPIES, rows, "copying"), Facts("What chance gives", level, "chance")]


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
    title = "Composition, the strongest of each kind"
    return Table(title, PAIRS, rows, "composition") if rows else None


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
