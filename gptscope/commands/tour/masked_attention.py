"""Card 5: tokens read from each other."""

from __future__ import annotations

import math

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

BIASES = " There, queries, keys, values and output have no biases; here they have."


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
        )
        + (BIASES if p.model.blocks[0].attention.q.bias is not None else ""),
        shapes=f"q, k, v {shape}; weights [H, T, T] = [{s.n_heads}, {t}, {t}]",
        formula=formula(p),
        python=in_python(p),
        values=(grid(p),),
    )


def formula(p: Pass) -> str:
    """With the scale, the mask and the bias that this model has."""
    w = p.model.blocks[0].attention
    scale = " / sqrt(d_h)" if usual_scale(p) else f" * {w.scale:g}"
    mask = " + mask" if p.spec.causal else ""
    bias = "" if w.out.bias is None else " + b"
    return f"weights = softmax(q k'{scale}{mask}); head = weights v; out = heads W_o{bias}"


def usual_scale(p: Pass) -> bool:
    """Whether scores are divided by the root of the head's width."""
    return math.isclose(p.model.blocks[0].attention.scale, p.spec.d_head**-0.5)


def in_python(p: Pass) -> str:
    """The lesson's function where it fits, the softmax alone where mask or scale differ."""
    head = "trace.layers[0].heads[0]"
    if p.spec.causal and usual_scale(p):
        return f"gptscope.causal_attention({head}.q, {head}.k, {head}.v)[0]"
    return f"gptscope.softmax({head}.scaled_masked)"


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
