"""Card 5: tokens read from each other."""

from __future__ import annotations

from gptscope.commands.tour.card import TOKENS, Card, Pass
from gptscope.view import Grid

MASKED = (
    "in every head each token asks (query), and every token offers a key; where they match it "
    "reads the value. What comes later is hidden, so that the next token cannot be looked up."
)
UNMASKED = (
    "in every head each token asks (query), and every token offers a key; where they match it "
    "reads the value. This model has no mask: a token also reads from what comes after it."
)


def card(p: Pass) -> Card:
    """The weights of one head."""
    s, t = p.spec, p.n_tokens
    shape = f"[H, T, d_h] = [{s.n_heads}, {t}, {s.d_head}]"
    return Card(
        title="Masked attention" if s.causal else "Attention, without a mask",
        what=f"Tokens read from each other: {MASKED if s.causal else UNMASKED}",
        paper=(
            "The same in the paper's decoder, which also reads from the encoder; a GPT has none."
            if s.causal
            else "The paper's encoder reads so; its decoder, and every GPT, hides what comes later."
        ),
        shapes=f"q, k, v {shape}; weights [H, T, T] = [{s.n_heads}, {t}, {t}]",
        formula="weights = softmax(q k' / sqrt(d_h)"
        + (" + mask); " if s.causal else "); ")
        + "head = weights v; out = heads W_o + b",
        python="trace.layers[0].heads[0].weights",
        values=(grid(p),),
    )


def grid(p: Pass) -> Grid:
    """Head 0 of layer 0: the first tokens reading from the first."""
    import numpy as np

    head, n = p.trace.layers[0].heads[0], len(p.shown)
    part = f", the first {TOKENS} of {p.n_tokens} tokens" if p.of_them else ""
    names = p.run.labels[:n]
    return Grid(
        f"Layer 0, head 0: a row reads from the columns{part}",
        names,
        names,
        head.weights[:n, :n],
        hidden=np.isneginf(head.scaled_masked[:n, :n]),
    )
