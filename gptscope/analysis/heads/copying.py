"""How often a head raises the very token that it reads: a sample, rated among the whole vocabulary.

After Wang et al. 2022, "Interpretability in the Wild", section 3.3 (copy score): how often the
token that is read is among the 5 that a head raises most. They take the names of their prompts as
the stream has them after block 0; here random tokens are taken as they are embedded, so that what
block 0 makes of them is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.heads.circuits import centred, heads
from gptscope.analysis.heads.eigen import embedded
from gptscope.analysis.heads.random_tokens import shuffled
from gptscope.engine.products import pieces
from gptscope.model.weights import rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]
Ids = NDArray[np.int64]

SAMPLE = 256  # tokens at the most that are read
TOP = 5  # as in Wang et al. 2022
AT_ONCE = 512  # rows of the vocabulary
LISTS = 1 << 23  # numbers in what the heads of several layers write
LOGITS = 1 << 22  # numbers in a piece of the logits


@dataclass(frozen=True, eq=False)
class Copying:
    """How often every head raises what it reads.

    NaN where a weight is no number, and in layers that were not asked for.
    """

    most: Array  # [L, H]: the share of tokens that it raises more than any other token
    top: Array  # [L, H]: or that are among the TOP that it raises most
    above_mean: Array  # [L, H]: or that it raises above the mean of all
    n: int  # tokens that are read
    n_vocab: int  # tokens that each is rated among

    @property
    def chance(self) -> dict[str, float]:
        """What a head would give that treats all tokens alike."""
        v = self.n_vocab
        return {"most": 1 / v, "top": min(1.0, TOP / v), "above_mean": 0.5}

    def error(self) -> Array:
        """The standard error of `top`, sqrt(p (1 - p) / n): [L, H]."""
        found: Array = np.sqrt(self.top * (1 - self.top) / max(1, self.n))
        return found


def copying(
    model: Model,
    tick: Callable[[int], None] = lambda _: None,
    seed: int = 0,
    layers: Sequence[int] | None = None,
) -> Copying:
    """How often every head raises the token that it reads, by its weights alone.

    Of SAMPLE random tokens, seeded, each is rated among all V of the vocabulary by the logits
    x V O W_U. A token that is level with another counts as below it. Gains of the norms before the
    head and at the end are in it, and what LayerNorm takes off; their scales, which change no
    order, and shifts, biases, positions and all other parts of the model are left out. `layers`:
    those that are measured, all if not given.
    """
    asked = range(len(model.blocks)) if layers is None else layers
    ids = sample(model, SAMPLE, np.random.default_rng(seed))
    read, own = embedded(model, ids), rows(model.output_table, ids, model.dtype)
    mean = mean_row(model)
    found = np.full((3, len(model.blocks), model.spec.n_heads), np.nan)
    for group in groups(model, asked):
        y = np.concatenate([lists(model, layer, read) for layer in group])
        made = shares(model, y, ids, own, mean, tick)
        found[:, list(group)] = made.reshape(3, len(group), -1)
    most, top, above_mean = found
    return Copying(most, top, above_mean, len(ids), model.spec.n_vocab)


def steps(model: Model, layers: Sequence[int]) -> int:
    """How many times `copying` tells that it goes on."""
    return len(list(groups(model, layers))) * len(list(pieces(model.spec.n_vocab, AT_ONCE)))


def groups(model: Model, layers: Sequence[int]) -> Iterator[Sequence[int]]:
    """Layers that are taken together, so that the vocabulary is read less often."""
    at_once = max(1, LISTS // (model.spec.n_heads * SAMPLE * model.output_table.shape[1]))
    return (layers[first : first + at_once] for first in range(0, len(layers), at_once))


def sample(model: Model, n: int, rng: np.random.Generator) -> Ids:
    """`n` random tokens, or all: none of them special, or with a row of zeros in a table."""
    tables = model.token_table, model.output_table

    def has_rows(i: int) -> bool:
        return all(rows(table, slice(i, i + 1), model.dtype).any() for table in tables)

    return np.array(list(islice(filter(has_rows, shuffled(model, rng)), n)), np.int64)


def mean_row(model: Model) -> Array:
    """The mean of the rows of the output table: [e]."""
    total = np.zeros(model.output_table.shape[1])
    for part in pieces(model.spec.n_vocab, AT_ONCE):
        total += rows(model.output_table, part, model.dtype).sum(0, dtype=np.float64)
    return total / model.spec.n_vocab


def lists(model: Model, layer: int, read: Array) -> Array:
    """What the heads of a layer write for each token, as the output table meets it: [H, n, e]."""
    made = heads(model.blocks[layer], model.spec)
    y = (read @ made.v.astype(model.dtype)) @ made.out.astype(model.dtype)
    if model.ln_final is not None:
        y = centred(y, model.spec) * model.ln_final.gain
    if model.project_out is not None:
        y = y @ model.project_out.weight
    found: Array = y.astype(model.dtype, copy=False)
    return found


def shares(
    model: Model, y: Array, ids: Ids, own: Array, mean: Array, tick: Callable[[int], None]
) -> Array:
    """`most`, `top` and `above_mean` of some heads: [n_heads, n, e] -> [3, n_heads].

    A logit must be above another by more than they can be wrong by rounding.
    """
    e = y.shape[-1]
    sizes = np.linalg.norm(y, axis=-1) * np.linalg.norm(own, axis=-1)
    bar = np.einsum("hne,ne->hn", y, own) - np.finfo(y.dtype).eps * e**0.5 * sizes
    average = y @ mean
    good = np.isfinite(bar + average).all(-1)
    some = y[good].reshape(-1, e)
    every = np.tile(ids, int(good.sum()))
    others = n_others(model, some, bar[good].ravel(), every, tick).reshape(bar[good].shape)
    found = np.full((3, len(y)), np.nan)
    if len(ids):
        each = others == 0, others < TOP, bar[good] > average[good]
        found[:, good] = np.stack(each).mean(-1)
    return found


def n_others(model: Model, y: Array, bar: Array, ids: Ids, tick: Callable[[int], None]) -> Ids:
    """How many other tokens come up to the bar of a row, TOP or more if there are so many.

    What has found TOP is not looked at any further: [R, e], [R], [R] -> [R].
    """
    found = np.zeros(len(y), np.int64)
    left = np.arange(len(y))
    for part in pieces(model.spec.n_vocab, AT_ONCE):
        if len(left):
            table = rows(model.output_table, part, model.dtype)
            found[left] += level(y, table, bar[left], ids[left] - part.start)
            more = found[left] < TOP
            y, left = y[more], left[more]
        tick(1)
    return found


def level(y: Array, table: Array, bar: Array, own: Ids) -> Ids:
    """How many rows of a piece of the table, but for a token's own, come up to each bar: [R]."""
    found = np.zeros(len(y), np.int64)
    for part in pieces(len(y), LOGITS // len(table)):
        logits = y[part] @ table.T
        here = np.flatnonzero((own[part] >= 0) & (own[part] < len(table)))
        logits[here, own[part][here]] = -np.inf
        found[part] = (logits >= bar[part, None]).sum(-1)
    return found
