"""A pass before and after edits: how far the stream is moved, where first, and every prediction.

Both passes keep the same values, so that both are computed in the same way: where an edit changes
no bit, the difference is exactly 0. Computed in float64, few rows at once. What is NaN in both
passes is unknown: it is not said to differ, nor to be the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.errors_of_values import apart
from gptscope.analysis.information import divergence, softmax_and_logs
from gptscope.analysis.lengths import additions, lengths, stream
from gptscope.engine.hook_points import BY_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gptscope.engine.edits import Edits
    from gptscope.engine.trace import Trace

Array = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]

FLOAT64 = np.dtype(np.float64)
AT_ONCE = 1 << 21  # numbers that are compared at once
NORMS = tuple(f"layers.*.{norm}.out" for norm in ("ln1", "ln2", "ln1_post", "ln2_post"))
KEEP = ("embeddings", "attn_out", "resid_after_attn", "mlp_out", "output", *NORMS, "logits")


@dataclass(frozen=True, eq=False)
class Moved:
    """How far R values of the second pass are from those of the first, after each of T tokens."""

    rows: tuple[str, ...]  # states of the stream and what is added to it, in the order of the pass
    states: Mask  # [R]: which of them are the stream itself
    distance: Array  # [R, T]: |after - before|; NaN where a number is NaN in both
    relative: Array  # [R, T]: that over |before|; infinite where only |before| is 0
    changed: Mask  # [R, T]: where any number differs
    first: str | None  # the first value in which a number differs; None where none does
    where: Mask  # [T]: the positions at which that one differs
    predictions: Mask  # [T]: the positions at which a logit differs
    unknown: Mask  # [T]: the positions at which logits are NaN in both passes
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
    distance = np.stack([distances(before[name], after[name]) for name in rows])
    whole = np.stack([lengths(before[name].astype(FLOAT64)) for name in rows])
    first = first_changed(before, after)
    none = np.zeros(len(before.ids), np.bool_)
    return Moved(
        rows,
        np.array([name in steps for name in rows]),
        distance,
        shares(distance, whole),
        np.stack([rows_changed(before[name], after[name]) for name in rows]),
        first,
        none if first is None else rows_changed(before[first], after[first]),
        rows_changed(before["logits"], after["logits"]),
        rows_unknown(before["logits"], after["logits"]),
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


def distances(before: Array, after: Array) -> Array:
    """The length of the difference of each row [T, d] -> [T]; NaN where a number is so in both."""
    found = lengths(apart(before.astype(FLOAT64), after.astype(FLOAT64)))
    return np.where(rows_unknown(before, after), np.nan, found)


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
    return any_in_rows(before, after, lambda a, b: apart(a, b) != 0)


def rows_unknown(before: Array, after: Array) -> Mask:
    """For each token whether any of its numbers is NaN in both passes: [T, ...]."""
    return any_in_rows(before, after, lambda a, b: np.isnan(a) & np.isnan(b))


def any_in_rows(before: Array, after: Array, asks: Callable[[Array, Array], Mask]) -> Mask:
    """For each token whether this is so of any of its numbers: [T, ...] -> [T], few at once."""
    step = max(1, AT_ONCE // max(1, before[0].size))
    parts = (slice(i, i + step) for i in range(0, len(before), step))
    found = [asks(before[p], after[p]).reshape(len(before[p]), -1).any(axis=1) for p in parts]
    return np.concatenate(found)


def divergences(first: Trace, second: Trace, positions: Sequence[int]) -> Array:
    """KL(first || second) of the predictions after these tokens, in bits: [P].

    Kullback and Leibler 1951, "On Information and Sufficiency", with base 2.
    """
    found = []
    for i in positions:
        p, logs = softmax_and_logs(first["logits"][i])
        found.append(divergence(p, logs, softmax_and_logs(second["logits"][i])[1]))
    return np.array(found)
