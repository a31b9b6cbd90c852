"""Card 4: what parts give is added, and lists are normalised."""

from __future__ import annotations

from gptscope.commands.tour.card import NUMBERS, Card, Pass, numbers
from gptscope.commands.tour.norm import in_and_out, in_python, since, way
from gptscope.view import Column, Table

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
    "post_norm": "(trace.layers[0].input + trace.layers[0].attn_out)",
}


def card(p: Pass) -> Card:
    """The first sum and the first norm of the first block."""
    s, first = p.spec, p.model.blocks[0].ln1
    when, paper, formula = WHEN[s.wiring]
    done, math = way(p, first)
    return Card(
        title="Add and norm",
        what=f"Each list of {s.d_model} numbers {done}, {when}.",
        paper=paper + since(p),
        shapes=f"[T, d] = [{p.n_tokens}, {s.d_model}] -> the same",
        formula=f"{formula}; {math}",
        python=in_python(p, READ[s.wiring], "model.blocks[0].ln1", first),
        values=(added(p), in_and_out(p, "layers.0.ln1")),
    )


def added(p: Pass) -> Table:
    """What attention adds to the last token's list."""
    layer = p.trace.layers[0]
    rows = (
        ("the list as it was", *layer.input[-1][:NUMBERS]),
        ("attention adds", *layer.attn_out[-1][:NUMBERS]),
        ("sum", *(layer.input[-1] + layer.attn_out[-1])[:NUMBERS]),
    )
    title = f"Add: layer 0, {p.last}"
    return Table(title, (Column("row"), *numbers(p.spec.d_model)), rows)
