"""Card 11: one token comes out, and all begins again."""

from __future__ import annotations

from gptscope.commands.session import token_text
from gptscope.commands.tour.card import Card, Walk
from gptscope.view import Column, Note, Part, Table

AHEAD = 6
COLUMNS = (Column("step", "id"), Column("id", "id"), Column("token", "token"))


def card(p: Walk) -> Card:
    """The likeliest next tokens, one after the other."""
    t = p.n_tokens
    return Card(
        title="Output",
        what=(
            "One token is taken, the likeliest or one drawn by the chances, and is put at the end "
            f"of the text; with {t + 1} tokens all begins again. Here the likeliest is taken."
        ),
        paper="The same there, with a beam of several drafts; the decoder stops at its end token.",
        shapes=f"probabilities [V] = [{p.spec.n_vocab:,}] -> one id; T = {t} -> {t + 1}",
        formula="id_T = argmax p (greedy), or drawn with the chances p",
        python="int(trace.logits[-1].argmax())",
        values=(goes_on(p),),
    )


def goes_on(p: Walk) -> Part:
    """What the model would write, or why it cannot."""
    from gptscope.engine.generate import generate

    room = min(AHEAD, p.spec.n_ctx - p.n_tokens)
    if room < 1:
        words = (
            f"The text is as long as this model can read: {p.spec.n_ctx} tokens, no room for more"
        )
        return Note(words)
    made = generate(p.model, p.run.ids, room, temperature=0)
    rows = [(i, n, token_text(p.model, n)) for i, n in enumerate(made.ids, 1)]
    return Table("So it goes on", COLUMNS, rows)
