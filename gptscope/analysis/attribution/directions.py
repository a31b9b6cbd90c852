"""How much a logit grows with each value of the stream, on the way back from the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.wiring import NORMS, Value, end, full_name, reads
from gptscope.engine.products import against_rows
from gptscope.model.weights import rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Linear, Model

Array = NDArray[np.floating[Any]]
FLOAT64 = np.dtype(np.float64)
SCALES = tuple(f"{norm}.{key}" for norm in NORMS for key in ("variance", "mean_square"))


@dataclass(frozen=True, eq=False)
class Directions:
    """For each value of the stream at one position, the direction u in which it counts: value . u.

    `at` is keyed as a trace is, by key and layer, from the logits back to the embeddings. Every
    value comes once, and no part is entered: `attn_out` and `mlp_out` are where it ends.
    """

    position: int
    wanted: Mapping[int, float]  # token id -> how often its logit counts
    at: dict[Value, Array]  # float64, [d] each


def directions(
    model: Model, trace: Trace, position: int, wanted: Mapping[int, float]
) -> Directions:
    """The direction of each value of the stream, for a sum of logits: `{answer: 1, against: -1}`.

    u = scale * U w at the end. Before a norm with gain g, u becomes g * u / sigma, and in a layer
    norm less its mean; sigma is frozen at this pass. A sum hands the same u to all its parts.
    Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits"; the frozen norm as in
    TransformerLens' `ActivationCache.apply_ln_to_stack`.

    Raises:
        UsageError: the trace lacks the scale of a norm on the way.
    """
    found: dict[Value, Array] = {}
    to_do: list[tuple[Value, Array]] = [(end(trace), outward(model, wanted))]
    while to_do:
        value, u = to_do.pop()
        found[value] = u
        if value[0].endswith(".out"):
            name = full_name(value).removesuffix(".out")
            u = frozen_back(model, name, u, sigma(trace, name, position))
        to_do += [(one, u) for one in reads(trace, value)]
    return Directions(position, wanted, found)


def outward(model: Model, wanted: Mapping[int, float]) -> Array:
    """What the last list of a token is multiplied by to give a sum of logits: [d]."""
    u = model.spec.logit_scale * unembedded(model, wanted)
    return u if model.project_out is None else pulled(model.project_out, u)


def unembedded(model: Model, wanted: Mapping[int, float]) -> Array:
    """The rows of the output table, each times its weight, summed: [d]."""
    table = rows(model.output_table, list(wanted), FLOAT64)
    u: Array = np.array(list(wanted.values()), FLOAT64) @ table
    return u


def pulled(w: Linear, u: Array) -> Array:
    """W u: how much u . (x W) grows with each number of x, [out] -> [in]."""
    back: Array = against_rows(u[None], w.stored)[0]  # a piece of W at a time is widened
    return back


def frozen(model: Model, name: str, x: Array, scale: float = 1.0) -> Array:
    """What becomes of a part of what a norm reads, its scale frozen: (x - mean) / scale * gain.

    In an RMS norm the mean stays. With a scale of 1, the part comes out as long as the norm makes
    it but for that scale.
    """
    if model.spec.norm == "layer_norm":
        x = x - x.mean()
    passed: Array = x / scale * model.norm(name).gain
    return passed


def frozen_back(model: Model, name: str, u: Array, scale: float = 1.0) -> Array:
    """The direction [d] of what a norm reads, from that of what leaves it: g * u / scale.

    In a layer norm less its mean: the transpose of `frozen`.
    """
    u = model.norm(name).gain * u
    if model.spec.norm == "layer_norm":
        u = u - u.mean()
    before: Array = u / scale
    return before


def sigma(trace: Trace, name: str, position: int) -> float:
    """What a norm divides by at a position: sqrt(variance + eps), or of the mean square.

    Raises:
        UsageError: the trace lacks it.
    """
    key = "variance" if trace.spec.norm == "layer_norm" else "mean_square"
    return float(np.sqrt(FLOAT64.type(trace[f"{name}.{key}"][position]) + trace.spec.norm_eps))
