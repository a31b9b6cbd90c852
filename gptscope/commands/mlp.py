"""The hidden units of a feed-forward layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.commands.options import Layer, Pass, Target, TokenAt, Top, with_options
from gptscope.commands.output import show
from gptscope.commands.session import Run, start
from gptscope.errors import check_index
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Facts, Table, View

if TYPE_CHECKING:
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
    source: Pass, target: Target, layer: Layer = 0, token: TokenAt = None, top: Top = 8
) -> None:
    """The hidden units of a feed-forward layer: how many are on, and which most.

    gptscope mlp "Lily wanted to play with her"

    gptscope mlp "Lily wanted to play with her" --layer 1 --token 5 --top 20

    A unit is on where its value after the activation is above zero; where
    units have gates, a gate is open where it is above zero, and its activation
    multiplies the unit.
    """
    run = start(source)
    layer = check_index("layer", layer, run.model.spec.n_layers)
    at = check_index("token", -1 if token is None else token, len(run.ids))
    trace = run.trace(f"layers.{layer}.mlp_*")
    all_tokens = (overview(trace, run, layer),) if token is None else ()
    parts = (*all_tokens, *strongest_at(trace, run, (layer, at), top))
    show(View("mlp", parts, **run.about), target)


def overview(trace: Trace, run: Run, layer: int) -> Table:
    """A row for each token."""
    from gptscope.analysis.units import are_on, steps, strongest

    made, on = steps(trace, layer), are_on(trace, layer).sum(axis=1)
    act, units = made["after"], made["after"].shape[1]
    best = [strongest(row, 1)[0] for row in act]
    rows = [
        (i, label, int(on[i]), on[i] / units, best[i], act[i, best[i]])
        for i, label in enumerate(run.labels)
    ]
    kind, columns = ("gated", GATED) if "gate" in made else ("hidden", OVERVIEW)
    return Table(f"Layer {layer}: {units} {kind} units, all tokens", columns, rows)


def strongest_at(trace: Trace, run: Run, where: tuple[int, int], top: int) -> tuple[Facts, Table]:
    """How many units are on at one token, and the strongest before and after the activation."""
    from gptscope.analysis.units import are_on, steps

    layer, at = where
    on, gated = are_on(trace, layer)[at], "gate" in steps(trace, layer)
    whose = f"Layer {layer}, token {at} {token_glyphs(run.labels[at])}"
    edited = ", then changed by --edit" * (("mlp_act", layer) in trace.changed)
    title = heading(run, gated=gated) + edited
    counts = (
        (Column("gates open" if gated else "units on", "count"), int(on.sum())),
        (Column("units", "count"), len(on)),
    )
    return Facts(whose, counts), table(trace, where, top, title)


def table(trace: Trace, where: tuple[int, int], top: int, title: str) -> Table:
    """The strongest units of one token of a layer."""
    from gptscope.analysis.units import steps, strongest

    layer, at = where
    shown = {name: values[at] for name, values in steps(trace, layer).items()}
    order = strongest(shown["after"], top)
    rows = [(i, *(values[i] for values in shown.values())) for i in order]
    return Table(title, (Column("unit", "id"), *(Column(n, "signed") for n in shown)), rows)


def heading(run: Run, *, gated: bool) -> str:
    """How the columns of a unit follow from each other."""
    name = run.model.spec.activation
    if gated:
        return f"The strongest: after = {name}(gate) x up ({glu(name)})"
    return f"The strongest, before and after {name}"


def glu(activation: str) -> str:
    """What a gated unit is called. Shazeer 2020, "GLU Variants Improve Transformer", section 2."""
    return "GeGLU" if activation.startswith("gelu") else GLU.get(activation, "a gated linear unit")
