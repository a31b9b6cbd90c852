"""How strongly a head reads what an earlier one writes: Q-, K- and V-composition.

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", section "Virtual Attention
Heads and composition": the Frobenius norm of a product over the product of the norms. L layers,
H heads; pairs are [L, H, L, H], the earlier head first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.heads.circuits import heads, written
from gptscope.analysis.wiring import SOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from gptscope.analysis.heads.circuits import Heads
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]

WAYS = ("Q", "K", "V")


@dataclass(frozen=True, eq=False)
class Composition:
    """The composition scores of all pairs of heads, NaN where the first is not in an earlier layer.

    `level` is what a random turn of one of the two would give, see `level_of`.
    """

    scores: dict[str, Array]  # of each of WAYS: [L, H, L, H]
    level: float


def composition(model: Model, tick: Callable[[int], None] = lambda _: None) -> Composition:
    """|| OV QK || / (|| OV || || QK ||) and so on, of every head and every one in a later layer.

    With OV = V O of the earlier head: Q-composition takes Q K' of the later one, K-composition its
    turn K Q', V-composition its own V O. No [d, d] is made: the norm of V O Q K' is that of
    R O Q S', where R and S are the triangles of V and K (QR), d_h wide. What is left out is said
    in `circuits.heads`. In memory are a matrix of the size of the output matrix for each layer,
    and the blocks one at a time.
    """
    s = model.spec
    shape = (s.n_layers, s.n_heads, s.n_layers, s.n_heads)
    scores = {way: np.full(shape, np.nan) for way in WAYS}
    writers: list[Array] = []
    for later in range(s.n_layers):
        made = heads(model.blocks[later], s)
        made = replace(made, out=written(made, s))
        readers = {way: unit(one).astype(model.dtype) for way, one in read_by(made).items()}
        for earlier, writer in enumerate(writers):
            for way, reader in readers.items():
                scores[way][earlier, :, later] = norms(writer, reader)
        writers.append(unit(triangles(made.v) @ made.out).astype(model.dtype))
        tick(1)
    return Composition(scores, level_of(s))


def read_by(heads: Heads) -> dict[str, Array]:
    """For each way a matrix [H, d, m] that gives the norms which Q K', K Q' and V O would."""
    return {
        "Q": heads.q @ triangles(heads.k).mT,
        "K": heads.k @ triangles(heads.q).mT,
        "V": heads.v @ triangles(heads.out.mT).mT,
    }


def triangles(matrices: Array) -> Array:
    """R of the QR of each, NaN where one is not finite: [H, d, d_h] -> [H, min(d, d_h), d_h].

    || R M || = || A M || for any M, since A = Q R, and Q keeps every length.
    """
    good = np.array([np.isfinite(one).all() for one in matrices])[:, None, None]
    r = np.linalg.qr(np.where(good, matrices, 0))[1]
    return np.where(good, r, np.nan)


def unit(matrices: Array) -> Array:
    """Each over its Frobenius norm; NaN where that is 0: [..., n, m]."""
    size = np.linalg.norm(matrices, axis=(-2, -1), keepdims=True)
    return matrices / np.where(size > 0, size, np.nan)


def norms(writers: Array, readers: Array) -> Array:
    """The Frobenius norm of every product: [H, m, d], [H, d, n] -> [H, H]."""
    n, m, d = writers.shape
    product = writers.reshape(-1, d) @ readers.swapaxes(0, 1).reshape(d, -1)  # [H*m, H*n]
    squares = np.square(product).reshape(n, m, len(readers), -1)
    found: Array = np.sqrt(squares.sum((1, 3), dtype=np.float64))
    return found


def level_of(spec: Spec) -> float:
    """1 / sqrt(d): the root of the mean square that random matrices give, of any rank.

    If one of two matrices is turned at random, the mean of ||A T B||^2 is ||A||^2 ||B||^2 / d.
    Where LayerNorm takes off the mean, d - 1 numbers are left of d.
    """
    centres = spec.norm == "layer_norm" and SOURCES[spec.wiring]["attention"] == ("ln1.out",)
    return float((spec.d_model - centres) ** -0.5)
