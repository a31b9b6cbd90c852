"""The arrays of a model, in one layout for every family; a part that a family lacks is None."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from gptscope.model.dtypes import widen

if TYPE_CHECKING:
    from gptscope.model.spec import Spec
    from gptscope.tokens import Tokenizer

Array = NDArray[Any]
P = TypeVar("P")
FLOAT32 = np.dtype(np.float32)


@dataclass(frozen=True, eq=False)
class Linear:
    """X W + b."""

    weight: Array  # [in, out]
    bias: Array | None  # [out]


@dataclass(frozen=True, eq=False)
class Norm:
    """Gain and shift of a normalisation."""

    gain: Array  # [d]
    shift: Array | None  # [d]


@dataclass(frozen=True, eq=False)
class Attention:
    """Queries, keys and values of all heads side by side, and the output matrix."""

    q: Linear  # [d, H*d_h]
    k: Linear
    v: Linear
    out: Linear  # [H*d_h, d]
    scale: float  # what q k' is multiplied by: 1/sqrt(d_h) in the 2017 paper
    turning: tuple[float, ...] | None = None  # rotary: radians per position of each pair (i, i + P)


@dataclass(frozen=True, eq=False)
class Mlp:
    """The feed-forward layer."""

    up: Linear  # [d, F]
    down: Linear  # [F, d]


@dataclass(frozen=True, eq=False)
class Block:
    """One of the L blocks."""

    ln1: Norm
    attention: Attention
    ln2: Norm
    mlp: Mlp


@dataclass(frozen=True, eq=False)
class Model:
    """Everything that a pass needs. The large tables stay as they lie in the file."""

    spec: Spec
    token_table: Array  # [V, d]
    position_table: Array | None  # [ctx, d]
    blocks: Sequence[Block]
    ln_final: Norm | None
    unembedding: Array  # [d, V]; tied: the token table turned
    tied: bool
    dtype: np.dtype[Any] = FLOAT32  # what is computed in, at the least
    name: str = ""
    n_params: int = 0
    bos_id: int | None = None
    end_ids: tuple[int, ...] = ()
    tokenizer: Tokenizer | None = field(default=None, repr=False)

    def norm(self, name: str) -> Norm:
        """The weights of `layers.0.ln1`, `layers.0.ln2`, ... or `ln_final`.

        Raises:
            KeyError: there is none of this name.
        """
        _, layer, which = name.split(".") if "." in name else ("", "", name)
        found = getattr(self.blocks[int(layer)], which) if layer else self.ln_final
        if found is None:
            raise KeyError(name)
        norm: Norm = found
        return norm


class Blocks(Sequence[Block]):
    """The blocks as they lie in the file; each is widened when it is asked for."""

    def __init__(self, stored: Sequence[Block], dtype: np.dtype[Any]) -> None:
        """Hold the stored arrays, which may be views of a mapped file."""
        self._stored, self._dtype = stored, dtype
        self._wide_enough: set[int] = set()

    def __len__(self) -> int:
        """L."""
        return len(self._stored)

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> Blocks: ...
    def __getitem__(self, index: int | slice) -> Block | Blocks:
        """One block, widened; or some of them, still as stored."""
        if isinstance(index, slice):
            return Blocks(self._stored[index], self._dtype)
        block = self._stored[index]
        if index in self._wide_enough:
            return block
        wide = widened(block, self._dtype)
        if wide is block:
            self._wide_enough.add(index)
        return wide


def widened(part: P, dtype: np.dtype[Any]) -> P:
    """The part with every array in it widened to at least `dtype`; itself if none had to be."""
    if isinstance(part, np.ndarray):
        return widen(part, dtype)  # type: ignore[return-value]
    if not is_dataclass(part) or isinstance(part, type):
        return part
    old = {f.name: getattr(part, f.name) for f in fields(part)}
    new = {name: widened(value, dtype) for name, value in old.items()}
    return part if all(new[name] is old[name] for name in old) else replace(part, **new)


def arrays(part: object) -> Iterator[Array]:
    """Every array of a part, or of several."""
    if isinstance(part, np.ndarray):
        yield part
    elif isinstance(part, tuple):
        for one in part:
            yield from arrays(one)
    elif is_dataclass(part):
        for f in fields(part):
            yield from arrays(getattr(part, f.name))
