"""Every value of a pass against a trace that was saved elsewhere, in the order of the pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.check.result import Result, impossible
from gptscope.analysis.errors_of_values import OF_THE_SCALE, Compared, alone, compared, first_apart
from gptscope.engine.trace import trace
from gptscope.errors import ModelError, UsageError
from gptscope.model.checkpoint import open_safetensors
from gptscope.model.dtypes import BF16, widen
from gptscope.model.files import counted

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from gptscope.model.weights import Model, Table

    Array = NDArray[Any]

FLOAT64 = np.dtype(np.float64)


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


@dataclass(frozen=True, eq=False)
class Against:
    """Every value that both have, in the order of the pass, and the names that just one has."""

    values: list[Compared]
    only_saved: tuple[str, ...]
    only_made: tuple[str, ...]


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


def refuse_another(model: Model, ids: tuple[int, ...], saved: Saved) -> None:
    """Nothing, where the ends of the saved pass have the shapes of this model's.

    Raises:
        UsageError: they are of another width or vocabulary, or of another number of tokens.
    """
    for name, width in (("token_embeddings", model.spec.d_model), ("logits", model.spec.n_vocab)):
        here = [len(ids), width]
        there = list(saved.values[name].shape)[-2:] if name in saved.values else here
        if there != here:
            what = "model" if there[-1:] != here[-1:] else "text"
            raise UsageError(
                f"the saved trace is of another {what}: {name} is {there} there and {here} here"
            )


def differences(model: Model, ids: tuple[int, ...], saved: Saved) -> Against:
    """Every value beside its saved twin."""
    made = trace(model, ids)
    names = made.names()
    values = [beside(name, made[name], saved) for name in names if name in saved.values]
    return Against(values, alone(saved.values, names), alone(names, saved.values))


def beside(name: str, x: Array, saved: Saved) -> Compared:
    """The error of one value."""
    expected = widen(np.asarray(saved.values[name]), FLOAT64)
    if expected.shape != x.shape and expected.size == x.size:
        expected = expected.reshape(x.shape)  # a batch of one
    return compared(name, x, expected, saved.dtype)


def against_result(found: Against) -> Result:
    """The first value that differs from its saved twin."""
    if not found.values:
        return impossible("against", "the saved trace and the pass share no name")
    looked, first = counted(len(found.values), "value"), first_apart(found.values)
    if first is None:
        worst = max(found.values, key=lambda one: one.error / one.limit)
        looked += f", nearest its limit: {worst.name}"
        return Result("against", looked, worst.error, worst.limit)
    beyond = sum(not one.agrees for one in found.values)
    off = f"is off by {first.error:.2g} of its scale, and rounding explains {first.limit:.0e}"
    why = f"has {first.wrong}" if first.wrong else off
    sentence = f"{first.name} {why}: the first of {counted(beyond, 'value')} that differ"
    looked += f", the first that differs: {first.name}"
    return Result("against", looked, first.error, first.limit, (sentence,))
