"""Card 5: tokens read from each other."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gptscope.commands.tour.card import TOKENS, Card, Walk
from gptscope.view import Grid

if TYPE_CHECKING:
    from gptscope.model.spec import Spec

MASKED = (
    "in every head each token asks (query), and every token offers a key; where they match it "
    "reads the value. What comes later is hidden, so that the next token cannot be looked up."
)
UNMASKED = (
    "in every head each token asks (query), and every token offers a key; where they match it "
    "reads the value. This model has no mask: a token also reads from what comes after it."
)

BIASES = " There, queries, keys, values and output have no biases; here they have."
SOME_BIASES = " There, queries, keys and values have no biases; here they have."
NORMED = "Here queries and keys are normed before their product (Henry et al. 2020)."


def card(p: Walk) -> Card:
    """The weights of one head."""
    s, t = p.spec, p.n_tokens
    shape = f"q, k, v [H, T, d_h] = [{s.n_heads}, {t}, {s.d_head}]"
    if s.n_kv_heads != s.n_heads:
        shape = f"q [H, T, d_h] = [{s.n_heads}, {t}, {s.d_head}]; k, v [G, T, d_h] = "
        shape += f"[{s.n_kv_heads}, {t}, {s.d_head}]"
    return Card(
        title="Masked attention" if s.causal else "Attention, without a mask",
        what=f"Tokens read from each other: {MASKED if s.causal else UNMASKED}",
        paper=(
            "The same in the paper's decoder, which also reads from the encoder; a GPT has none."
            if s.causal
            else "The paper's encoder reads so; its decoder, and every GPT, hides what comes later."
        )
        + biases(p)
        + "".join(f" {text}" for text in news(p)),
        shapes=f"{shape}; weights [H, T, T] = [{s.n_heads}, {t}, {t}]",
        formula=formula(p),
        python=in_python(p),
        values=(grid(p),),
    )


def formula(p: Walk) -> str:
    """With the scale, the mask and the bias that this model has."""
    w, cap = p.model.blocks[0].attention, p.spec.score_cap
    scores = "q k' / sqrt(d_h)" if usual_scale(p) else f"q k' * {w.scale:g}"
    scores = scores if cap is None else f"{cap:g} tanh({scores} / {cap:g})"
    scores += "" if w.slopes is None else " - slope (t - s)"
    mask = " + mask" if p.spec.causal else ""
    times = "" if p.spec.residual_scale == 1 else f" * {p.spec.residual_scale:g}"
    bias = "" if w.out.bias is None else " + b"
    out = f"(heads W_o{bias}){times}" if bias and times else f"heads W_o{bias}{times}"
    return f"weights = softmax({scores}{mask}); head = weights v; out = {out}"


def biases(p: Walk) -> str:
    """Which matrices have one here, and have none in the paper."""
    w = p.model.blocks[0].attention
    if w.q.bias is None:
        return ""
    return BIASES if w.out.bias is not None else SOME_BIASES


def news(p: Walk) -> list[str]:
    """What came after the paper, and is here."""
    s, w = p.spec, p.model.blocks[0].attention
    said = {
        NORMED: w.q_norm is not None or w.k_norm is not None,
        f"Scores are capped softly at {s.score_cap or 0:g} (Gemma 2, 2024).": s.score_cap
        is not None,
    }
    return [*sharing(s), *windows(p), *(text for text, so in said.items() if so)]


def sharing(s: Spec) -> list[str]:
    """How many heads share their keys and values."""
    if s.n_kv_heads == s.n_heads:
        return []
    each, who = s.n_heads // s.n_kv_heads, "Ainslie et al. 2023"
    heads = f"{each} heads in a row"
    if s.n_kv_heads == 1:
        heads, who = f"all {each}", "Shazeer 2019"
    own = "There, every head has keys and values of its own"
    return [f"{own}; here {heads} share one pair of them ({who})."]


def windows(p: Walk) -> list[str]:
    """Which layers see only the last tokens."""
    from gptscope.analysis.info import ranges
    from gptscope.model.blocks import outlines

    found: dict[int, list[int]] = {}
    for layer, block in enumerate(outlines(p.model.blocks)):
        if block.attention.window is not None and block.attention.window < p.spec.n_ctx:
            found.setdefault(block.attention.window, []).append(layer)
    return [
        f"There, a token sees all before it; here, in layer{'s' * (len(at) > 1)} {ranges(at)}, "
        f"itself and the {n - 1:,} before it alone (Beltagy et al. 2020)."
        for n, at in found.items()
    ]


def usual_scale(p: Walk) -> bool:
    """Whether scores are divided by the root of the head's width."""
    return math.isclose(p.model.blocks[0].attention.scale, p.spec.d_head**-0.5)


def in_python(p: Walk) -> str:
    """The lesson's function where it fits, the softmax alone where mask or scale differ."""
    head = "trace.layers[0].heads[0]"
    w = p.model.blocks[0].attention
    changed = (w.slopes, w.window, p.spec.score_cap)
    if p.spec.causal and usual_scale(p) and not any(changed):
        return f"gptscope.causal_attention({head}.q, {head}.k, {head}.v)[0]"
    return f"gptscope.softmax({head}.scaled_masked)"


def grid(p: Walk) -> Grid:
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
