"""How much a logit grows with each value of the stream, on the way back from the logits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.wiring import SOURCES, Value, sources, tables
from gptscope.engine.hook_points import BY_KEY
from gptscope.engine.products import against_rows
from gptscope.model.weights import rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Linear, Model

Array = NDArray[np.floating[Any]]
FLOAT64 = np.dtype(np.float64)


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
    last = ("output", trace.spec.n_layers - 1)
    end = last if model.ln_final is None else ("ln_final.out", None)
    to_do: list[tuple[Value, Array]] = [(end, outward(model, wanted))]
    while to_do:
        value, u = to_do.pop()
        found[value] = u
        if value[0].endswith(".out"):
            u = before_norm(model, trace, value, u, position)
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


def before_norm(model: Model, trace: Trace, value: Value, u: Array, position: int) -> Array:
    """The direction of what a norm reads, from that of what leaves it."""
    name = full_name(value).removesuffix(".out")
    weights = model.norm(name)
    u = weights.gain.astype(FLOAT64) * u
    if trace.spec.norm == "layer_norm":
        u -= u.mean()
        square = trace[f"{name}.variance"]
    else:
        square = trace[f"{name}.mean_square"]
    scaled: Array = u / np.sqrt(FLOAT64.type(square[position]) + trace.spec.norm_eps)
    return scaled


def reads(trace: Trace, value: Value) -> list[Value]:
    """The values whose sum this one is, or the norm of whose sum; none where a part or table is."""
    key, layer = value
    if key.endswith(".out"):
        return sources(trace, key.removesuffix(".out"), layer)
    if key == "input":
        return [("output", layer - 1) if layer else ("embeddings", None)]
    if key == "embeddings":
        normed = ("embed_norm.out", None) not in trace.lacks
        return [("embed_norm.out", None)] if normed else tables(trace)
    return sources(trace, key, layer) if key in SOURCES[trace.spec.wiring] else []


def full_name(value: Value) -> str:
    """The name of a value in the trace."""
    key, layer = value
    return BY_KEY[key].name.format(l=layer)
