"""A pass before and after edits: how far the stream is moved, where first, and every prediction.

Both passes keep the same values, so that both are computed in the same way: where an edit changes
no bit, the difference is exactly 0. Computed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.compare import apart
from gptscope.analysis.lengths import additions, lengths, stream
from gptscope.analysis.lens import distribution, divergence
from gptscope.engine.hook_points import BY_KEY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.engine.edits import Edits
    from gptscope.engine.trace import Trace

Array = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]

FLOAT64 = np.dtype(np.float64)
NORMS = tuple(f"layers.*.{norm}.out" for norm in ("ln1", "ln2", "ln1_post", "ln2_post"))
KEEP = ("embeddings", "attn_out", "resid_after_attn", "mlp_out", "output", *NORMS, "logits")


@dataclass(frozen=True, eq=False)
class Moved:
    """How far R values of the second pass are from those of the first, after each of T tokens."""

    rows: tuple[str, ...]  # states of the stream and what is added to it, in the order of the pass
    states: Mask  # [R]: which of them are the stream itself
    distance: Array  # [R, T]: |after - before|
    relative: Array  # [R, T]: that over |before|; infinite where only |before| is 0
    first: str | None  # the first value in which a number differs; None where none does
    where: Mask  # [T]: the positions at which that one differs
    predictions: Mask  # [T]: the positions at which a logit differs
    kl: Array  # [T], bits: KL(before || after) of the predictions after each token


def watched(edits: Edits) -> tuple[str, ...]:
    """What both passes must keep: `KEEP`, and every value that is changed."""
    changed = sorted(edits.places, key=lambda place: (place[0], place[1] or 0))
    return (*KEEP, *(BY_KEY[key].name.format(l=layer, h="*") for key, layer in changed))


def moved(before: Trace, after: Trace) -> Moved:
    """Two passes on the same ids that keep what `watched` names.

    Raises:
        UsageError: a trace lacks one of these values.
    """
    steps = states(before)
    rows = in_order(before, [*steps, *parts(before)])
    x, y = ([trace[name].astype(FLOAT64) for name in rows] for trace in (before, after))
    distance = np.stack([lengths(apart(a, b)) for a, b in zip(x, y, strict=True)])
    first = first_changed(before, after)
    none = np.zeros(len(before.ids), np.bool_)
    return Moved(
        rows,
        np.array([name in steps for name in rows]),
        distance,
        shares(distance, np.stack([lengths(a) for a in x])),
        first,
        none if first is None else rows_changed(before[first], after[first]),
        rows_changed(before["logits"], after["logits"]),
        divergences(before, after, range(len(before.ids))),
    )


def states(trace: Trace) -> list[str]:
    """The stream after each step, by name."""
    layers = range(trace.spec.n_layers)
    return ["embeddings", *(name for layer in layers for name in stream(trace, layer))]


def parts(trace: Trace) -> list[str]:
    """What every part adds to the stream, by name."""
    return [name for layer in range(trace.spec.n_layers) for name in additions(trace, layer)]


def in_order(trace: Trace, names: Sequence[str]) -> tuple[str, ...]:
    """These names in the order of the pass."""
    order = {name: i for i, name in enumerate(trace.names())}
    return tuple(sorted(set(names), key=order.__getitem__))


def shares(distance: Array, whole: Array) -> Array:
    """One length over another; 0 where both are 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0.0, distance / whole)


def first_changed(before: Trace, after: Trace) -> str | None:
    """The name of the first value, in the order of the pass, in which any number differs."""
    names = (name for name in before.names() if rows_changed(before[name], after[name]).any())
    return next(names, None)


def rows_changed(before: Array, after: Array) -> Mask:
    """For each token whether any of its numbers differs, in value or in being NaN: [T, ...]."""
    found: Mask = (apart(before, after) != 0).reshape(len(before), -1).any(axis=1)
    return found


def divergences(first: Trace, second: Trace, positions: Sequence[int]) -> Array:
    """KL(first || second) of the predictions after these tokens, in bits: [P].

    Kullback and Leibler 1951, "On Information and Sufficiency", with base 2.
    """
    found = []
    for i in positions:
        p, logs = distribution(first["logits"][i])
        found.append(divergence(p, logs, distribution(second["logits"][i])[1]))
    return np.array(found)
