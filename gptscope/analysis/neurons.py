"""What a hidden unit of a feed-forward layer reads, what it says, and how much of an answer it is.

A unit reads along a column of the up matrix, and writes its value times its row of the down
matrix: Geva et al. 2021, "Transformer Feed-Forward Layers Are Key-Value Memories", section 2. What
it writes as tokens: Geva et al. 2022, "Transformer Feed-Forward Layers Build Predictions by
Promoting Concepts in the Vocabulary Space", section 3. Computed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.attribution import unit_directions
from gptscope.analysis.attribution.directions import SCALES, frozen, frozen_back, sigma
from gptscope.analysis.neighbours import near, space
from gptscope.analysis.wiring import end, norms_between, sources, way
from gptscope.engine.products import against_rows, linear
from gptscope.model.weights import rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.analysis.attribution import Directions
    from gptscope.analysis.wiring import Value
    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Linear, Model, Table

Array = NDArray[np.floating[Any]]
Unit = tuple[int, int]  # layer, and which of its units

FLOAT64 = np.dtype(np.float64)
# Values of a pass that tell what a unit reads and says.
KEEP = ("token_embeddings", "position_embeddings", *SCALES)


@dataclass(frozen=True, eq=False)
class Widened:
    """The table of tokens as the stream gets it, where a matrix stands between."""

    table: Table  # [V, narrow]
    project_in: Linear  # [narrow, d]
    dtype: np.dtype[Any] = FLOAT64

    @property
    def shape(self) -> tuple[int, ...]:
        """V and d."""
        return self.table.shape[0], self.project_in.stored.shape[1]

    def __getitem__(self, index: Any, /) -> Array:  # noqa: ANN401
        """Some rows."""
        return linear(
            rows(self.table, index, FLOAT64), self.project_in.stored, self.project_in.bias
        )

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> Array:  # noqa: ANN401
        """All of them, always as a copy."""
        return self[:].astype(dtype or FLOAT64, copy=False)


def contributions(model: Model, trace: Trace, found: Directions, layers: Sequence[int]) -> Array:
    """The value of every unit of these layers at a position, and what it says at a value of 1.

    What it gives is their product: [len(layers), F, 2].
    """
    made = []
    for layer in layers:
        values = trace[f"layers.{layer}.mlp_act"][found.position].astype(FLOAT64)
        made.append(np.stack([values, unit_directions(model, found, layer)], axis=1))
    return np.stack(made)


def n_for_half(given: Array) -> int:
    """How many of these numbers, largest first, make half of the sum of their sizes."""
    sizes = np.sort(np.abs(given), axis=None)[::-1]
    reached = np.cumsum(sizes)
    return int(np.searchsorted(reached, reached[-1] / 2)) + 1 if reached[-1] > 0 else 0


def says(model: Model, trace: Trace, units: Sequence[Unit], position: int) -> Array:
    """What each unit adds to every logit at a value of 1, directly: [k, V].

    Its row of the down matrix goes through every norm on the way (frozen at this position), the
    projection before the output where there is one, and the unembedding. Before a soft cap.

    Raises:
        UsageError: the trace lacks the scale of a norm on the way.
    """
    written = np.stack([written_by(model, trace, unit, position) for unit in units])
    if model.project_out is not None:
        written = linear(written, model.project_out.stored)
    logits: Array = against_rows(written, model.output_table) * model.spec.logit_scale
    return logits


def written_by(model: Model, trace: Trace, unit: Unit, position: int) -> Array:
    """What a unit at a value of 1 puts into the list that leaves the last norm: [d]."""
    layer, i = unit
    stored = model.blocks[layer].mlp.down.stored
    x: Array = rows(stored, slice(i, i + 1), FLOAT64)[0] * model.spec.residual_scale
    for name in reversed(norms_after(trace, layer)):
        x = frozen(model, name, x, sigma(trace, name, position))
    return x


def norms_after(trace: Trace, layer: int) -> list[str]:
    """The norms on the direct way from the units of a layer to the logits, the last one first."""
    return norms_between(trace, end(trace), ("mlp_out", layer))


def way_after(trace: Trace, layer: int) -> list[Value]:
    """The values on the direct way from the units of a layer to the logits, the last one first."""
    return way(trace, end(trace), ("mlp_out", layer))


def reads_along(model: Model, trace: Trace, w: Linear, unit: Unit) -> Array:
    """The direction in which token embeddings turn a unit on, whatever their length: [d].

    Its column of a matrix, with the gain of every norm that the token's own row passes on its
    direct way to the unit; in a layer norm less its mean.
    """
    layer, i = unit
    u: Array = rows(w.stored.T, slice(i, i + 1), FLOAT64)[0]  # [d, F] -> [d]
    for name in norms_before(trace, layer):
        u = frozen_back(model, name, u)
    return u


def norms_before(trace: Trace, layer: int) -> list[str]:
    """The norms on the direct way from the token's embedding to the units, the last one first."""
    (start,) = sources(trace, "mlp", layer)
    return norms_between(trace, start, ("token_embeddings", None))


def likeness(model: Model, direction: Array) -> Array:
    """The cosine of every token's embedding with a direction: [V]; NaN for rows of zeros."""
    table = model.token_table
    if model.project_in is not None:
        table = Widened(table, model.project_in)
    cosines: Array = near(space(table), direction[None]).cosines[0]
    return cosines
