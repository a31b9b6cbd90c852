"""One small function for each formula, on arrays whose last axis is that of the formula."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.erf import erf
from gptscope.engine.rows import by_rows
from gptscope.errors import ModelError

Array = NDArray[np.floating[Any]]

SQRT_2_OVER_PI = (2 / np.pi) ** 0.5


@by_rows
def softmax(x: Array) -> Array:
    """exp(x) / sum(exp(x)) over the last axis; -inf becomes exactly 0. Vaswani et al. 2017, eq. 1.

    The largest is subtracted first, which changes nothing but keeps exp from overflowing.
    """
    y: Array = x - x.max(axis=-1, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)
    return y


def scaled(x: Array, scale: float) -> Array:
    """The same times a number of the config, which mostly is 1."""
    return x if scale == 1 else x * scale


@by_rows
def cap(x: Array, limit: float) -> Array:
    """Soft cap: limit * tanh(x / limit). Gemma Team 2024, "Gemma 2", section 2."""
    return capped(x, limit)


def capped(x: Array, limit: float) -> Array:
    """The soft cap in one piece: a thread that waits for others must not take the last of them."""
    y: Array = x / limit
    np.tanh(y, out=y)
    y *= limit
    return y


@by_rows
def mask_scores(
    scores: Array,
    mask: NDArray[np.bool_],
    scale: float,
    limit: float | None = None,
    bias: Array | None = None,
) -> Array:
    """Scores * scale, capped, plus the bias where there are any; -inf where hidden: [H, T, S].

    Vaswani et al. 2017, section 3.2.3.
    """
    y = scores * scale
    if limit is not None:
        y = capped(y, limit)
    if bias is not None:
        y += bias
    np.copyto(y, -np.inf, where=mask)
    return y


def distances(at: NDArray[np.int64], slopes: Sequence[float], dtype: np.dtype[Any]) -> Array:
    """ALiBi's bias of each head, -slope * (i - j) from token i back to j: [H, T, S].

    Press, Smith and Lewis 2022, "Train Short, Test Long", section 3.
    """
    back = np.arange(at[-1] + 1) - at[:, None]  # [T] -> [T, S]
    bias: Array = np.multiply.outer(np.asarray(slopes), back).astype(dtype)
    return bias


def hidden(at: NDArray[np.int64], window: int | None, *, causal: bool) -> NDArray[np.bool_]:
    """Which tokens each token does not see: later ones, and those outside its window: [T, S].

    Vaswani et al. 2017, section 3.2.3; Beltagy et al. 2020, "Longformer", section 3.1.
    """
    other = np.arange(at[-1] + 1)
    mask: NDArray[np.bool_] = (other > at[:, None]) & causal  # [T] -> [T, S]
    if window is not None:
        mask |= other <= at[:, None] - window
    return mask


def turn(x: Array, at: NDArray[np.int64], speeds: Sequence[float], factor: float = 1.0) -> Array:
    """Every pair (i, i + P) of each row turned by position * speed i: [..., T, d_h], P speeds.

    (a, b) -> (a cos - b sin, a sin + b cos), both times the factor; what stands after 2 P is left
    alone. Su et al. 2021, "RoFormer", section 3.2.2, which pairs 2i with 2i + 1; halves as in
    Llama. The factor: Peng et al. 2023, "YaRN", section 3.4.
    """
    n = len(speeds)
    angles = np.multiply.outer(at, np.asarray(speeds))  # [T, P], float64 as large angles need it
    cos = (np.cos(angles) * factor).astype(x.dtype)
    sin = (np.sin(angles) * factor).astype(x.dtype)
    a, b = x[..., :n], x[..., n : 2 * n]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos, x[..., 2 * n :]], axis=-1)


def split_heads(x: Array, d_head: int) -> Array:
    """[T, H*d_h] -> [H, T, d_h]."""
    return x.reshape(len(x), -1, d_head).swapaxes(0, 1)


def join_heads(x: Array) -> Array:
    """[H, T, d_h] -> [T, H*d_h]."""
    return x.swapaxes(0, 1).reshape(x.shape[1], -1)


@by_rows
def gelu(x: Array) -> Array:
    """The exact GELU, x Phi(x). Hendrycks and Gimpel 2016."""
    return (0.5 * x * (1 + erf(x * 0.5**0.5))).astype(x.dtype)


@by_rows
def gelu_tanh(x: Array, slope: float = SQRT_2_OVER_PI) -> Array:
    """0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), GPT-2's form. Hendrycks and Gimpel 2016."""
    y = x * x
    y *= 0.044715 * slope
    y += slope
    y *= x
    np.tanh(y, out=y)
    y += 1
    y *= x
    y *= 0.5
    return y


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)), by tanh, which cannot overflow."""
    y: Array = 0.5 * (1 + np.tanh(0.5 * x))
    return y


@by_rows
def silu(x: Array, slope: float = 1.0) -> Array:
    """The SiLU, x sigmoid(slope x). Ramachandran et al. 2017."""
    return x * sigmoid(slope * x)


def softplus(x: Array) -> Array:
    """log(1 + exp(x)), which cannot overflow."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def relu(x: Array) -> Array:
    """max(x, 0)."""
    return np.maximum(x, 0)


# The names are those of `activation_function` in published configs.
ACTIVATIONS: Mapping[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_python": gelu,
    "gelu_new": gelu_tanh,
    "gelu_fast": partial(gelu_tanh, slope=0.7978845608),  # so rounded where the name comes from
    "gelu_bloom": partial(gelu_tanh, slope=0.79788456),  # as BLOOM's own code rounds it
    "gelu_accurate": gelu_tanh,
    "gelu_pytorch_tanh": gelu_tanh,
    "gelu_python_tanh": gelu_tanh,
    "gelu_10": lambda x: np.clip(gelu(x), -10, 10),
    "quick_gelu": partial(silu, slope=1.702),
    "relu": relu,
    "relu2": lambda x: relu(x) ** 2,
    "relu6": lambda x: np.clip(x, 0, 6),
    "leaky_relu": lambda x: np.where(x < 0, x * x.dtype.type(0.01), x),
    "silu": silu,
    "swish": silu,
    "mish": lambda x: x * np.tanh(softplus(x)),
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "linear": lambda x: x,
}


def activation(name: str) -> Callable[[Array], Array]:
    """The activation of this name.

    Raises:
        ModelError: no activation is called so.
    """
    if name not in ACTIVATIONS:
        known = ", ".join(sorted(ACTIVATIONS))
        raise ModelError(f"the activation {name!r} is not one of: {known}")
    return ACTIVATIONS[name]
