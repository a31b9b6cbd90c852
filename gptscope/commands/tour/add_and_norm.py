"""Card 4: what parts give is added, and lists are normalised."""

from __future__ import annotations

from gptscope.commands.tour.card import Card, Pass
from gptscope.commands.tour.norm import gain_and_shift, in_and_out, way

WHEN = {
    "pre_norm": (
        "before each part reads it; what the part gives is added to the list as it was",
        "There, the norm comes after the sum, LN(x + Part(x)); here before the part, as in GPT-2.",
        "x + Part(Norm(x))",
    ),
    "post_norm": (
        "after what a part gives has been added to it",
        "The same there. GPT-2 norms before each part, x + Part(LN(x)), and once at the end.",
        "Norm(x + Part(x))",
    ),
}
READ = {
    "pre_norm": "trace.layers[0].input",
    "post_norm": "trace.layers[0].input + trace.layers[0].attn_out",
}


def card(p: Pass) -> Card:
    """The first norm of the first block."""
    s, t = p.spec, p.n_tokens
    when, paper, formula = WHEN[s.wiring]
    first = p.model.blocks[0].ln1
    done, math = way(s, first)
    return Card(
        title="Add and norm",
        what=f"Each list of {s.d_model} numbers {done} {when}.",
        paper=paper,
        shapes=f"[T, d] = [{t}, {s.d_model}] -> the same",
        formula=f"{formula}; {math}",
        python=gain_and_shift(p, READ[s.wiring], "model.blocks[0].ln1", first),
        values=(in_and_out(p, "layers.0.ln1"),),
    )
