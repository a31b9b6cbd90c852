"""Attention: queries, keys and values, turned or biased by position, masked, softened, mixed."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.norms import NORMS, unnoted
from gptscope.engine.ops import (
    distances,
    hidden,
    join_heads,
    mask_scores,
    scaled,
    softmax,
    split_heads,
    turn,
)
from gptscope.engine.products import linear
from gptscope.engine.step import Step
from gptscope.model.spec import Spec
from gptscope.model.weights import Attention, Norm

Array = NDArray[np.floating[Any]]
MIXED_AT_ONCE = 1 << 24  # scores


def attention(x: Array, w: Attention, step: Step) -> Array:
    """softmax(q k' / sqrt(d_h)) v in every head; heads side by side; one output matrix.

    Vaswani et al. 2017, section 3.2. Queries of several heads may share keys and values: Ainslie et
    al. 2023, "GQA", section 2.2.
    """
    hook, d_head = step.hook, step.spec.d_head
    q, k, v = (
        split_heads(linear(x, part.stored, part.bias), d_head)  # [T, d] -> [H or G, T, d_h]
        for part in (w.q, w.k, w.v)
    )
    if w.q_norm is not None:
        q = head_norm(hook("q_before_norm", q), w.q_norm, step.spec)
    if w.k_norm is not None:
        k = head_norm(hook("k_before_norm", k), w.k_norm, step.spec)
    if w.turning is not None:
        speeds, factor = w.turning.speeds_at(int(step.at[-1]) + 1), w.turning.factor
        q = turn(hook("q_before_rope", q), step.at, speeds, factor)
        k = turn(hook("k_before_rope", k), step.at, speeds, factor)
    q, k, v = hook("q", q), hook("k", k), hook("v", v)
    if step.cache:
        k, v = step.cache.extend(step.layer, k, v)  # [G, T, d_h] -> [G, S, d_h]
    mixed = hook("out", (step.mixer or mix)(q, k, v, w, step))  # [H, T, d_h]
    joined = hook("attn_concat", join_heads(mixed))  # [H, T, d_h] -> [T, H*d_h]
    added = linear(joined, w.out.stored, w.out.bias)  # [T, H*d_h] -> [T, d]
    return hook("attn_out", scaled(added, step.spec.residual_scale))


def head_norm(x: Array, w: Norm, spec: Spec) -> Array:
    """The norm of each head's queries or keys [H, T, d_h]; in OLMo 2 of all heads at once.

    Henry et al. 2020, "Query-Key Normalization", section 3.
    """
    by_head = w.gain.shape[-1] == spec.d_head
    y = x if by_head else join_heads(x)  # [H, T, d_h] -> [T, H*d_h]
    y = NORMS[spec.norm](y, w, spec.norm_eps, unnoted)
    return y if by_head else split_heads(y, spec.d_head)


def mix(q: Array, k: Array, v: Array, w: Attention, step: Step) -> Array:
    """What each head reads: [H, T, d_h], [G, S, d_h] twice -> [H, T, d_h].

    Where nobody looks at the scores, a large square of them is never held whole.
    """
    n_rows, at = len(step.at), step.at
    if step.spec.causal and not step.wants("scores", "scaled_masked", "weights"):
        n_rows = max(1, MIXED_AT_ONCE // (len(q) * k.shape[1]))
    if n_rows >= len(at):
        return mix_rows(q, k, v, w, step)
    pieces = []
    for first in range(0, len(at), n_rows):
        part = slice(first, first + n_rows)
        seen = int(at[part][-1]) + 1
        rows = replace(step, at=at[part])
        pieces.append(mix_rows(q[:, part], k[:, :seen], v[:, :seen], w, rows))
    return np.concatenate(pieces, axis=1)


def mix_rows(q: Array, k: Array, v: Array, w: Attention, step: Step) -> Array:
    """Scores, masked and softened, times the values, for some of the tokens."""
    spec, hook = step.spec, step.hook
    mask = hidden(step.at, w.window, causal=spec.causal)  # [T] -> [T, S]
    bias = None if w.slopes is None else distances(step.at, w.slopes, q.dtype)
    scores = hook("scores", grouped(q, k.mT))  # [H, T, d_h] -> [H, T, S]
    masked = hook("scaled_masked", mask_scores(scores, mask, w.scale, spec.score_cap, bias))
    return grouped(hook("weights", softmax(masked)), v)  # [H, T, S] -> [H, T, d_h]


def grouped(x: Array, shared: Array) -> Array:
    """X [H, T, n] times what H / G heads in a row share [G, n, m]: [H, T, m]."""
    if len(x) == len(shared):
        return x @ shared
    by_group = x.reshape(len(shared), -1, *x.shape[1:])  # [H, T, n] -> [G, H/G, T, n]
    return (by_group @ shared[:, None]).reshape(len(x), x.shape[1], -1)
