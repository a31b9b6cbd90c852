"""What families choose otherwise, each as a change of a micro model."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from gptscope.model.positions import turning_speeds
from gptscope.model.weights import Block, Linear, Model, Norm, Turning


def changed(model: Model, **choices: Any) -> Model:
    """The model with other choices in its spec."""
    return replace(model, spec=replace(model.spec, **choices))


def in_blocks(model: Model, change: Callable[[Block], Block]) -> Model:
    """The model with every block changed."""
    return replace(model, blocks=tuple(change(block) for block in model.blocks))


def in_attention(model: Model, **choices: Any) -> Model:
    """The model with other choices in all its attention."""
    attention = (replace(b.attention, **choices) for b in model.blocks)
    pairs = zip(model.blocks, attention, strict=True)
    return replace(model, blocks=tuple(replace(b, attention=a) for b, a in pairs))


def drawn(model: Model, *shape: int, mean: float = 0.0) -> np.ndarray:
    """More numbers for a model; the same for the same model and shape."""
    rng = np.random.default_rng([model.spec.d_model, model.spec.n_vocab, *shape])
    return rng.normal(mean, 0.3, shape).astype(model.dtype)


def more_norm(model: Model, d: int) -> Norm:
    """One more norm, of the model's own kind."""
    shifted = model.spec.norm == "layer_norm" and model.blocks[0].ln1.shift is not None
    return Norm(drawn(model, d, mean=1), drawn(model, d) if shifted else None)


def rms_norm(model: Model) -> Model:
    """The same weights without shifts in the norms, which divide by the root mean square."""

    def bare(norm: Norm | None) -> Norm | None:
        return norm and Norm(norm.gain, None)

    def block(b: Block) -> Block:
        names = ("ln1", "ln2", "ln1_post", "ln2_post")
        a = replace(b.attention, q_norm=bare(b.attention.q_norm), k_norm=bare(b.attention.k_norm))
        return replace(b, attention=a, **{name: bare(getattr(b, name)) for name in names})

    model = replace(model, ln_final=bare(model.ln_final), embed_norm=bare(model.embed_norm))
    return in_blocks(changed(model, norm="rms_norm"), block)


def rotary(model: Model, share: float = 1.0) -> Model:
    """The same weights without a table of positions; queries and keys turn, in whole pairs."""
    turning = Turning(turning_speeds(int(model.spec.d_head * share) // 2 * 2))
    model = replace(changed(model, positions="rotary"), position_table=None)
    return in_attention(model, turning=turning, slopes=None)


def alibi(model: Model) -> Model:
    """The same weights without a table of positions; scores fall with the distance."""
    slopes = tuple(2.0 ** -(h + 1) for h in range(model.spec.n_heads))
    model = replace(changed(model, positions="alibi"), position_table=None)
    return in_attention(model, slopes=slopes, turning=None)


def shared_keys(model: Model) -> Model:
    """The same weights, all heads with the keys and values of the first one or two."""
    groups = 2 if model.spec.n_heads % 2 == 0 else 1
    n = groups * model.spec.d_head

    def narrow(part: Linear) -> Linear:
        return Linear(part.weight[:, :n], None if part.bias is None else part.bias[:n])

    def block(b: Block) -> Block:
        a = b.attention
        return replace(b, attention=replace(a, k=narrow(a.k), v=narrow(a.v), k_norm=None))

    return in_blocks(changed(model, kv_heads=groups), block)


def gated(model: Model) -> Model:
    """The same weights, with gates before the hidden units."""
    gate = Linear(drawn(model, model.spec.d_model, model.spec.d_ff), None)
    return in_blocks(model, lambda b: replace(b, mlp=replace(b.mlp, gate=gate)))


def head_norms(model: Model) -> Model:
    """The same weights, with a norm of every head's queries and keys."""
    each = more_norm(model, model.spec.d_head)
    return in_attention(model, q_norm=each, k_norm=each)


def wide_norms(model: Model) -> Model:
    """The same weights, with a norm of all queries and one of all keys."""
    q, k = (
        more_norm(model, n * model.spec.d_head) for n in (model.spec.n_heads, model.spec.n_kv_heads)
    )
    return in_attention(model, q_norm=q, k_norm=k)


def windowed(model: Model) -> Model:
    """The same weights; each token sees itself and two before."""
    return in_attention(model, window=3)


def capped(model: Model) -> Model:
    """The same weights, with soft caps on scores and logits."""
    return changed(model, score_cap=2.0, logit_cap=3.0)


def scales(model: Model) -> Model:
    """The same weights, with a factor wherever a family has one."""
    return changed(model, embed_scale=1.5, residual_scale=0.5, logit_scale=0.25)


def normed_embeddings(model: Model) -> Model:
    """The same weights, with a norm of the embeddings."""
    return replace(model, embed_norm=more_norm(model, model.spec.d_model))


def projected(model: Model) -> Model:
    """Tables narrower than the stream, and a matrix on either side."""
    narrow, s = max(1, model.spec.d_model - 1), model.spec
    table = np.asarray(model.token_table)[:, :narrow]
    ends = (
        Linear(drawn(model, narrow, s.d_model), None),
        Linear(drawn(model, s.d_model, narrow), None),
    )
    model = replace(model, token_table=table, output_table=table)
    return replace(model, project_in=ends[0], project_out=ends[1])


def output_bias(model: Model) -> Model:
    """The same weights, and a bias for every logit."""
    return replace(model, output_bias=drawn(model, model.spec.n_vocab))


def post_norm(model: Model) -> Model:
    """The same weights, with the norms after each sum and none at the end."""
    return replace(changed(model, wiring="post_norm"), ln_final=None)


def sandwich(model: Model) -> Model:
    """The same weights, with a norm before and one after each part."""
    post = more_norm(model, model.spec.d_model)
    return in_blocks(model, lambda b: replace(b, ln1_post=post, ln2_post=post))


def one_norm(model: Model) -> Model:
    """Both parts side by side behind one norm."""
    return in_blocks(changed(model, wiring="parallel"), lambda b: replace(b, ln2=None))


WIRED: Mapping[str, Callable[[Model], Model]] = {
    "pre_norm": lambda model: model,
    "sandwich": sandwich,
    "post_norm": post_norm,
    "norm_of_parts": lambda model: changed(model, wiring="norm_of_parts"),
    "parallel": lambda model: changed(model, wiring="parallel"),
    "one_norm": one_norm,
    "norm_in_stream": lambda model: changed(model, wiring="norm_in_stream"),
}
CHANGES: Mapping[str, Callable[[Model], Model]] = {
    "rms_norm": rms_norm,
    "rotary": rotary,
    "partly_rotary": lambda model: rotary(model, 0.5),
    "alibi": alibi,
    "shared_keys": shared_keys,
    "gated": gated,
    "head_norms": head_norms,
    "windowed": windowed,
    "capped": capped,
    "scales": scales,
    "normed_embeddings": normed_embeddings,
    "projected": projected,
    "output_bias": output_bias,
}


def rich(model: Model) -> Model:
    """The same weights with every part that a family may have, wherever they go together."""
    for change in (sandwich, rotary, shared_keys, gated, head_norms, capped, normed_embeddings):
        model = change(model)
    return model
