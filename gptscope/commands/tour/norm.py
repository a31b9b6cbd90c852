"""What the two cards on norms share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.view import Column

if TYPE_CHECKING:
    from gptscope.commands.tour.card import Walk
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
RMS = " RMS norm came later (Zhang and Sennrich 2019); the paper and GPT-2 have layer norm."


def way(p: Walk, norm: Norm) -> tuple[str, str]:
    """What this norm does, in words and as a formula."""
    first, formula = WAYS[p.spec.norm]
    if norm.shift is None:
        return f"{first}, then multiplied by a learned gain", f"{formula} * gain"
    return f"{first}, then given a learned gain and shift", f"{formula} * gain + shift"


def since(p: Walk) -> str:
    """What neither the paper nor GPT-2 has."""
    return RMS if p.spec.norm == "rms_norm" else ""


def in_python(p: Walk, read: str, weights: str, norm: Norm) -> str:
    """The line of Python that gives what the norm gives."""
    usual = p.spec.norm_eps == 1e-5
    if p.spec.norm == "rms_norm":
        eps = "1e-5" if usual else "model.spec.norm_eps"
        square = f"({read} ** 2).mean(-1, keepdims=True)"
        return f"{read} / ({square} + {eps}) ** 0.5 * {weights}.gain"
    shift = "0" if norm.shift is None else f"{weights}.shift"
    eps = "" if usual else ", model.spec.norm_eps"
    return f"gptscope.layer_norm({read}, {weights}.gain, {shift}{eps})"


def in_and_out(p: Walk, name: str) -> Table:
    """Mean and spread of each token's list before the norm and once normalised."""
    from gptscope.analysis.norms import SPREAD, statistics

    spread, _ = SPREAD[p.spec.norm]
    heads = (
        Column("mean in", "signed"),
        Column(f"{spread} in", "length"),
        Column("mean normalized", "signed"),
        Column(f"{spread} normalized", "length"),
    )
    return p.table(heads, (row[:4] for row in statistics(p.trace, name)))
