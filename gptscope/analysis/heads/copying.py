"""Whether a head raises what it reads: the tokens that it attends to, straight to the logits.

Elhage et al. 2021, "A Mathematical Framework for Transformer Circuits", sections "The OV and QK
Circuits" and "Detecting Copying Behavior": the full OV circuit W_E V O W_U says how a token that is
attended to changes every logit. n tokens of the vocabulary V, L layers, H heads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.heads.circuits import after_norm, heads
from gptscope.analysis.heads.random_tokens import drawn
from gptscope.engine.norms import NORMS, unnoted
from gptscope.engine.products import linear, pieces
from gptscope.model.weights import rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from gptscope.analysis.heads.circuits import Heads
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]

SAMPLE = 1024  # tokens at the most that are set beside each other
TOP = 5  # as in Wang et al. 2022
AT_ONCE = 1 << 14  # rows of the vocabulary


@dataclass(frozen=True, eq=False)
class Copying:
    """How much every head copies; NaN where a weight is no number."""

    eigenvalues: Array  # [L, H]: sum(e) / sum(|e|) of the eigenvalues e of the full OV circuit
    most: Array  # [L, H]: the share of tokens that raise themselves more than any other
    top: Array  # [L, H]: or that are among the TOP that they raise most
    above_mean: Array  # [L, H]: or raise themselves above the mean of all
    n: int  # tokens of the vocabulary that the three shares are of, and among

    @property
    def chance(self) -> dict[str, float]:
        """What matrices would give that treat all tokens alike."""
        return {
            "eigenvalues": 0.0,
            "most": 1 / self.n,
            "top": min(1.0, TOP / self.n),
            "above_mean": 0.5,
        }

    def error(self) -> Array:
        """The standard error of `top`, sqrt(p (1 - p) / n): [L, H]."""
        found: Array = np.sqrt(self.top * (1 - self.top) / self.n)
        return found


def copying(model: Model, tick: Callable[[int], None] = lambda _: None, seed: int = 0) -> Copying:
    """How much every head copies, by its weights alone.

    `eigenvalues` takes in the whole vocabulary: the fraction of positive eigenvalues of Elhage et
    al. 2021, 1 if all are positive and -1 if all are negative; complex ones count by their real
    part. It is that of [d_h, d_h], since A B and B A have the same. The other three take a random
    sample of SAMPLE tokens, seeded; `top` is the copy score of Wang et al. 2022, "Interpretability
    in the Wild", section 3.3, on the embeddings themselves. Gains of the norms before the head and
    at the end are in it, and what LayerNorm takes off; their scales, which change no order, and
    shifts, biases, positions and all other parts of the model are left out.
    """
    ids = np.array(drawn(model, SAMPLE, np.random.default_rng(seed)) or [0])
    read, out_rows = embedded(model, ids), rows(model.output_table, ids, model.dtype)
    said, whole = unembedding(model, out_rows.T), both_tables(model)
    found = []
    for layer in range(len(model.blocks)):
        made = heads(model.blocks[layer], model.spec)
        found.append((fraction(made, whole), *shares(made, read, said)))
        tick(1)
    eigenvalues, most, top, above_mean = (np.stack(part) for part in zip(*found, strict=True))
    return Copying(eigenvalues, most, top, above_mean, len(ids))


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


def fraction(heads: Heads, tables: Array) -> Array:
    """sum(e) / sum(|e|) of the eigenvalues of O W_U W_E V; NaN where it is not finite: [H]."""
    products = heads.out @ tables @ heads.v  # [H, d_h, d] @ [d, d] @ [H, d, d_h]
    good = np.array([np.isfinite(one).all() for one in products])
    values = np.linalg.eigvals(np.where(good[:, None, None], products, 0))
    size = np.abs(values).sum(-1)
    total = np.divide(values.real.sum(-1), size, out=np.zeros_like(size), where=size > 0)
    return np.where(good, total, np.nan)


def shares(heads: Heads, read: Array, said: Array) -> tuple[Array, Array, Array]:
    """How often a token raises itself most, among the TOP, above the mean: [H] each."""
    n, found = len(read), []
    for v, out in zip(heads.v.astype(read.dtype), heads.out.astype(read.dtype), strict=True):
        logits = (read @ v) @ (out @ said)  # [n, d_h] @ [d_h, n] -> [n, n]
        own = logits.diagonal()
        others = (logits > own[:, None]).sum(-1)
        wrong = np.isnan(logits).any()
        each = (others == 0, others < TOP, own > logits.mean(-1))
        found.append([np.nan if wrong else float(one.sum() / n) for one in each])
    most, top, above_mean = np.array(found).T
    return most, top, above_mean
