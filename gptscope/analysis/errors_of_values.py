"""Two passes value by value: the same but for rounding, or not. Every comparison is made here."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    Array = NDArray[Any]

FLOAT64 = np.dtype(np.float64)
# Of a value's scale, its largest magnitude and at least 1. In float32 and float64 the tolerances of
# our own tests; in narrower formats four steps of the format, of which each value took a half.
OF_THE_SCALE = {"float64": 1e-10, "float32": 2e-5, "float16": 4 * 2.0**-10, "bfloat16": 4 * 2.0**-7}
WEIGHT = 1e-5  # of attention, in float32: they are at most 1
FEW = 3  # layers that are named one by one


@dataclass(frozen=True)
class Compared:
    """One value beside its twin; errors are in parts of the twin's scale."""

    name: str
    error: float  # the largest
    mean: float
    limit: float
    wrong: str | None = None  # why they cannot be compared

    @property
    def agrees(self) -> bool:
        """Whether the two differ by no more than rounding."""
        return self.wrong is None and self.error <= self.limit


def compared(name: str, x: Array, twin: Array, dtype: str = "float32") -> Compared:
    """One value beside its twin, which is as exact as `dtype`; where shapes differ, infinity."""
    most = limit(name, dtype)
    if x.shape != twin.shape:
        shapes = f"shapes {list(x.shape)} and {list(twin.shape)}"
        return Compared(name, math.inf, math.inf, most, shapes)
    found = errors(x, twin) / scale(twin)
    return Compared(
        name, float(found.max(initial=0)), float(found.mean()) if found.size else 0.0, most
    )


def limit(name: str, dtype: str = "float32") -> float:
    """The largest error that is rounding, in parts of the scale."""
    of_weights = name.endswith(".weights") and dtype == "float32"
    return WEIGHT if of_weights else OF_THE_SCALE[dtype]


def scale(x: Array) -> float:
    """The largest finite magnitude, and at least 1."""
    return max(1.0, float(np.abs(x[np.isfinite(x)]).max(initial=0)))


def errors(a: Array, b: Array) -> Array:
    """|b - a| in float64, as `apart`."""
    return np.abs(apart(a.astype(FLOAT64), b.astype(FLOAT64)))


def apart(a: Array, b: Array) -> Array:
    """B - a; 0 where both are the same, be it NaN or infinite, infinite where one alone is so."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        return np.where(same, 0, np.nan_to_num(b - a, nan=np.inf, posinf=np.inf, neginf=-np.inf))


def first_apart(values: Iterable[Compared]) -> Compared | None:
    """The first value that differs by more than rounding."""
    return next((one for one in values if not one.agrees), None)


def alone(names: Iterable[str], others: Iterable[str]) -> tuple[str, ...]:
    """The names that the others lack: a layer that they lack as one, else all layers and heads."""
    there = set(others)
    layers = {layer_of(name) for name in there}
    found = [name for name in names if name not in there]
    whole = dict.fromkeys(f"{n}.*" for n in map(layer_of, found) if n and n not in layers)
    rest = dict.fromkeys(starred(n) for n in found if not layer_of(n) or layer_of(n) in layers)
    few = list(whole) if len(whole) <= FEW else [next(iter(whole)), "...", next(reversed(whole))]
    return (*few, *rest)


def layer_of(name: str) -> str:
    """`layers.3` of a value in a layer, nothing of any other."""
    found = re.match(r"layers\.\d+(?=\.)", name)
    return found[0] if found else ""


def starred(name: str) -> str:
    """`layers.0.heads.1.q` as `layers.*.heads.*.q`."""
    return re.sub(r"\.\d+(?=\.)", ".*", name)
