"""Card 6: every token by itself."""

from __future__ import annotations

from gptscope.commands.mlp import glu, table
from gptscope.commands.tour.card import TOP, Card, Walk
from gptscope.view import Column, Facts, Table

EXACT = ("gelu", "gelu_python")
GATED = (
    "Now each token by itself: two matrices make two lists of {wide} of its {d} numbers. One goes "
    "through the activation and opens or shuts the gate for the other, number by number; a third "
    "matrix sums the products back to {d}."
)


def card(p: Walk) -> Card:
    """The strongest units of the last token."""
    s, t = p.spec, p.n_tokens
    return Card(
        title="Feed forward",
        what=GATED.format(wide=f"{s.d_ff:,}", d=s.d_model)
        if p.model.blocks[0].mlp.gate
        else (
            f"Now each token by itself: {s.d_ff:,} hidden units, each a weighted sum of its "
            f"{s.d_model} numbers, bent by the activation; a second matrix sums them back to "
            f"{s.d_model}."
        ),
        paper=f"There, the activation is max(0, x); {activation(s.activation)}{gates(p)}",
        shapes=(
            f"[T, d] = [{t}, {s.d_model}] -> [T, F] = [{t}, {s.d_ff:,}] -> [T, d] = "
            f"[{t}, {s.d_model}]"
        ),
        formula=formula(p),
        python=in_python(p),
        values=strongest(p),
    )


def formula(p: Walk) -> str:
    """With the biases that this model has."""
    mlp, name = p.model.blocks[0].mlp, p.spec.activation
    first = "x W_1" if mlp.up.bias is None else "x W_1 + b_1"
    second = "W_2" if mlp.down.bias is None else "W_2 + b_2"
    units = f"{name}({first})"
    if mlp.gate is not None:
        gate = "x W_g" if mlp.gate.bias is None else "x W_g + b_g"
        units = f"({name}({gate}) * ({first}))"
    scale = p.spec.residual_scale
    return f"{units} {second}" if scale == 1 else f"({units} {second}) * {scale:g}"


def in_python(p: Walk) -> str:
    """The second matrix, applied to the units of the last token."""
    down = "model.blocks[0].mlp.down"
    bias = "" if p.model.blocks[0].mlp.down.bias is None else f" + {down}.bias"
    code = f"trace.layers[0].mlp_act[-1] @ {down}.weight{bias}"
    return code if p.spec.residual_scale == 1 else f"({code}) * model.spec.residual_scale"


def gates(p: Walk) -> str:
    """What is said of a second list."""
    if p.model.blocks[0].mlp.gate is None:
        return ""
    name = glu(p.spec.activation)
    return (
        f" There, one list of hidden units; here two, a unit and its gate: {name} (Shazeer 2020)."
    )


def activation(name: str) -> str:
    """What stands here in its place."""
    if name == "relu":
        return "here as well."
    if name in EXACT:
        return "here it is the exact GELU: x times the share of the normal distribution below x."
    if name.startswith("gelu"):
        return (
            "here it is GELU, x times the share of the normal distribution below x, in GPT-2's "
            "form with tanh."
        )
    if name in {"silu", "swish"}:
        return "here it is SiLU, x times a number between 0 and 1 that grows with x."
    return f"here it is {name}."


def strongest(p: Walk) -> tuple[Facts, Table]:
    """How many units are on at the last token, and the strongest."""
    from gptscope.analysis.units import are_on

    on = are_on(p.trace, 0)[-1]
    counted = "units above zero" if p.model.blocks[0].mlp.gate is None else "gates open"
    counts = ((Column(counted, "count"), int(on.sum())), (Column("of", "count"), len(on)))
    return Facts(f"Layer 0, {p.last}", counts), table(p.trace, (0, -1), TOP, "The strongest")
