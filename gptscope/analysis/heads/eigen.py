"""Whether a head raises what it reads: the tokens that it attends to, straight to the logits.

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", sections "The OV and QK
Circuits" and "Detecting Copying Behavior": the full OV circuit W_E V O W_U says how a token that is
attended to changes every logit. n tokens, L layers, H heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.heads.circuits import after_norm, heads
from gptscope.engine.norms import NORMS, unnoted
from gptscope.engine.products import linear, pieces
from gptscope.model.weights import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]

AT_ONCE = 1 << 14  # rows of the vocabulary
DRAWS = 64  # random heads


@dataclass(frozen=True, eq=False)
class Eigen:
    """How much every head copies; NaN where a weight is no number."""

    eigenvalues: Array  # [L, H]: sum(e) / sum(|e|) of the eigenvalues e of the full OV circuit
    spread: float  # the standard deviation of that of random heads, whose mean is 0


def eigen(model: Model, tick: Callable[[int], None] = lambda _: None, seed: int = 0) -> Eigen:
    """How much every head copies, by its weights alone and over the whole vocabulary.

    It is the fraction of positive eigenvalues of Elhage et al. 2021, 1 if all are positive and -1
    if all are negative; complex ones count by their real part. It is that of [d_h, d_h], since A B
    and B A have the same. A head that writes nothing has 0. Gains of the norms before the head and
    at the end are in it, and what LayerNorm takes off; their scales, and shifts, biases, positions
    and all other parts of the model are left out. Random heads are seeded.
    """
    whole = both_tables(model)
    found = []
    for layer in range(len(model.blocks)):
        made = heads(model.blocks[layer], model.spec)
        found.append(fraction(made.v, made.out, whole))
        tick(1)
    return Eigen(np.stack(found), spread(model, whole, np.random.default_rng(seed)))


def embedded(model: Model, index: Any) -> Array:  # noqa: ANN401
    """The token rows as they enter the stream, but for positions: [n, d]; a scale is left out."""
    x = rows(model.token_table, index, model.dtype)
    if model.project_in is not None:
        x = linear(x, model.project_in.stored, model.project_in.bias)
    if model.embed_norm is not None:
        scaled = x * model.spec.embed_scale
        x = NORMS[model.spec.norm](scaled, model.embed_norm, model.spec.norm_eps, unnoted)
    return x


def unembedding(model: Model, matrix: Array) -> Array:
    """A matrix that stands where the output table does, read from the stream: [e, n] -> [d, n]."""
    if model.project_out is not None:
        matrix = model.project_out.weight @ matrix
    return after_norm(matrix, model.ln_final, model.spec)


def both_tables(model: Model) -> Array:
    """W_U W_E over the whole vocabulary, in pieces: [d, d]."""
    total: Array | float = 0.0
    for part in pieces(model.spec.n_vocab, AT_ONCE):
        total = total + rows(model.output_table, part, model.dtype).T @ embedded(model, part)
    return unembedding(model, np.asarray(total))


def fraction(v: Array, out: Array, tables: Array) -> Array:
    """sum(e) / sum(|e|) of the eigenvalues of O W_U W_E V; NaN where it is not finite: [H]."""
    products = out @ tables @ v  # [H, d_h, d] @ [d, d] @ [H, d, d_h]
    good = np.array([np.isfinite(one).all() for one in products])
    values = np.linalg.eigvals(np.where(good[:, None, None], products, 0))
    size = np.abs(values).sum(-1)
    total = np.divide(values.real.sum(-1), size, out=np.zeros_like(size), where=size > 0)
    return np.where(good, total, np.nan)


def spread(model: Model, tables: Array, rng: np.random.Generator) -> float:
    """The root mean square of `fraction` with normal random numbers in V and O, DRAWS times.

    The tables are the model's own: the fewer directions they have, the farther chance goes.
    """
    shape = 1, model.spec.d_model, model.spec.d_head
    draws = (rng.standard_normal((2, *shape)) for _ in range(DRAWS))
    found = np.concatenate([fraction(v, out.mT, tables) for v, out in draws])
    return float(np.sqrt(np.square(found).mean()))
