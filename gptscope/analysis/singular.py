"""What the heads' matrices do alone: singular values of OV and QK, and how many of them matter.

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits": a head moves what it reads
through W_V W_O, and chooses where to read by W_Q W_K'.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gptscope.model.weights import Attention

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Circuits:
    """Singular values of the heads of a layer, the largest first: [H, min(d, d_h)] each."""

    ov: Array
    qk: Array


def circuits(attention: Attention, n_heads: int) -> Circuits:
    """The singular values of every head, in float64; heads of a group share keys and values."""
    out = by_head(attention.out.weight.T, n_heads)
    q = by_head(attention.q.weight, n_heads)
    d_head = q.shape[-1]
    groups = attention.k.weight.shape[1] // d_head
    shared = np.arange(n_heads) // (n_heads // groups)
    k, v = (by_head(part.weight, groups)[shared] for part in (attention.k, attention.v))
    return Circuits(singular_values(v, out), singular_values(q, k))


def by_head(weight: Array, n: int) -> Array:
    """Heads side by side, one after the other: [d, n*d_h] -> [n, d, d_h] in float64."""
    heads: Array = weight.astype(np.float64).reshape(len(weight), n, -1).swapaxes(0, 1)
    return heads


def singular_values(a: Array, b: Array) -> Array:
    """Those of a b', the largest first: [H, d, d_h] twice -> [H, min(d, d_h)].

    With a = Q R and b = P S they are those of the small R S': no [d, d] is made. NaN for a head
    that holds NaN or infinities.
    """
    good = np.isfinite([np.abs(x).max() + np.abs(y).max() for x, y in zip(a, b, strict=True)])
    r, s = (np.linalg.qr(np.where(good[:, None, None], x, 0.0))[1] for x in (a, b))
    values: Array = np.linalg.svd(r @ s.swapaxes(-1, -2), compute_uv=False)
    return np.where(good[:, None], values, np.nan)


def effective_rank(values: Array) -> Array:
    """exp(entropy of s / sum(s)), 1 to the number of them; 0 of zeros: [..., n] -> [...].

    Roy and Vetterli 2007, "The effective rank: a measure of effective dimensionality", section 2.
    """
    total = values.sum(-1, keepdims=True)
    shares = np.divide(values, total, out=np.zeros_like(values), where=total != 0)
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    rank: Array = np.where(total[..., 0] == 0, 0.0, np.exp(-(shares * logs).sum(-1)))
    return rank


def norm(values: Array) -> Array:
    """The Frobenius norm, the root of the sum of squared singular values: [..., n] -> [...]."""
    found: Array = np.sqrt((values * values).sum(-1))
    return found
