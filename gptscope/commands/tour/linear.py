"""Card 9: a score for every token of the vocabulary."""

from __future__ import annotations

from gptscope.commands.session import token_text
from gptscope.commands.tour.card import TOP, Card, Pass
from gptscope.view import Column, Table

COLUMNS = (Column("id", "id"), Column("token", "token"), Column("logit", "signed"))


def card(p: Pass) -> Card:
    """The highest logits after the last token."""
    s, t = p.spec, p.n_tokens
    table = (
        "the token table again, turned: what lies near a token's row scores it high"
        if p.model.tied
        else "a matrix of its own, not the token table (untied)"
    )
    stream = "trace.ln_final.out" if p.model.ln_final else "trace.layers[-1].output"
    return Card(
        title="Linear",
        what=(
            f"The last list is multiplied with a list for each of the {s.n_vocab:,} tokens: "
            f"{table}. The dot products are the logits, a score for every next token."
        ),
        paper=(
            "The same there: the output shares its matrix with the embedding."
            if p.model.tied
            else "There, the output shares its matrix with the embedding; here it does not."
        ),
        shapes=f"[T, d] x [d, V] = [{t}, {s.d_model}] x [{s.d_model}, {s.n_vocab:,}] -> [T, V]",
        formula="z = x E'" if p.model.tied else "z = x U",
        python=f"{stream}[-1] @ model.unembedding",
        values=(highest(p),),
    )


def highest(p: Pass) -> Table:
    """The best few."""
    from gptscope.engine.sampling import ranked

    logits = p.trace.logits[-1]
    ids = ranked(logits, TOP).tolist()
    rows = [(i, token_text(p.model, i), logits[i]) for i in ids]
    return Table(f"The highest logits after {p.last}", COLUMNS, rows)
