"""Card 7: the same two parts again and again."""

from __future__ import annotations

from gptscope.commands.tour.card import Card, Walk
from gptscope.view import Column, Table

COLUMNS = (
    Column("layer", "id"),
    Column("length in", "length"),
    Column("attention adds", "length"),
    Column("feed forward adds", "length"),
    Column("length out", "length"),
)

WAYS = {
    "pre_norm": "every part reads it, and adds to it",
    "norm_of_parts": "every part reads it, and what it gives is normed and added to it",
    "parallel": "both parts read it as it enters the block, and both add to it",
    "norm_in_stream": "a norm makes a new list of it, which a part reads and adds to",
    "post_norm": "every part reads it and adds to it, and a norm makes a new list of the sum",
}


def card(p: Walk) -> Card:
    """How long the last token's list is through the blocks, and what each adds."""
    s, t = p.spec, p.n_tokens
    times = "once" if s.n_layers == 1 else f"{s.n_layers} times"
    return Card(
        title="Repeated blocks",
        what=(
            f"Attention and feed forward together are a block, and it comes {times}, each with "
            f"weights of its own. One list per token runs through them all, the residual stream: "
            f"{WAYS[s.wiring]}.{scaled(p)}"
        ),
        paper=(
            "There, 6 blocks read one text and 6 others write the translation; a GPT has one "
            "stack: 12 blocks in the smallest GPT-2, 48 in the largest."
        ),
        shapes=f"[T, d] = [{t}, {s.d_model}] through L = {s.n_layers} blocks, always the same",
        formula="x = block_(L-1)(... block_1(block_0(x)))",
        python="[float((layer.output[-1] ** 2).sum() ** 0.5) for layer in trace.layers]",
        values=(Table(f"Lengths of {p.last}", COLUMNS, list(rows(p))),),
    )


def scaled(p: Walk) -> str:
    """What is said of a factor of all that is added."""
    scale = p.spec.residual_scale
    return "" if scale == 1 else f" Whatever a part gives is multiplied by {scale:g} first."


def rows(p: Walk) -> list[tuple[float, ...]]:
    """Lengths of the last token's list, block by block."""
    from gptscope.analysis.lengths import additions, lengths

    steps = (
        (i, [f"layers.{i}.input", *additions(p.trace, i), f"layers.{i}.output"])
        for i in range(p.spec.n_layers)
    )
    return [(i, *(float(lengths(p.trace[name][-1])) for name in names)) for i, names in steps]
