"""Two models: which tensors differ and how far, and where their passes part."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.engine.ids import checked_ids
from gptscope.engine.sampling import probabilities
from gptscope.engine.trace import trace
from gptscope.errors import ModelError
from gptscope.model.checkpoint import Checkpoint, open_checkpoint
from gptscope.model.config import IGNORED
from gptscope.model.dtypes import widen
from gptscope.model.files import read_json
from gptscope.model.find import find_weights
from gptscope.model.load import find_config, find_family

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from gptscope.model.weights import Model, Table

    Array = NDArray[Any]

AT_ONCE = 1 << 18  # numbers that are compared at once
FLOAT64 = np.dtype(np.float64)
TOLERANCE = 2e-5  # of a value's scale, its largest magnitude and at least 1: float32 rounding
WEIGHT = 1e-5  # of attention


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


@dataclass(frozen=True)
class Parting:
    """One value of both passes; errors are in parts of the first one's scale."""

    name: str
    error: float
    limit: float
    wrong: str | None = None  # why they cannot be compared

    @property
    def agrees(self) -> bool:
        """Whether the two differ by no more than rounding."""
        return self.wrong is None and self.error <= self.limit


@dataclass(frozen=True, eq=False)
class Passes:
    """Two passes on the same ids."""

    values: list[Parting]  # that both have, in the order of the pass
    only: tuple[tuple[str, ...], tuple[str, ...]]  # names that just one has
    next: tuple[Array, Array] | None  # probabilities of the token after the last, where V is equal

    @property
    def first(self) -> Parting | None:
        """The first value in which they part."""
        return next((one for one in self.values if not one.agrees), None)


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
        values = read_json(checkpoint.path.parent / "config.json")
    except ModelError:
        values = dict(checkpoint.config or {})
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
    for p, q in pieces(x, y):
        d = apart(p, q)
        changed += int((d != 0).sum())
        largest = max(largest, float(np.abs(d).max(initial=0)))
        sums += [np.vdot(d, d), np.vdot(p, p), np.vdot(q, q), np.vdot(p, q)]
    dd, pp, qq, pq = sums.tolist()
    rms = math.sqrt(dd / max(1, math.prod(x.shape)))
    relative = math.sqrt(dd / pp) if pp else math.inf if dd else 0.0
    cosine = pq / math.sqrt(pp * qq) if pp and qq else None
    return TensorDifference(name, shapes, dtypes, changed, largest, rms, relative, cosine)


def apart(x: Array, y: Array) -> Array:
    """Y - x; 0 where both are the same, be it NaN or infinite, infinite where one alone is NaN."""
    same = (x == y) | (np.isnan(x) & np.isnan(y))
    with np.errstate(invalid="ignore"):
        return np.where(same, 0, np.nan_to_num(y - x, nan=np.inf, posinf=np.inf, neginf=-np.inf))


def kind(table: Table) -> str:
    """How the numbers of a tensor are stored: `float32`, `bf16`."""
    return table.dtype.names[0] if table.dtype.names else table.dtype.name


def pieces(x: Table, y: Table) -> Iterator[tuple[Array, Array]]:
    """The same numbers of two tensors, some rows at a time, in float64."""
    if not x.shape:
        yield widen(np.asarray(x), FLOAT64), widen(np.asarray(y), FLOAT64)
        return
    n = max(1, AT_ONCE // max(1, math.prod(x.shape[1:])))
    for start in range(0, x.shape[0], n):
        part = slice(start, start + n)
        p, q = (widen(np.asarray(one[part]), FLOAT64) for one in (x, y))
        yield p, q


def passes(a: Model, b: Model, ids: tuple[int, ...]) -> Passes:
    """Both models on the same ids, value by value.

    Raises:
        UsageError: one of them cannot read these ids.
    """
    for model in (a, b):
        checked_ids(model.spec, ids)
    first, second = trace(a, ids), trace(b, ids)
    ours, theirs = first.names(), set(second.names())
    values = [parting(name, first[name], second[name]) for name in ours if name in theirs]
    only = (
        tuple(name for name in ours if name not in theirs),
        tuple(name for name in second.names() if name not in set(ours)),
    )
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


def parting(name: str, x: Array, y: Array) -> Parting:
    """The largest error of a value in parts of its scale; where both are hidden there is none."""
    limit = WEIGHT if name.endswith(".weights") else TOLERANCE
    if x.shape != y.shape:
        return Parting(name, math.inf, limit, f"shapes {list(x.shape)} and {list(y.shape)}")
    error = np.abs(apart(x, y)).max(initial=0)
    scale = max(1.0, float(np.abs(x[np.isfinite(x)]).max(initial=0)))
    return Parting(name, float(error) / scale, limit)
