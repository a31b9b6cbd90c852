"""Card 8: one more norm, or none."""

from __future__ import annotations

from gptscope.commands.tour.card import Card, Walk
from gptscope.commands.tour.norm import in_and_out, in_python, since, way
from gptscope.view import Column, Table


def card(p: Walk) -> Card:
    """The norm after the last block, where there is one."""
    if p.model.ln_final is None:
        return without(p)
    done, math = way(p, p.model.ln_final)
    return Card(
        title="Final norm",
        what=f"After the last block, once more: every list {done}.",
        paper=(
            "None there: each block ends with a norm. Where norms stand before the parts, as in "
            "GPT-2, the sum at the end has none yet." + since(p)
        ),
        shapes=f"{shape(p)} -> the same",
        formula=math,
        python=in_python(p, "trace.layers[-1].output", "model.ln_final", p.model.ln_final),
        values=(in_and_out(p, "ln_final"),),
    )


def without(p: Walk) -> Card:
    """The card of a model that has none."""
    last, ends = p.spec.n_layers - 1, p.spec.wiring == "post_norm"
    why = ": the block ends with one" if ends else ""
    return Card(
        title="Final norm: none",
        what=f"This model has no norm after the last block{why}.",
        paper="None there either. GPT-2, which norms before each part, needs one at the end.",
        shapes=f"{shape(p)}, unchanged",
        formula="x = x",
        python="trace.layers[-1].output",
        values=(in_and_out(p, f"layers.{last}.ln2") if ends else as_it_is(p),),
    )


def as_it_is(p: Walk) -> Table:
    """Mean and spread of what the last block leaves."""
    from gptscope.analysis.norms import SPREAD

    spread, size = SPREAD[p.spec.norm]
    output = p.trace.layers[-1].output
    pairs = zip(output.mean(axis=-1), size(output), strict=True)
    return p.table((Column("mean", "signed"), Column(spread, "length")), pairs)


def shape(p: Walk) -> str:
    """Of the residual stream."""
    return f"[T, d] = [{p.n_tokens}, {p.spec.d_model}]"
