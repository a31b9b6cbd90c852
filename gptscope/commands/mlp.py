"""The hidden units of a feed-forward layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.commands.options import Layer, Source, Target, TokenAt, Top, with_options
from gptscope.commands.output import show
from gptscope.commands.session import Run, start
from gptscope.errors import check_index
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Facts, Table, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gptscope.engine.trace import Trace

OVERVIEW = (
    Column("position", "id"),
    Column("token", "token"),
    Column("units on", "count"),
    Column("share on", "probability"),
    Column("strongest unit", "id"),
    Column("its value", "signed"),
)
GATED = (
    *OVERVIEW[:2],
    Column("gates open", "count"),
    Column("share open", "probability"),
    *OVERVIEW[4:],
)
GLU = {  # by the gate's activation
    "sigmoid": "GLU",
    "silu": "SwiGLU",
    "swish": "SwiGLU",
    "relu": "ReGLU",
    "linear": "bilinear",
}


@with_options
def command(
    source: Source, target: Target, layer: Layer = 0, token: TokenAt = None, top: Top = 8
) -> None:
    """The hidden units of a feed-forward layer: how many are on, and which most.

    gptscope mlp "Lily wanted to play with her"

    gptscope mlp "Lily wanted to play with her" --layer 1 --token 5 --top 20

    A unit is on where its value after the activation is above zero; where units have gates, a gate

    is open where it is above zero, and its activation multiplies the unit.
    """
    run = start(source)
    layer = check_index("layer", layer, run.model.spec.n_layers)
    at = check_index("token", -1 if token is None else token, len(run.ids))
    trace = run.trace(f"layers.{layer}.mlp_*")
    all_tokens = (overview(trace, run, layer),) if token is None else ()
    parts = (*all_tokens, *strongest(trace, run, (layer, at), top))
    show(View("mlp", parts, **run.about), target)


def overview(trace: Trace, run: Run, layer: int) -> Table:
    """A row for each token."""
    act, gate = trace.layers[layer].mlp_act, gate_of(trace, layer)
    units = act.shape[1]
    on = ((act if gate is None else gate) > 0).sum(axis=1)
    best = (act if gate is None else abs(act)).argmax(axis=1)
    rows = [
        (i, label, int(on[i]), on[i] / units, int(best[i]), act[i, best[i]])
        for i, label in enumerate(run.labels)
    ]
    kind, columns = ("hidden", OVERVIEW) if gate is None else ("gated", GATED)
    return Table(f"Layer {layer}: {units} {kind} units, all tokens", columns, rows)


def gate_of(trace: Trace, layer: int) -> NDArray[Any] | None:
    """The gates of a layer before their activation, where there are any."""
    return trace.values.get(("mlp_gate", layer))


def strongest(trace: Trace, run: Run, where: tuple[int, int], top: int) -> tuple[Facts, Table]:
    """How many units are on at one token, and the strongest before and after the activation."""
    import numpy as np

    layer, at = where
    scope, after = trace.layers[layer], trace.layers[layer].mlp_act[at]
    shown = {name: getattr(scope, key)[at] for name, key in steps(trace, layer).items()}
    size = np.where(np.isnan(after), np.inf, np.abs(after))  # what went wrong comes first
    order = np.argsort(-size, kind="stable")[:top]
    rows = [(int(i), *(values[i] for values in shown.values())) for i in order]
    columns = (Column("unit", "id"), *(Column(name, "signed") for name in shown))
    title = f"Layer {layer}, token {at} {token_glyphs(run.labels[at])}"
    gate = shown.get("gate")
    counted = ("units on", after) if gate is None else ("gates open", gate)
    on = (Column(counted[0], "count"), int((counted[1] > 0).sum()))
    of = (Column("units", "count"), len(after))
    return Facts(title, (on, of)), Table(heading(run, gated=gate is not None), columns, rows)


def steps(trace: Trace, layer: int) -> dict[str, str]:
    """The steps of a hidden unit by the names of their columns."""
    if gate_of(trace, layer) is None:
        return {"before": "mlp_hidden", "after": "mlp_act"}
    return {"gate": "mlp_gate", "up": "mlp_up", "after": "mlp_act"}


def heading(run: Run, *, gated: bool) -> str:
    """How the columns of a unit follow from each other."""
    name = run.model.spec.activation
    if gated:
        return f"The strongest: after = {name}(gate) x up ({glu(name)})"
    return f"The strongest, before and after {name}"


def glu(activation: str) -> str:
    """What a gated unit is called. Shazeer 2020, "GLU Variants Improve Transformer", section 2."""
    return "GeGLU" if activation.startswith("gelu") else GLU.get(activation, "a gated linear unit")
