"""Float32 against float64: is an error what rounding explains, or a fault?

Rounding grows from layer to layer by what the model does to it. That growth, eps times the
condition of every value, is measured: a pass in float64 in which every named value is rounded to
float32 once. A pass in float32 rounds inside its products and sums as well, so it may be off by a
multiple of that, and not by more.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from gptscope.analysis.check.result import Result, impossible
from gptscope.engine.forward import forward
from gptscope.engine.hook_points import BY_KEY
from gptscope.engine.ids import checked_ids
from gptscope.engine.trace import trace
from gptscope.model.blocks import Blocks, outlines
from gptscope.model.dtypes import widen
from gptscope.model.files import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gptscope.model.weights import Model

    Array = NDArray[Any]
    Key = tuple[str, int | None]

T = TypeVar("T")
FLOAT64 = np.dtype(np.float64)
EPS = 2.0**-24  # half a step of float32: the largest relative error of one rounding
TIMES = 32.0  # what sums of many products add to one rounding


@dataclass(frozen=True)
class Noise:
    """One value: its error in float32, and what one rounding of every value makes of it."""

    name: str
    error: float  # largest, in parts of the largest number
    rounding: float

    @property
    def limit(self) -> float:
        """What rounding explains."""
        return TIMES * max(self.rounding, EPS)


class Rounding:
    """The hook that rounds every value to float32, and keeps it."""

    def __init__(self) -> None:
        """Nothing is kept yet."""
        self.values: dict[Key, Array] = {}

    def __call__(self, key: str, value: Array, layer: int | None = None) -> Array:
        """The value rounded."""
        self.values[key, layer] = value.astype(np.float32).astype(FLOAT64)
        return self.values[key, layer]


def precision_result(model: Model, ids: tuple[int, ...]) -> tuple[Result, list[Noise]]:
    """The first value whose error rounding does not explain; all values, in the order of a pass."""
    if model.dtype != np.float32:
        return impossible("float32", f"the file holds {model.dtype}, so that is computed in"), []
    noise = measured(model, ids)
    beyond = [one for one in noise if not one.error <= one.limit]
    faults = []
    if beyond:
        first = beyond[0]
        faults.append(
            f"{first.name} in float32 is off by {first.error:.1e} of its scale, and rounding "
            f"explains {first.limit:.1e}: the first of {counted(len(beyond), 'value')}"
        )
    worst = nearest(noise)
    looked = f"{counted(len(noise), 'value')} against float64, nearest its limit: {worst.name}"
    return Result("float32", looked, worst.error, worst.limit, tuple(faults)), noise


def nearest(noise: Sequence[Noise]) -> Noise:
    """The value whose error is largest beside its own limit."""
    return max(noise, key=lambda one: one.error / one.limit)


def measured(model: Model, ids: tuple[int, ...]) -> list[Noise]:
    """The errors of every value of a pass, heads taken together."""
    exact_model, rounding = wide(model), Rounding()
    narrow, exact = trace(model, ids), trace(exact_model, ids)
    forward(exact_model, checked_ids(model.spec, ids), rounding)
    return [
        Noise(named(key), off(narrow.values[key], x), off(rounding.values[key], x))
        for key, x in exact.values.items()
    ]


def named(key: Key) -> str:
    """The name of a value, all heads of a layer as one."""
    return BY_KEY[key[0]].name.format(l=key[1], h="*")


def off(x: Array, exact: Array) -> float:
    """The largest error in parts of the largest number; what the mask hides is left out."""
    seen = np.isfinite(exact)
    scale = float(np.abs(exact[seen]).max(initial=0)) or 1.0
    return float(np.abs(x[seen] - exact[seen]).max(initial=0)) / scale


def wide(model: Model) -> Model:
    """The same weights, computed in float64."""
    blocks = model.blocks
    return replace(
        model,
        dtype=FLOAT64,
        blocks=Blocks(lambda layer: widened(blocks[layer]), outlines(blocks)),
        ln_final=widened(model.ln_final),
        embed_norm=widened(model.embed_norm),
        project_in=widened(model.project_in),
        project_out=widened(model.project_out),
        output_bias=widened(model.output_bias),
    )


def widened(part: T) -> T:
    """A part with every array of it in float64."""
    made: Any = part
    if isinstance(part, np.ndarray):
        made = widen(part, FLOAT64)
    elif is_dataclass(part) and not isinstance(part, type):
        made = replace(part, **{f.name: widened(getattr(part, f.name)) for f in fields(part)})
    return made  # type: ignore[no-any-return]
