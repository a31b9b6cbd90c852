"""The transformer on one page.

T tokens, S tokens seen (S = T unless earlier ones are cached), d width, L blocks, H heads, G
key-value heads, d_h head width, F feed-forward width, V vocabulary. Layers, heads and positions
count from 0.

Every value passes through one hook, which may note it (trace), change it (edit) or do nothing.
Vaswani et al. 2017, "Attention is all you need"; Radford et al. 2019 for the order of GPT-2.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.attention import attention
from gptscope.engine.cache import Cache
from gptscope.engine.norms import norm, normed
from gptscope.engine.ops import activation, cap, scaled
from gptscope.engine.products import against_rows, linear
from gptscope.engine.step import Hook, Step, untouched
from gptscope.model.weights import Block, Mlp, Model, rows

Array = NDArray[np.floating[Any]]


def forward(
    model: Model, ids: NDArray[np.int64], hook: Hook = untouched, cache: Cache | None = None
) -> Array:
    """Token ids [T] -> logits [T, V]."""
    return unembed(model, residual_stream(model, ids, hook, cache), hook)


def residual_stream(
    model: Model,
    ids: NDArray[np.int64],
    hook: Hook = untouched,
    cache: Cache | None = None,
    n_layers: int | None = None,
) -> Array:
    """Token ids [T] -> what the last block, or the first `n_layers` blocks, leave [T, d]."""
    at = np.arange(len(ids)) + (cache.length if cache else 0)
    x = embed(model, ids, at, hook)  # [T] -> [T, d]
    for layer in range(len(model.blocks) if n_layers is None else n_layers):
        x = block(x, model.blocks[layer], Step(model.spec, layer, at, hook, cache))
    model.watch(x)
    if cache:
        cache.advance(len(ids))
    return x


def embed(
    model: Model, ids: NDArray[np.int64], at: NDArray[np.int64], hook: Hook = untouched
) -> Array:
    """Token ids [T] and their positions -> where the residual stream begins [T, d]."""
    x = rows(model.token_table, ids, model.dtype)  # [T] -> [T, d]
    if model.project_in is not None:
        x = linear(x, model.project_in.stored, model.project_in.bias)
    x = hook("token_embeddings", scaled(x, model.spec.embed_scale))
    if model.position_table is not None:
        x = x + hook("position_embeddings", rows(model.position_table, at, model.dtype))
    if model.embed_norm is not None:
        x = norm("embed_norm", x, model.embed_norm, model.spec, hook)
    return hook("embeddings", x)


def unembed(model: Model, x: Array, hook: Hook = untouched) -> Array:
    """Residual stream [T, d] -> logits [T, V]."""
    spec = model.spec
    if model.ln_final is not None:
        x = norm("ln_final", x, model.ln_final, spec, hook)
    if model.project_out is not None:
        x = linear(x, model.project_out.stored, model.project_out.bias)
    logits = scaled(against_rows(x, model.output_table), spec.logit_scale)
    if model.output_bias is not None:
        logits += model.output_bias
    if spec.logit_cap is not None:
        logits = cap(hook("logits_before_cap", logits), spec.logit_cap)
    model.watch(logits)
    return hook("logits", logits)


def block(x: Array, w: Block, step: Step) -> Array:
    """Residual stream [T, d] -> [T, d]: the parts of a block, joined as its family joins them."""
    return step.hook("output", WIRINGS[step.spec.wiring](step.hook("input", x), w, step))


def pre_norm(x: Array, w: Block, step: Step) -> Array:
    """Norm before each part: GPT-2, where Vaswani et al. 2017 have it after; Gemma 2 has both."""
    added = attention(normed("ln1", x, w.ln1, step), w.attention, step)
    x = step.hook("resid_after_attn", x + normed("ln1_post", added, w.ln1_post, step))
    added = mlp(normed("ln2", x, w.ln2, step), w.mlp, step)
    return x + normed("ln2_post", added, w.ln2_post, step)


def post_norm(x: Array, w: Block, step: Step) -> Array:
    """Norm after each sum, LN(x + Sublayer(x)): Vaswani et al. 2017, section 3.1."""
    x = normed("ln1", x + attention(x, w.attention, step), w.ln1, step)
    x = step.hook("resid_after_attn", x)
    return normed("ln2", x + mlp(x, w.mlp, step), w.ln2, step)


def norm_of_parts(x: Array, w: Block, step: Step) -> Array:
    """Norm after each part and before its sum, x + LN(Sublayer(x)): OLMo 2 (2024), section 3.3."""
    x = x + normed("ln1", attention(x, w.attention, step), w.ln1, step)
    x = step.hook("resid_after_attn", x)
    return x + normed("ln2", mlp(x, w.mlp, step), w.ln2, step)


def parallel(x: Array, w: Block, step: Step) -> Array:
    """Both parts read the same stream, some even the same norm: GPT-J (Wang and Komatsuzaki 2021).

    Black et al. 2022, "GPT-NeoX-20B", section 2.1, with a norm for each.
    """
    first = normed("ln1", x, w.ln1, step)
    added = attention(first, w.attention, step)
    second = first if w.ln2 is None else normed("ln2", x, w.ln2, step)
    return x + added + mlp(second, w.mlp, step)


def norm_in_stream(x: Array, w: Block, step: Step) -> Array:
    """Each sum starts from what the norm gave: BLOOM's apply_residual_connection_post_layernorm."""
    first = normed("ln1", x, w.ln1, step)
    x = step.hook("resid_after_attn", first + attention(first, w.attention, step))
    second = normed("ln2", x, w.ln2, step)
    return second + mlp(second, w.mlp, step)


def mlp(x: Array, w: Mlp, step: Step) -> Array:
    """act(x U + b) D + c. Vaswani et al. 2017, section 3.3.

    With a gate, (act(x G) * (x U)) D: Shazeer 2020, "GLU Variants Improve Transformer", section 2.
    """
    hook, act = step.hook, activation(step.spec.activation)
    if w.gate is None:
        hidden_units = hook("mlp_hidden", linear(x, w.up.stored, w.up.bias))  # [T, d] -> [T, F]
        active = act(hidden_units)
    else:
        gate = hook("mlp_gate", linear(x, w.gate.stored, w.gate.bias))  # [T, d] -> [T, F]
        active = act(gate) * hook("mlp_up", linear(x, w.up.stored, w.up.bias))
    added = linear(hook("mlp_act", active), w.down.stored, w.down.bias)  # [T, F] -> [T, d]
    return hook("mlp_out", scaled(added, step.spec.residual_scale))


WIRINGS: Mapping[str, Callable[[Array, Block, Step], Array]] = {
    "pre_norm": pre_norm,
    "post_norm": post_norm,
    "norm_of_parts": norm_of_parts,
    "parallel": parallel,
    "norm_in_stream": norm_in_stream,
}
