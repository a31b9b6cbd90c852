"""Card 4: what parts give is added, and lists are normalised."""

from __future__ import annotations

from gptscope.commands.tour.card import NUMBERS, Card, Walk, numbers
from gptscope.commands.tour.norm import in_and_out, in_python, since, way
from gptscope.view import Column, Table

WHEN = {
    "pre_norm": (
        "before each part reads it; what the part gives is added to the list as it was",
        "There, the norm comes after the sum, LN(x + Part(x)); here before the part, as in GPT-2.",
        "x + Part(Norm(x))",
    ),
    "parallel": (
        "before the parts read it; what both parts give is added to the list as it was",
        (
            "There, one part follows the other, each with a norm after its sum, LN(x + Part(x)). "
            "Here attention and feed forward stand side by side (GPT-J, 2021)."
        ),
        "x + Attention(Norm(x)) + FeedForward(Norm(x))",
    ),
    "norm_of_parts": (
        "after each part; what the norm makes of what the part gives is added to the list",
        (
            "There, the norm comes after the sum, LN(x + Part(x)); GPT-2 norms before the part, "
            "x + Part(LN(x)); here it stands after the part and before the sum (OLMo 2, 2024)."
        ),
        "x + Norm(Part(x))",
    ),
    "norm_in_stream": (
        "before each part; what the part gives is added to the list as the norm made it",
        (
            "There, the norm comes after the sum, LN(x + Part(x)); GPT-2 adds to the list as it "
            "was, x + Part(LN(x)). Here the sum starts from what the norm gives."
        ),
        "Norm(x) + Part(Norm(x))",
    ),
    "post_norm": (
        "after what a part gives has been added to it",
        "The same there. GPT-2 norms before each part, x + Part(LN(x)), and once at the end.",
        "Norm(x + Part(x))",
    ),
}
INPUT = "trace.layers[0].input"
SANDWICH = (
    "before each part reads it, and once more what the part gives, before it is added",
    (
        "There, the norm comes after the sum, LN(x + Part(x)); GPT-2 has it before the part alone. "
        "Here each part has one before and one after (Gemma 2, 2024)."
    ),
    "x + Norm_post(Part(Norm(x)))",
)
READ = {
    "post_norm": "(trace.layers[0].input + trace.layers[0].attn_out)",
    "norm_of_parts": "trace.layers[0].attn_out",
}
ADDS = {
    "input": "the list as it was",
    "attn_out": "attention adds",
    "mlp_out": "feed forward adds",
    "ln1_post.out": "attention, normed, adds",
}
NORMED = {"norm_in_stream": "the list, normed", "norm_of_parts": "attention, normed, adds"}


def card(p: Walk) -> Card:
    """The first sum and the first norm of the first block."""
    s, first = p.spec, p.model.blocks[0].ln1
    sandwich = p.model.blocks[0].ln1_post is not None
    when, paper, formula = SANDWICH if sandwich else WHEN[s.wiring]
    done, math = way(p, first)
    return Card(
        title="Add and norm",
        what=f"Each list of {s.d_model} numbers {done}, {when}.",
        paper=paper + since(p),
        shapes=f"[T, d] = [{p.n_tokens}, {s.d_model}] -> the same",
        formula=f"{formula}; {math}",
        python=in_python(p, READ.get(s.wiring, INPUT), "model.blocks[0].ln1", first),
        values=(added(p), in_and_out(p, "layers.0.ln1")),
    )


def added(p: Walk) -> Table:
    """What is added to the last token's list."""
    from gptscope.analysis.lengths import sums

    parts = next(iter(sums(p.trace, 0).values()))  # of the first sum in the block
    words = {"ln1.out": NORMED.get(p.spec.wiring, "")} | ADDS
    lists = {words[name.removeprefix("layers.0.")]: p.trace[name][-1] for name in parts}
    rows = [(name, *values[:NUMBERS]) for name, values in lists.items()]
    rows.append(("sum", *sum(lists.values())[:NUMBERS]))
    title = f"Add: layer 0, {p.last}"
    return Table(title, (Column("row"), *numbers(p.spec.d_model)), rows)
