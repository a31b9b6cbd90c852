"""Every value of a pass against a trace that was saved elsewhere, in the order of the pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.check.result import Result, impossible, many
from gptscope.engine.trace import trace
from gptscope.errors import ModelError
from gptscope.model.checkpoint import open_safetensors
from gptscope.model.dtypes import BF16, widen

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from gptscope.model.weights import Model, Table

    Array = NDArray[Any]

# Of a value's scale, its largest magnitude and at least 1. In float32 and float64 the tolerances of
# our own tests; in narrower formats four steps of the format, of which each value took a half.
OF_THE_SCALE = {"float64": 1e-10, "float32": 2e-5, "float16": 4 * 2.0**-10, "bfloat16": 4 * 2.0**-7}
WEIGHT = 1e-5  # of attention, in float32: they are at most 1


@dataclass(frozen=True, eq=False)
class Saved:
    """The values of a file by name, as they lie there, and the ids that they were computed from."""

    values: dict[str, Table]
    ids: tuple[int, ...] | None
    dtype: str  # the narrowest of its values, which all are as exact as

    @property
    def computed(self) -> str:
        """What to compute in for a comparison."""
        return "float64" if self.dtype == "float64" else "float32"


@dataclass(frozen=True)
class Difference:
    """One value beside its saved twin."""

    name: str
    largest: float
    mean: float
    limit: float
    wrong: str | None = None  # why they cannot be compared

    @property
    def agrees(self) -> bool:
        """Whether the error is within the limit."""
        return self.wrong is None and self.largest <= self.limit


def read_saved(path: Path) -> Saved:
    """The file that `gptscope trace -o FILE.safetensors` or docs/save_trace.py wrote.

    Raises:
        ModelError: it cannot be read, or holds no values.
    """
    values = dict(open_safetensors(path).arrays)
    stored = values.pop("ids", None)
    values = {name: x for name, x in values.items() if x.dtype.kind == "f" or x.dtype == BF16}
    if not values:
        raise ModelError(f"{path} holds no values of a pass")
    kinds = {"bfloat16" if x.dtype == BF16 else x.dtype.name for x in values.values()}
    narrow = max(kinds, key=OF_THE_SCALE.__getitem__)
    ids = None if stored is None else tuple(np.asarray(stored).ravel().tolist())
    return Saved(values, ids, narrow)


def differences(model: Model, ids: tuple[int, ...], saved: Saved) -> list[Difference]:
    """Every value that both have, in the order of the pass."""
    made = trace(model, ids)
    shared = (name for name in made.names() if name in saved.values)
    return [difference(name, made[name], saved) for name in shared]


def difference(name: str, x: Array, saved: Saved) -> Difference:
    """The error of one value; where shapes differ there is none."""
    expected = widen(np.asarray(saved.values[name]), np.dtype(np.float64))
    if expected.shape != x.shape and expected.size == x.size:
        expected = expected.reshape(x.shape)  # a batch of one
    limit = allowed(name, expected, saved.dtype)
    if expected.shape != x.shape:
        shapes = f"the shape {list(x.shape)}, and the saved one {list(expected.shape)}"
        return Difference(name, np.inf, np.inf, limit, shapes)
    error = errors(x.astype(np.float64), expected)
    return Difference(name, float(error.max(initial=0)), float(error.mean()), limit)


def allowed(name: str, expected: Array, dtype: str) -> float:
    """The largest error that is rounding."""
    if name.endswith(".weights") and dtype == "float32":
        return WEIGHT
    finite = np.abs(expected[np.isfinite(expected)])
    return OF_THE_SCALE[dtype] * max(1.0, float(finite.max(initial=0)))


def errors(actual: Array, expected: Array) -> Array:
    """|actual - expected|; infinite where just one is -inf, or either is NaN or +inf."""
    found = np.full(expected.shape, np.inf)
    found[(actual == -np.inf) & (expected == -np.inf)] = 0
    finite = np.isfinite(actual) & np.isfinite(expected)
    found[finite] = np.abs(actual[finite] - expected[finite])
    return found


def against_result(found: list[Difference]) -> Result:
    """The first value that differs from its saved twin."""
    if not found:
        return impossible("against", "the saved trace and the pass share no name")
    beyond = [one for one in found if not one.agrees]
    faults = []
    if beyond:
        first = beyond[0]
        off = f"is off by {first.largest:.2g}, and rounding explains {first.limit:.0e}"
        why = f"has {first.wrong}" if first.wrong else off
        faults = [f"{first.name} {why}: the first of {many(len(beyond), 'value')} that differ"]
    worst = beyond[0] if beyond else max(found, key=lambda one: one.largest / one.limit)
    looked = f"{many(len(found), 'value')}, {'the first that differs' if beyond else 'the worst'}: "
    return Result("against", looked + worst.name, worst.largest, worst.limit, tuple(faults))
