"""The arrays of a model, in one layout for every family; a part that a family lacks is None."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from gptscope.model.dtypes import widen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gptscope.model.spec import Spec
    from gptscope.tokens import Tokenizer

Array = NDArray[Any]
FLOAT32 = np.dtype(np.float32)


class Table(Protocol):
    """Rows that may lie in a file, packed or in a narrow dtype: read only where they are used."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """How the numbers lie there."""

    def __getitem__(self, index: Any, /) -> Array:  # noqa: ANN401
        """Rows, by ids or as a slice."""

    def __array__(self, dtype: Any = None, /, *, copy: bool | None = None) -> Array:  # noqa: ANN401
        """All of them."""


@dataclass(frozen=True, eq=False)
class Linear:
    """X W + b; the matrix stays as it lies in the file, which may be in a narrow dtype."""

    stored: Array  # [in, out]
    bias: Array | None  # [out]

    @property
    def weight(self) -> Array:
        """The matrix [in, out], widened to at least float32."""
        return widen(self.stored, FLOAT32)


@dataclass(frozen=True, eq=False)
class Norm:
    """Gain and shift of a normalisation."""

    gain: Array  # [d]
    shift: Array | None  # [d]


@dataclass(frozen=True)
class Turning:
    """How queries and keys turn with their position, pair (i, i + P) by pair.

    Su et al. 2021, "RoFormer", section 3.2.2; what reaches beyond the trained length is in
    model.rotary.
    """

    speeds: tuple[float, ...]  # radians per position of each of the P pairs
    factor: float = 1.0  # cos and sin times this
    stretched: Callable[[int], tuple[float, ...]] | None = None  # speeds in a text of n tokens

    def speeds_at(self, length: int) -> tuple[float, ...]:
        """The speeds in a text of so many tokens."""
        return self.speeds if self.stretched is None else self.stretched(length)


@dataclass(frozen=True, eq=False)
class Attention:
    """Queries, keys and values of all heads side by side, and the output matrix."""

    q: Linear  # [d, H*d_h]
    k: Linear  # [d, G*d_h]: H / G heads in a row share their keys and values
    v: Linear
    out: Linear  # [H*d_h, d]
    scale: float  # what q k' is multiplied by: 1/sqrt(d_h) in the 2017 paper
    turning: Turning | None = None  # rotary positions
    q_norm: Norm | None = None  # gain [d_h], [H, 1, d_h] or, over all heads at once, [H*d_h]
    k_norm: Norm | None = None
    window: int | None = None  # how many tokens are seen, itself among them; None: all
    slopes: tuple[float, ...] | None = None  # ALiBi: what each head takes off per token of distance


@dataclass(frozen=True, eq=False)
class Mlp:
    """The feed-forward layer."""

    up: Linear  # [d, F]
    down: Linear  # [F, d]
    gate: Linear | None = None  # [d, F]: its activation multiplies what `up` gives


@dataclass(frozen=True, eq=False)
class Block:
    """One of the L blocks."""

    ln1: Norm
    attention: Attention
    ln2: Norm | None  # None: attention and feed-forward layer share the first
    mlp: Mlp
    ln1_post: Norm | None = None  # after attention, before its sum
    ln2_post: Norm | None = None  # after the feed-forward layer, before its sum


@dataclass(frozen=True, eq=False)
class Model:
    """Everything that a pass needs. The large tables stay as they lie in the file."""

    spec: Spec
    token_table: Table  # [V, d]
    position_table: Table | None  # [ctx, d]
    blocks: Sequence[Block]
    ln_final: Norm | None
    output_table: Table  # [V, d]; tied: the token table
    tied: bool
    dtype: np.dtype[Any] = FLOAT32  # what is computed in, at the least
    embed_norm: Norm | None = None
    project_in: Linear | None = None  # where the tables are narrower than the stream
    project_out: Linear | None = None
    output_bias: Array | None = None  # [V]
    name: str = ""
    n_params: int = 0
    bos_id: int | None = None
    end_ids: tuple[int, ...] = ()
    tokenizer: Tokenizer | None = field(default=None, repr=False)
    look: Callable[[], None] | None = field(default=None, repr=False)  # for what is not finite
    no_tokenizer: str = "this model has no tokenizer.json"  # why, where it has none

    def watch(self, x: Array) -> None:
        """Look for the tensor behind it, if what a pass gives is not finite.

        NaN or an infinity in any matrix reaches the stream of every token, so that nothing has to
        be read for this while all is well.

        Warns:
            NotFiniteWarning: it names the first tensor of the file that holds one.
        """
        if self.look is not None and not np.isfinite(x).all():
            self.look()

    @property
    def unembedding(self) -> Array:
        """The output table turned, [d, V], all of it widened."""
        return widen(np.asarray(self.output_table), self.dtype).T

    def norm(self, name: str) -> Norm:
        """The weights of `layers.0.ln1`, `layers.0.ln2`, ..., `ln_final` or `embed_norm`.

        Raises:
            KeyError: there is none of this name.
        """
        _, layer, which = name.split(".") if "." in name else ("", "", name)
        found = getattr(self.blocks[int(layer)] if layer else self, which, None)
        if found is None:
            raise KeyError(name)
        norm: Norm = found
        return norm


def rows(table: Table, index: Any, dtype: np.dtype[Any]) -> Array:  # noqa: ANN401
    """Rows of a table that lies in a file, widened to at least `dtype`."""
    return widen(np.asarray(table[index]), dtype)


def n_numbers(*parts: object) -> int:
    """How many numbers parts hold: tables, arrays, and what is made of them."""
    return sum(math.prod(table.shape) for table in tables(parts))


def tables(part: object) -> Iterator[Table]:
    """Every table and array of a part, or of several."""
    if isinstance(part, tuple | list):
        for one in part:
            yield from tables(one)
    elif hasattr(part, "shape"):
        yield cast("Table", part)
    elif is_dataclass(part):
        for f in fields(part):
            yield from tables(getattr(part, f.name))
