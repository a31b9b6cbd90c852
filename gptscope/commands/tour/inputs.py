"""Card 1: the text becomes ids."""

from __future__ import annotations

from gptscope.commands.tour.card import Card, Walk
from gptscope.view import Column


def card(p: Walk) -> Card:
    """Pieces of text, each with its number in the vocabulary."""
    v, t = p.spec.n_vocab, p.n_tokens
    has_text = p.model.tokenizer is not None and p.run.text is not None
    return Card(
        title="Inputs",
        what=(
            f"The model reads numbers, not letters: the text is {t} pieces (tokens) that its "
            f"vocabulary of {v:,} has, and each has an id from 0 to {v - 1:,}."
            if has_text
            else f"{t} token ids were given, each from 0 to {v - 1:,}."
        ),
        paper=(
            "There, a second text goes in as well, the sentence to translate, through an encoder; "
            "a GPT has one text and goes on with it. There, both languages share their pieces "
            "(byte-pair encoding); GPT-2's begin from bytes, so that every text can be written."
        ),
        shapes=f"ids [T] = [{t}]",
        formula="text -> id_0, id_1, ... id_(T-1)",
        python="model.tokenizer.tokens(ids)" if has_text else "ids",
        values=(p.table((Column("id", "id"),), ((i,) for i in p.run.ids)),),
    )
