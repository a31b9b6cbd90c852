"""Card 2: every id picks its row of the token table."""

from __future__ import annotations

from gptscope.commands.tour.card import NUMBERS, Card, Pass, numbers


def card(p: Pass) -> Card:
    """A list of numbers for each token."""
    s, t = p.spec, p.n_tokens
    again = (
        "As there, the same table serves once more at the end (linear)."
        if p.model.tied
        else "There, the same table serves once more at the end; this model has another (linear)."
    )
    return Card(
        title="Embedding",
        what=(
            f"Every id picks its row of a learned table: a list of {s.d_model} numbers, the same "
            "wherever the token stands."
        ),
        paper=f"There, the row is multiplied by sqrt(d); here it is taken as it is. {again}",
        shapes=f"table [V, d] = [{s.n_vocab:,}, {s.d_model}]; rows [T, d] = [{t}, {s.d_model}]",
        formula="x_t = E[id_t]",
        python="model.token_table[ids]",
        values=(p.table(numbers(s.d_model), (row[:NUMBERS] for row in p.trace.token_embeddings)),),
    )
