"""What heads, sources and units give to a logit, each [.] in float64; a layer at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.attribution.directions import FLOAT64, Directions, pulled

if TYPE_CHECKING:
    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Linear, Model

Array = NDArray[np.floating[Any]]


def head_contributions(model: Model, trace: Trace, found: Directions, layer: int) -> Array:
    """What each head gives: its slice of `attn_concat` x its rows of the output matrix . u: [H].

    What the value biases give is in it, as the weights of a head sum to 1.
    """
    joined = row(trace, f"layers.{layer}.attn_concat", found.position)
    u = head_directions(model, found, layer)
    given: Array = np.vecdot(joined.reshape(u.shape), u)  # [H, d_h] -> [H]
    return given


def source_contributions(
    model: Model, trace: Trace, found: Directions, layer: int
) -> tuple[Array, Array]:
    """What each head gives by reading each token: its weights, and what every value says: [H, T].

    Their product, summed over the tokens, is what the head gives, if no edit came between.
    """
    u = head_directions(model, found, layer)  # [H, d_h]
    heads = [f"layers.{layer}.heads.{h}" for h in range(len(u))]
    weights = [row(trace, f"{head}.weights", found.position) for head in heads]
    said = [trace[f"{head}.v"].astype(FLOAT64) @ u[h] for h, head in enumerate(heads)]
    return np.stack(weights), np.stack(said)


def head_directions(model: Model, found: Directions, layer: int) -> Array:
    """The direction in which the output of each head counts: [H, d_h]."""
    u = model.spec.residual_scale * found.at["attn_out", layer]
    return pulled(model.blocks[layer].attention.out, u).reshape(-1, model.spec.d_head)


def unit_contributions(model: Model, trace: Trace, found: Directions, layer: int) -> Array:
    """What each hidden unit gives: its value `mlp_act` x what it says: [F]."""
    values = row(trace, f"layers.{layer}.mlp_act", found.position)
    return values * unit_directions(model, found, layer)


def unit_directions(model: Model, found: Directions, layer: int) -> Array:
    """What each hidden unit would give at a value of 1: its row of the down matrix . u: [F]."""
    u = model.spec.residual_scale * found.at["mlp_out", layer]
    return pulled(model.blocks[layer].mlp.down, u)


def bias_contribution(w: Linear, u: Array, scale: float) -> float | None:
    """What a bias gives; None where there is none."""
    return None if w.bias is None else scale * float(w.bias.astype(FLOAT64) @ u)


def row(trace: Trace, name: str, position: int) -> Array:
    """The list of one position, in float64."""
    found: Array = trace[name][position].astype(FLOAT64)
    return found
