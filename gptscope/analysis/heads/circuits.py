"""What a head reads and writes by its weights alone, with the gains of the norms on the way.

Rows are lists, as in the engine: a head turns what it reads, x, into x V O, and looks from x to y
by x Q K' y'. Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section
"Splitting Attention Head terms into Circuits".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.wiring import SOURCES

if TYPE_CHECKING:
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Block, Norm

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Heads:
    """The matrices of a layer's heads, float64; heads of a group share keys and values."""

    q: Array  # [H, d, d_h]
    k: Array  # [H, d, d_h]
    v: Array  # [H, d, d_h]
    out: Array  # [H, d_h, d]


def heads(block: Block, spec: Spec) -> Heads:
    """The matrices of a block's heads, the norm before and after them folded in.

    A norm's gain multiplies; a LayerNorm also takes off the mean. Its scale, which depends on the
    token, is left out: it changes no direction. So are shifts and biases, rotary and other
    positions, norms of queries and keys, and norms that stand in the stream itself.
    """
    a = block.attention
    groups = np.arange(spec.n_heads) * spec.n_kv_heads // spec.n_heads
    before = block.ln1 if SOURCES[spec.wiring]["attention"] == ("ln1.out",) else None
    q, k, v = (
        after_norm(split(part.weight, spec.d_head), before, spec) for part in (a.q, a.k, a.v)
    )
    out: Array = a.out.weight.astype(np.float64).reshape(spec.n_heads, spec.d_head, -1)
    after = block.ln1 if SOURCES[spec.wiring]["ln1"] == ("attn_out",) else block.ln1_post
    if after is not None:
        out = centred(out, spec) * after.gain
    return Heads(q, k[groups], v[groups], out * spec.residual_scale)


def split(weight: Array, d_head: int) -> Array:
    """Heads side by side, one after the other: [d, n*d_h] -> [n, d, d_h] in float64."""
    return weight.astype(np.float64).reshape(len(weight), -1, d_head).swapaxes(0, 1)


def after_norm(matrix: Array, norm: Norm | None, spec: Spec) -> Array:
    """A matrix [..., d, n] that reads what a norm gives, as one that reads what enters the norm."""
    if norm is None:
        return matrix
    return centred((matrix.mT * norm.gain), spec).mT


def centred(x: Array, spec: Spec) -> Array:
    """Each list without its mean, where the norms of this model take it off: [..., d]."""
    return x - x.mean(-1, keepdims=True) if spec.norm == "layer_norm" else x


def written(heads: Heads, spec: Spec) -> Array:
    """The output matrices without what no norm lets through: [H, d_h, d].

    Where every reader of the stream takes off the mean first, what a head adds to it is not there.
    """
    read_by_norms = SOURCES[spec.wiring]["attention"] == ("ln1.out",)
    return centred(heads.out, spec) if read_by_norms else heads.out
