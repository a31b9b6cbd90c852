"""Which heads are shown where a model has many."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from gptscope.analysis.heads.scores import SHARES
from gptscope.commands.heads_asked import COPYING, SHOWN, Asked, Score, has_word
from gptscope.commands.heads_found import Found, Weights

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Heads = list[tuple[int, int]]

SINK = "first"  # where most heads of many models rest, which says little of any of them
TELLING = tuple(name for name in SHARES if name != SINK)
WITH_VERDICT = "first those with a verdict, then those farthest above chance, sinks aside"


def in_order(found: Found | Weights, asked: Asked) -> tuple[Heads, str]:
    """The heads to be shown, and how they were chosen, if they are not all."""
    every, top = asked.every(found.model.spec), asked.limit(found.model.spec)
    n, by = len(every), asked.sort
    if by is None and n <= top:
        return every, ""
    if by is None and isinstance(found, Found):
        heads, how = picked(found, every, top), WITH_VERDICT
    else:
        by = by or COPYING
        heads, how = sorted_by(found.best(by), every)[:top], f"the largest {by} first"
    said = f"{len(heads)} of {n} heads: {how}"
    if n <= top:
        return heads, said
    if n <= SHOWN or isinstance(found, Weights):
        return heads, f"{said}; --top {n} shows all"
    return heads, f"{said}. {others(found, asked, n)}."


def others(found: Found, asked: Asked, n: int) -> str:
    """How the heads are seen that are not shown."""
    here = ", on this text too" if found.ids else ""
    layer = "" if asked.layer is not None else f"--layer N shows a whole layer{here}; "
    return f"{layer}--score NAME all heads in one score; --details --top {n} -f csv every number"


def picked(found: Found, every: Heads, top: int) -> Heads:
    """The heads that tell most, in the order of the model.

    The best that have a verdict, taken from each score in turn, then those farthest above chance;
    sinks aside.
    """
    named = []
    for name in (*TELLING, *({found.weights.name} & {COPYING})):
        score = found.best(name)
        named.append([at for at in sorted_by(score, every) if has_word(score, at)])
    chosen = dict.fromkeys(at for rank in zip_longest(*named) for at in rank if at is not None)
    gains = [found.best(name) for name in TELLING]
    above = np.max([np.nan_to_num(one.values - one.chance[:, None]) for one in gains], axis=0)
    chosen |= dict.fromkeys(sorted(every, key=lambda at: -above[at]))
    return sorted(list(chosen)[:top])


def sorted_by(score: Score, heads: Sequence[tuple[int, int]]) -> Heads:
    """The heads with the largest score first; what is not a number is last."""
    values: NDArray[np.floating] = np.nan_to_num(score.values, nan=-np.inf)
    return sorted(heads, key=lambda at: -values[at])


def by_share(score: Score, heads: Heads) -> list[tuple[int, int, float, float | None, float]]:
    """Layer, head, share, standard error and chance, the largest share first."""
    return [
        (
            *at,
            float(score.values[at]),
            None if score.error is None else float(score.error[at]),
            float(score.chance[at[0]]),
        )
        for at in sorted_by(score, heads)
        if counts(score, at[0])
    ]


def counts(score: Score, layer: int) -> bool:
    """Whether there was anything to measure in a layer."""
    return score.rows is None or bool(score.rows[layer])
