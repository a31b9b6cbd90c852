"""The lesson's own functions, on plain arrays: `import gptscope`, then line by line."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine import norms
from gptscope.engine.ops import mask_scores, softmax
from gptscope.model.weights import Norm

Array = NDArray[np.floating[Any]]


def causal_attention(Q: Array, K: Array, V: Array) -> tuple[Array, Array]:
    """softmax(Q K' / sqrt(d_h)) V where no row sees a later one: (weights [T, T], output [T, d_v]).

    Q and K are [T, d_h], V is [T, d_v]. Vaswani et al. 2017, eq. 1 and section 3.2.3.
    """
    Q, K, V = map(np.asarray, (Q, K, V))
    future = np.triu(np.ones((len(Q), len(K)), bool), 1)
    weights = softmax(mask_scores(Q @ K.T, future, Q.shape[-1] ** -0.5))
    return weights, weights @ V


def layer_norm(x: Array, gain: Array, bias: Array, eps: float = 1e-5) -> Array:
    """(x - mean) / sqrt(variance + eps) * gain + bias over the last axis: [..., d] -> [..., d].

    The variance is that of the population. Ba, Kiros and Hinton 2016.
    """
    x, gain, bias = map(np.asarray, (x, gain, bias))
    rows = x.reshape(-1, x.shape[-1])
    out = norms.layer_norm(rows, Norm(gain, bias), eps, norms.unnoted)
    return out.reshape(x.shape)
