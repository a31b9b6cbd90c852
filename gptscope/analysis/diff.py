"""Two models: which tensors differ and how far, and where their passes part."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.errors_of_values import Compared, alone, apart, compared, first_apart
from gptscope.analysis.tensors import kind
from gptscope.engine.ids import checked_ids
from gptscope.engine.sampling import probabilities
from gptscope.engine.trace import trace
from gptscope.errors import ModelError
from gptscope.model.checkpoint import Checkpoint, open_checkpoint
from gptscope.model.config import IGNORED
from gptscope.model.dtypes import widen
from gptscope.model.find import find_weights
from gptscope.model.load import find_config, find_family
from gptscope.model.pieces import pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from gptscope.model.weights import Model, Table

    Array = NDArray[Any]

FLOAT64 = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class Side:
    """One of the two: its tensors by the family's names, and its settings."""

    name: str
    tables: Mapping[str, Table]
    settings: Mapping[str, Any]


@dataclass(frozen=True)
class TensorDifference:
    """One tensor of both: how far the second is from the first."""

    name: str
    shapes: tuple[tuple[int, ...], tuple[int, ...]]
    dtypes: tuple[str, str]
    changed: int = 0  # numbers that are not the same
    largest: float = 0.0
    rms: float = 0.0  # root mean square of the difference
    relative: float = 0.0  # that, over the root mean square of the first
    cosine: float | None = None  # of the two as lists; None where one is all zeros

    @property
    def fits(self) -> bool:
        """Whether the two have the same shape."""
        return self.shapes[0] == self.shapes[1]

    @property
    def same(self) -> bool:
        """Whether every number is the same."""
        return self.fits and not self.changed

    @property
    def size(self) -> int:
        """How many numbers there are."""
        return math.prod(self.shapes[0])


@dataclass(frozen=True, eq=False)
class Passes:
    """Two passes on the same ids."""

    values: list[Compared]  # that both have, in the order of the pass; of the first one's scale
    only: tuple[tuple[str, ...], tuple[str, ...]]  # names that just one has, those alike as one
    next: tuple[Array, Array] | None  # probabilities of the token after the last, where V is equal

    @property
    def first(self) -> Compared | None:
        """The first value in which they part."""
        return first_apart(self.values)


def sides(first: str, second: str) -> tuple[Side, Side]:
    """Both models, not loaded: their tensors and settings; one without a config is named as both.

    Raises:
        ModelError: one is not there, or its weights cannot be read.
    """
    opened = [open_checkpoint(find_weights(name)) for name in (first, second)]
    found = [naming(checkpoint) for checkpoint in opened]
    known = next((rename for rename in found if rename is not None), str)
    a, b = (
        Side(name, renamed(checkpoint, rename or known), settings(checkpoint))
        for name, checkpoint, rename in zip((first, second), opened, found, strict=True)
    )
    return a, b


def naming(checkpoint: Checkpoint) -> Callable[[str], str] | None:
    """How the family of a model renames its tensors, if it is known."""
    try:
        family = find_family(find_config(checkpoint.path.parent, checkpoint), checkpoint)
    except ModelError:
        return None
    rename: Callable[[str], str] = family.rename
    return rename


def renamed(checkpoint: Checkpoint, rename: Callable[[str], str]) -> dict[str, Table]:
    """The tensors by new names; two that would get the same one keep their own."""
    found: dict[str, Table] = {}
    for name, table in checkpoint.arrays.items():
        new = rename(name)
        found[name if new in found else new] = table
    return found


def settings(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """What a config says that may matter; nothing where there is none that can be read."""
    try:
        config = find_config(checkpoint.path.parent, checkpoint)
    except ModelError:
        return {}
    values = config.values
    return {key: value for key, value in values.items() if key not in IGNORED}


def other_settings(a: Side, b: Side) -> list[tuple[str, Any, Any]]:
    """Settings in which the two differ; what is not said is None."""
    keys = dict.fromkeys((*a.settings, *b.settings))
    pairs = ((key, a.settings.get(key), b.settings.get(key)) for key in keys)
    return [(key, x, y) for key, x, y in pairs if x != y]


def tensor_differences(
    a: Side, b: Side, tick: Callable[[], Any] = lambda: None
) -> list[TensorDifference]:
    """Every tensor that both have: other shapes first, then the farthest."""
    found = []
    for name in a.tables:
        if name in b.tables:
            found.append(tensor_difference(name, a.tables[name], b.tables[name]))
            tick()
    return sorted(found, key=lambda one: (one.fits, -one.relative, -one.largest))


def tensor_difference(name: str, x: Table, y: Table) -> TensorDifference:
    """How far y is from x, read in pieces and widened exactly.

    Relative: rms(y - x) / rms(x); cosine: x y / (|x| |y|).
    """
    shapes, dtypes = (x.shape, y.shape), (kind(x), kind(y))
    if x.shape != y.shape:
        return TensorDifference(name, shapes, dtypes)
    changed, largest, sums = 0, 0.0, np.zeros(4)
    for pair in pieces(x, y):
        p, q = (widen(part, FLOAT64) for part in pair)
        d = apart(p, q)
        changed += int((d != 0).sum())
        largest = max(largest, float(np.abs(d).max(initial=0)))
        sums += [np.vdot(d, d), np.vdot(p, p), np.vdot(q, q), np.vdot(p, q)]
    dd, pp, qq, pq = sums.tolist()
    rms = math.sqrt(dd / max(1, math.prod(x.shape)))
    relative = math.sqrt(dd / pp) if pp else math.inf if dd else 0.0
    cosine = pq / math.sqrt(pp * qq) if pp and qq else None
    return TensorDifference(name, shapes, dtypes, changed, largest, rms, relative, cosine)


def passes(a: Model, b: Model, ids: tuple[int, ...]) -> Passes:
    """Both models on the same ids, value by value.

    Raises:
        UsageError: one of them cannot read these ids.
    """
    for model in (a, b):
        checked_ids(model.spec, ids)
    first, second = trace(a, ids), trace(b, ids)
    ours, theirs = first.names(), second.names()
    shared = (name for name in ours if name in set(theirs))
    values = [compared(name, second[name], first[name]) for name in shared]
    only = alone(ours, theirs), alone(theirs, ours)
    logits = first.logits[-1], second.logits[-1]
    comparable = logits[0].shape == logits[1].shape and all(np.isfinite(x).all() for x in logits)
    p, q = (probabilities(x) for x in logits) if comparable else (None, None)
    return Passes(values, only, None if p is None or q is None else (p, q))


def divergence(p: Array, q: Array) -> float:
    """The Kullback-Leibler divergence, sum p ln(p / q), in nats. Kullback and Leibler 1951."""
    p, q = p.astype(FLOAT64), q.astype(FLOAT64)
    seen = p > 0
    with np.errstate(divide="ignore"):
        return float(np.sum(p[seen] * (np.log(p[seen]) - np.log(q[seen]))))
