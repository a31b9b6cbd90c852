"""The blocks of a model as sequences: made when they are asked for, or kept for many passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, overload

from gptscope.model.memory import room
from gptscope.model.weights import FLOAT32, Block, Linear, n_numbers

P = TypeVar("P")


class Blocks(Sequence[Block]):
    """The blocks of a file: each is made of its tensors when it is asked for, the last one kept.

    One block at a time lives in memory; `outlines` have the shapes of all, and no numbers.
    """

    def __init__(
        self,
        make: Callable[[int], Block],
        outlines: Sequence[Block],
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        """`make` gives the block of a layer; `forget` gives back the memory of what was read."""
        self._make, self.outlines, self._forget = make, outlines, forget
        self._last: tuple[int, Block] | None = None

    def __len__(self) -> int:
        """L."""
        return len(self.outlines)

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Block, ...]: ...
    def __getitem__(self, index: int | slice) -> Block | tuple[Block, ...]:
        """One block; or several, all in memory.

        Raises:
            IndexError: there are fewer.
        """
        if isinstance(index, slice):
            return tuple(self._make(i) for i in range(len(self))[index])
        layer = range(len(self))[index]
        if self._last is not None and self._last[0] == layer:
            return self._last[1]
        self._last = None  # it goes before the next one comes
        self._forget()
        made = self._make(layer)
        self._last = (layer, made)
        return made


class Told(Sequence[Block]):
    """Blocks that tell each time that one more of them is asked for."""

    def __init__(self, blocks: Sequence[Block], tell: Callable[[], None]) -> None:
        """`tell` is called before the block is there."""
        self.inner, self._tell, self._layer = blocks, tell, -1

    def __len__(self) -> int:
        """L."""
        return len(self.inner)

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Block, ...]: ...
    def __getitem__(self, index: int | slice) -> Block | tuple[Block, ...]:
        """One block, or several."""
        if isinstance(index, slice):
            return tuple(self.inner[index])
        if index != self._layer:
            self._layer = index
            self._tell()
        return self.inner[index]


def kept(blocks: Sequence[Block]) -> Sequence[Block]:
    """The blocks for many passes, kept as far as a share of the free memory allows."""
    return Kept(blocks, room())


class Kept(Sequence[Block]):
    """Blocks for many passes: widened once, and kept as far as they fit into a number of bytes."""

    def __init__(self, blocks: Sequence[Block], room: int) -> None:
        """Nothing is kept yet."""
        self.inner, self._room = blocks, room
        self._kept: dict[int, Block] = {}

    def __len__(self) -> int:
        """L."""
        return len(self.inner)

    @overload
    def __getitem__(self, index: int) -> Block: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Block, ...]: ...
    def __getitem__(self, index: int | slice) -> Block | tuple[Block, ...]:
        """One block, or several."""
        if isinstance(index, slice):
            return tuple(self[i] for i in range(len(self))[index])
        if index in self._kept:
            return self._kept[index]
        block = self.inner[index]
        taken = FLOAT32.itemsize * n_numbers(block)
        if taken <= self._room:
            self._room -= taken
            self._kept[index] = block = widened(block)
        return block


def widened(part: P) -> P:
    """The part with every matrix in it widened."""
    if isinstance(part, Linear):
        return replace(part, stored=part.weight)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    return replace(part, **{f.name: widened(getattr(part, f.name)) for f in fields(part)})


def outlines(blocks: Sequence[Block]) -> Sequence[Block]:
    """Blocks of the right parts and shapes, without the cost of reading them."""
    while isinstance(blocks, Kept | Told):
        blocks = blocks.inner
    return blocks.outlines if isinstance(blocks, Blocks) else blocks
