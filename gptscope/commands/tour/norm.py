"""What the two cards on norms share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.commands.norms import SPREAD
from gptscope.view import Column

if TYPE_CHECKING:
    from gptscope.commands.tour.card import Pass
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Norm
    from gptscope.view import Table


WAYS = {
    "layer_norm": (
        "is brought to mean 0 and standard deviation 1",
        "Norm(x) = (x - mean) / sqrt(variance + eps)",
    ),
    "rms_norm": (
        "is brought to a root mean square of 1 (RMS norm)",
        "Norm(x) = x / sqrt(mean(x^2) + eps)",
    ),
}


def way(s: Spec, norm: Norm) -> tuple[str, str]:
    """What this norm does, in words and as a formula."""
    first, formula = WAYS[s.norm]
    if norm.shift is None:
        return f"{first}, then multiplied by a learned gain,", f"{formula} * gain"
    return f"{first}, then given a learned gain and shift,", f"{formula} * gain + shift"


def gain_and_shift(p: Pass, read: str, weights: str, norm: Norm) -> str:
    """The line of Python that gives what the norm gives."""
    eps = "" if p.spec.norm_eps == 1e-5 else ", model.spec.norm_eps"
    if p.spec.norm == "rms_norm":
        return f"trace.layers[0].ln1.normalized * {weights}.gain"
    shift = "0" if norm.shift is None else f"{weights}.shift"
    return f"gptscope.layer_norm({read}, {weights}.gain, {shift}{eps})"


def in_and_out(p: Pass, name: str) -> Table:
    """Mean and spread of each token's list before the norm and once normalised."""
    from gptscope.analysis.norms import statistics

    spread = SPREAD[p.spec.norm]
    columns = (
        Column("mean in", "signed"),
        Column(f"{spread} in", "length"),
        Column("mean normalized", "signed"),
        Column(f"{spread} normalized", "length"),
    )
    return p.table(columns, (row[:4] for row in statistics(p.trace, name)))
