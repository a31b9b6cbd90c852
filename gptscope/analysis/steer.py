"""A direction from some texts to others: the difference of their mean activations.

Turner et al. 2023, "Activation Addition: Steering Language Models Without Optimization"; Rimsky et
al. 2024, "Steering Llama 2 via Contrastive Activation Addition", section 3; the difference of means
as a probe: Marks and Tegmark 2023, "The Geometry of Truth", section 4. Computed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.attribution.directions import frozen
from gptscope.analysis.lengths import lengths
from gptscope.analysis.wiring import end, leads_to, norms_between
from gptscope.engine.products import against_rows, linear
from gptscope.engine.trace import trace
from gptscope.model.blocks import kept

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gptscope.analysis.wiring import Value
    from gptscope.engine.edits import Edits
    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]

FLOAT64 = np.dtype(np.float64)


@dataclass(frozen=True)
class Fed:
    """A text as ids, and which of them are its own: neither BOS nor what else was put around it."""

    ids: tuple[int, ...]
    own: slice


@dataclass(frozen=True, eq=False)
class Separation:
    """How far two sets lie apart along the direction between their means, of length 1.

    A text is told right if it lies on its own side of the middle between the two means.
    """

    projections: tuple[Array, Array]  # of each text of either set: x . v / |v|; NaN where v is 0
    # Both None where a set has one text, which always lies where its mean does.
    right: int | None  # texts told right by a direction that was made of them as well
    right_left_out: int | None  # by one that was made without the text


def activations(
    model: Model,
    texts: Sequence[Fed],
    name: str,
    tokens: str = "last",
    edits: Edits | tuple[()] = (),
    tick: Callable[[int], object] = lambda _done: None,
) -> Array:
    """What each text gives at a value [T, d]: at its last token, or the mean over all: [n, d].

    Every text counts once, however long it is. `tick` is called after each.

    Raises:
        UsageError: a text is longer than the model reads, or the model lacks the value.
    """
    model = replace(model, blocks=kept(model.blocks))
    found = []
    for text in texts:
        rows = trace(model, text.ids, [name], edits)[name][text.own].astype(FLOAT64)
        found.append(rows[-1] if tokens == "last" else rows.mean(axis=0))
        tick(1)
    return np.stack(found)


def direction(starts: Array, ends: Array) -> Array:
    """The mean of the ends [m, d] less the mean of the starts [n, d]: [d]."""
    found: Array = ends.mean(axis=0) - starts.mean(axis=0)
    return found


def cosines(rows: Array, v: Array) -> Array:
    """The cosine of each row with v: [n, d] -> [n]; NaN where either is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.clip(rows @ v / (lengths(rows) * lengths(v)), -1, 1)
    return found


def separation(starts: Array, ends: Array) -> Separation:
    """How well the direction tells the two sets apart that it was made of."""
    v = direction(starts, ends)
    with np.errstate(divide="ignore", invalid="ignore"):
        p, q = (rows @ v / lengths(v) for rows in (starts, ends))
    if min(len(starts), len(ends)) < 2:
        return Separation((p, q), None, None)
    right = told_right(starts, starts, ends, -1) + told_right(ends, starts, ends, 1)
    left = sum(
        told_right(rows[i : i + 1], *without(starts, ends, side, i), side)
        for side, rows in ((-1, starts), (1, ends))
        for i in range(len(rows))
    )
    return Separation((p, q), right, left)


def without(starts: Array, ends: Array, side: int, i: int) -> tuple[Array, Array]:
    """Both sets, one of them without its text i."""
    if side < 0:
        return np.delete(starts, i, axis=0), ends
    return starts, np.delete(ends, i, axis=0)


def told_right(rows: Array, starts: Array, ends: Array, side: int) -> int:
    """How many of these rows lie on their side (-1 or 1) of the middle between two means."""
    middle = (starts.mean(axis=0) + ends.mean(axis=0)) / 2
    return int(((rows - middle) @ direction(starts, ends) * side > 0).sum())


def lensed(model: Model, made: Trace, value: Value, v: Array) -> Array | None:
    """What a direction at a value of the stream gives every logit, but for the norms' scales: [V].

    v times the gain of every norm on the direct way to the logits, in a layer norm less its mean,
    then the output matrices without biases; less the mean over the vocabulary, as what moves all
    logits alike changes no probability. Before a soft cap. None where the value is not added to
    the stream as it is. nostalgebraist 2020, "interpreting GPT: the logit lens".
    """
    if not leads_to(made, end(made), value):
        return None
    for name in reversed(norms_between(made, end(made), value)):
        v = frozen(model, name, v)
    row = v[None]
    if model.project_out is not None:
        row = linear(row, model.project_out.stored)
    logits: Array = against_rows(row, model.output_table)[0] * model.spec.logit_scale
    logits -= logits.mean()
    return logits
