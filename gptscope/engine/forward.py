"""The transformer on one page.

T tokens, S tokens seen (S = T unless earlier ones are cached), d width, L blocks, H heads, d_h head
width, F feed-forward width, V vocabulary. Layers, heads and positions count from 0.

Every value passes through one hook, which may note it (trace), change it (edit) or do nothing.
Vaswani et al. 2017, "Attention is all you need"; Radford et al. 2019 for the order of GPT-2.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.cache import Cache
from gptscope.engine.ops import (
    activation,
    join_heads,
    linear,
    mask_scores,
    softmax,
    split_heads,
    turn,
)
from gptscope.model.dtypes import widen
from gptscope.model.spec import Spec
from gptscope.model.weights import Attention, Block, Mlp, Model, Norm

Array = NDArray[np.floating[Any]]


class Hook(Protocol):
    """Sees every value by the key of its hook point, and says what goes on in its place."""

    def __call__(self, key: str, value: Array, layer: int | None = None) -> Array: ...  # noqa: D102


def untouched(key: str, value: Array, layer: int | None = None) -> Array:  # noqa: ARG001
    """The hook that does nothing."""
    return value


@dataclass(frozen=True, eq=False)
class Step:
    """Where a pass stands: in which layer, at which positions, and who is listening."""

    spec: Spec
    layer: int
    at: NDArray[np.int64]  # [T], the positions
    mask: NDArray[np.bool_]  # [T, S], true where the future is
    listener: Hook
    cache: Cache | None

    def hook(self, key: str, value: Array) -> Array:
        """The value as the listener leaves it."""
        return self.listener(key, value, self.layer)


def forward(
    model: Model, ids: NDArray[np.int64], hook: Hook = untouched, cache: Cache | None = None
) -> Array:
    """Token ids [T] -> logits [T, V]."""
    return unembed(model, residual_stream(model, ids, hook, cache), hook)


def residual_stream(
    model: Model, ids: NDArray[np.int64], hook: Hook = untouched, cache: Cache | None = None
) -> Array:
    """Token ids [T] -> what the last block leaves [T, d]."""
    at = np.arange(len(ids)) + (cache.length if cache else 0)
    mask = (np.arange(at[-1] + 1) > at[:, None]) & model.spec.causal  # [T] -> [T, S]
    x = hook("token_embeddings", widen(model.token_table[ids], model.dtype))  # [T] -> [T, d]
    if model.position_table is not None:
        x = x + hook("position_embeddings", widen(model.position_table[at], model.dtype))
    x = hook("embeddings", x)
    for layer, weights in enumerate(model.blocks):
        x = block(x, weights, Step(model.spec, layer, at, mask, hook, cache))
    if cache:
        cache.advance(len(ids))
    return x


def unembed(model: Model, x: Array, hook: Hook = untouched) -> Array:
    """Residual stream [T, d] -> logits [T, V]."""
    if model.ln_final is not None:
        note = _under("ln_final", hook)
        x = NORMS[model.spec.norm](x, model.ln_final, model.spec.norm_eps, note)
    return hook("logits", x @ widen(model.unembedding, model.dtype))  # [T, d] -> [T, V]


def block(x: Array, w: Block, step: Step) -> Array:
    """Residual stream [T, d] -> [T, d]: the parts of a block, joined as its family joins them."""
    return step.hook("output", WIRINGS[step.spec.wiring](step.hook("input", x), w, step))


def pre_norm(x: Array, w: Block, step: Step) -> Array:
    """Norm before each part: GPT-2, where Vaswani et al. 2017 have it after."""
    x = step.hook("resid_after_attn", x + attention(norm("ln1", x, w.ln1, step), w.attention, step))
    return x + mlp(norm("ln2", x, w.ln2, step), w.mlp, step)


def post_norm(x: Array, w: Block, step: Step) -> Array:
    """Norm after each sum, LN(x + Sublayer(x)): Vaswani et al. 2017, section 3.1."""
    x = norm("ln1", x + attention(x, w.attention, step), w.ln1, step)
    x = step.hook("resid_after_attn", x)
    return norm("ln2", x + mlp(x, w.mlp, step), w.ln2, step)


def attention(x: Array, w: Attention, step: Step) -> Array:
    """softmax(q k' / sqrt(d_h)) v in every head; heads side by side; one output matrix.

    Vaswani et al. 2017, section 3.2.
    """
    hook, d_head = step.hook, step.spec.d_head
    q, k, v = (
        split_heads(linear(x, part.weight, part.bias), d_head)  # [T, d] -> [H, T, d_h]
        for part in (w.q, w.k, w.v)
    )
    if w.turning is not None:
        q = turn(hook("q_before_rope", q), step.at, w.turning)
        k = turn(hook("k_before_rope", k), step.at, w.turning)
    q, k, v = hook("q", q), hook("k", k), hook("v", v)
    if step.cache:
        k, v = step.cache.extend(step.layer, k, v)  # [H, T, d_h] -> [H, S, d_h]
    scores = hook("scores", q @ k.mT)  # [H, T, d_h] -> [H, T, S]
    weights = hook(
        "weights", softmax(hook("scaled_masked", mask_scores(scores, step.mask, w.scale)))
    )
    mixed = hook("out", weights @ v)  # [H, T, S] -> [H, T, d_h]
    joined = hook("attn_concat", join_heads(mixed))  # [H, T, d_h] -> [T, H*d_h]
    return hook("attn_out", linear(joined, w.out.weight, w.out.bias))  # [T, H*d_h] -> [T, d]


def mlp(x: Array, w: Mlp, step: Step) -> Array:
    """act(x U + b) D + c. Vaswani et al. 2017, section 3.3."""
    hidden = step.hook("mlp_hidden", linear(x, w.up.weight, w.up.bias))  # [T, d] -> [T, F]
    active = step.hook("mlp_act", activation(step.spec.activation)(hidden))
    return step.hook("mlp_out", linear(active, w.down.weight, w.down.bias))  # [T, F] -> [T, d]


def norm(name: str, x: Array, w: Norm, step: Step) -> Array:
    """The norm of this family, each of its values noted under the norm's name."""
    note = _under(name, step.hook)
    return NORMS[step.spec.norm](x, w, step.spec.norm_eps, note)


def layer_norm(x: Array, w: Norm, eps: float, note: Callable[[str, Array], Array]) -> Array:
    """(x - mean) / sqrt(variance + eps) * gain + shift. Ba, Kiros and Hinton 2016."""
    mean = note("mean", x.mean(axis=-1))  # [T, d] -> [T]
    centred = x - mean[:, None]
    variance = note("variance", np.vecdot(centred, centred) / x.shape[-1])  # [T, d] -> [T]
    centred /= np.sqrt(variance + eps)[:, None]
    y = note("normalized", centred) * w.gain
    if w.shift is not None:
        y += w.shift
    return note("out", y)


def rms_norm(x: Array, w: Norm, eps: float, note: Callable[[str, Array], Array]) -> Array:
    """Each list over its root mean square: x / sqrt(mean(x^2) + eps) * gain.

    Zhang and Sennrich 2019, eq. 4.
    """
    mean_square = note("mean_square", np.vecdot(x, x) / x.shape[-1])  # [T, d] -> [T]
    normalized = note("normalized", x / np.sqrt(mean_square + eps)[:, None])
    return note("out", normalized * w.gain)


def _under(name: str, hook: Callable[[str, Array], Array]) -> Callable[[str, Array], Array]:
    return lambda key, value: hook(f"{name}.{key}", value)


NORMS: Mapping[str, Callable[[Array, Norm, float, Callable[[str, Array], Array]], Array]] = {
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
}
WIRINGS: Mapping[str, Callable[[Array, Block, Step], Array]] = {
    "pre_norm": pre_norm,
    "post_norm": post_norm,
}
