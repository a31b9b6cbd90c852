"""Where a number stands, and what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.explain.records import Sum, products
from gptscope.analysis.wiring import sources
from gptscope.engine.hook_points import BY_KEY

if TYPE_CHECKING:
    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Block, Linear, Model

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True, eq=False)
class Place:
    """Which number of which pass: a value, its layer and head where it has them, its indices."""

    model: Model
    trace: Trace
    key: str
    layer: int | None
    head: int | None
    at: tuple[int, ...]

    @property
    def name(self) -> str:
        """The full name with its indices: `layers.0.heads.0.weights[5,0]`."""
        return f"{self.full(self.key)}[{','.join(map(str, self.at))}]"

    @property
    def block(self) -> Block:
        """The weights of its layer."""
        return self.model.blocks[self.layer or 0]

    def full(self, key: str) -> str:
        """The full name of another value in the same layer and head."""
        return BY_KEY[key].name.format(l=self.layer, h=self.head)

    def value(self, key: str) -> Array:
        """Another value in the same layer and head, in float64."""
        return self.trace[self.full(key)].astype(np.float64)

    def number(self) -> float:
        """The number itself."""
        return float(self.value(self.key)[self.at])

    def held(self) -> float:
        """The number itself, before what it is multiplied by at the end."""
        added = self.key in {"attn_out", "mlp_out"}
        return self.number() / (self.model.spec.residual_scale if added else 1)

    def of(self, key: str, *at: int) -> Place:
        """Another number in the same layer and head."""
        return replace(self, key=key, at=at)

    def names_read(self, part: str) -> list[str]:
        """The values that `attention`, `mlp` or a norm reads the sum of."""
        found = sources(self.trace, part, self.layer)
        return [BY_KEY[key].name.format(l=layer) for key, layer in found]

    def read(self, part: str) -> Array:
        """What a part reads, [T, d], in float64."""
        values = [self.trace[name] for name in self.names_read(part)]
        total: Array = np.sum(values, axis=0, dtype=np.float64)
        return total

    @property
    def group(self) -> int:
        """Which keys and values its head reads: H / G heads in a row share them."""
        s = self.model.spec
        return (self.head or 0) * s.n_kv_heads // s.n_heads

    def dot(self, name: str, w: Linear, column: int | None = None, axis: str = "dimension") -> Sum:
        """Row t of the value of this name times a column of a matrix, plus the bias."""
        t, i = self.at
        column = i if column is None else column
        pair = (self.trace[name][t].astype(np.float64), w.weight[:, column])
        bias = None if w.bias is None else w.bias[column]
        made = products(self.full(self.key), axis, ("input", "weight"), pair, self.held(), bias)
        plus = "" if bias is None else " + bias"
        return replace(made, source=f"{name}[{t},i] x weight[i,{column}]{plus}")
