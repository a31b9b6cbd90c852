"""The hidden units of a feed-forward layer: which are on, and which are strongest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gptscope.engine.trace import Trace

Array = NDArray[np.floating[Any]]


def steps(trace: Trace, layer: int) -> dict[str, Array]:
    """What leads to the value of a unit, step by step: [T, F] each, the value itself last."""
    keys = {"gate": "mlp_gate", "up": "mlp_up", "after": "mlp_act"}
    if ("mlp_gate", layer) not in trace.values:
        keys = {"before": "mlp_hidden", "after": "mlp_act"}
    return {name: trace.values[key, layer] for name, key in keys.items()}


def are_on(trace: Trace, layer: int) -> NDArray[np.bool_]:
    """Whether a unit is above zero after the activation or, where it has one, its gate: [T, F]."""
    made = steps(trace, layer)
    return made.get("gate", made["after"]) > 0


def strongest(after: Array, top: int) -> list[int]:
    """The units that are farthest from zero, what is no number first: [F].

    A gate can make a unit as strong below zero as above.
    """
    size = np.where(np.isnan(after), np.inf, np.abs(after))
    order: list[int] = np.argsort(-size, kind="stable")[:top].tolist()
    return order
