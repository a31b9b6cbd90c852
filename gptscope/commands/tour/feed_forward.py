"""Card 6: every token by itself."""

from __future__ import annotations

from gptscope.commands.tour.card import TOP, Card, Pass
from gptscope.view import Column, Facts, Table

EXACT = ("gelu", "gelu_python")
COLUMNS = (Column("unit", "id"), Column("before", "signed"), Column("after", "signed"))


def card(p: Pass) -> Card:
    """The strongest units of the last token."""
    s, t = p.spec, p.n_tokens
    return Card(
        title="Feed forward",
        what=(
            f"Now each token by itself: {s.d_ff:,} hidden units, each a weighted sum of its "
            f"{s.d_model} numbers, bent by the activation; a second matrix sums them back to "
            f"{s.d_model}."
        ),
        paper=f"There, the activation is max(0, x); {activation(s.activation)}",
        shapes=(
            f"[T, d] = [{t}, {s.d_model}] -> [T, F] = [{t}, {s.d_ff:,}] -> [T, d] = "
            f"[{t}, {s.d_model}]"
        ),
        formula=formula(p),
        python=in_python(p),
        values=strongest(p),
    )


def formula(p: Pass) -> str:
    """With the biases that this model has."""
    mlp, name = p.model.blocks[0].mlp, p.spec.activation
    first = "x W_1" if mlp.up.bias is None else "x W_1 + b_1"
    second = "W_2" if mlp.down.bias is None else "W_2 + b_2"
    return f"{name}({first}) {second}"


def in_python(p: Pass) -> str:
    """The second matrix, applied to the units of the last token."""
    down = "model.blocks[0].mlp.down"
    bias = "" if p.model.blocks[0].mlp.down.bias is None else f" + {down}.bias"
    return f"trace.layers[0].mlp_act[-1] @ {down}.weight{bias}"


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
    return f"here it is {name}."


def strongest(p: Pass) -> tuple[Facts, Table]:
    """How many units are on at the last token, and the strongest."""
    import numpy as np

    layer = p.trace.layers[0]
    before, after = layer.mlp_hidden[-1], layer.mlp_act[-1]
    order = np.argsort(-after, kind="stable")[:TOP]
    on = (Column("units above zero", "count"), int((after > 0).sum()))
    of = (Column("of", "count"), len(after))
    rows = [(int(i), before[i], after[i]) for i in order]
    return Facts(f"Layer 0, {p.last}", (on, of)), Table("The strongest", COLUMNS, rows)
