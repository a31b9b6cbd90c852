"""The blocks of a model as sequences: made when they are asked for, or kept for many passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar, overload

from gptscope.model.memory import room
from gptscope.model.weights import FLOAT32, Block, Linear, n_numbers

P = TypeVar("P")


class Made(Sequence[Block]):
    """Blocks that are made one by one; `outlines` have the shapes of all, and no numbers."""

    def __init__(self, outlines: Sequence[Block]) -> None:
        """Nothing is made yet."""
        self.outlines = outlines

    def one(self, layer: int) -> Block:
        """The block of a layer."""
        raise NotImplementedError

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
        layers = range(len(self))
        if isinstance(index, slice):
            return tuple(self.one(layer) for layer in layers[index])
        return self.one(layers[index])


class Blocks(Made):
    """The blocks of a file: each is made of its tensors when it is asked for, the last one kept."""

    def __init__(
        self,
        make: Callable[[int], Block],
        outlines: Sequence[Block],
        forget: Callable[[], None] = lambda: None,
    ) -> None:
        """`make` gives the block of a layer; `forget` gives back the memory of what was read."""
        super().__init__(outlines)
        self._make, self._forget = make, forget
        self._last: tuple[int, Block] | None = None

    def one(self, layer: int) -> Block:
        """The block of a layer; the one before goes, so that one at a time is in memory."""
        if self._last is not None and self._last[0] == layer:
            return self._last[1]
        self._last = None
        self._forget()
        made = self._make(layer)
        self._last = (layer, made)
        return made


class Counted(Made):
    """Blocks that tell whenever another one is asked for: for a progress bar."""

    def __init__(self, blocks: Sequence[Block], tell: Callable[[], None]) -> None:
        """`tell` is called before the block is there."""
        super().__init__(outlines(blocks))
        self._blocks, self._tell, self._layer = blocks, tell, -1

    def one(self, layer: int) -> Block:
        """The block of a layer, told if it is not the one before."""
        if layer != self._layer:
            self._layer = layer
            self._tell()
        return self._blocks[layer]


class Kept(Made):
    """Blocks for many passes: widened once, and kept as far as they fit into a number of bytes."""

    def __init__(self, blocks: Sequence[Block], room: int) -> None:
        """Nothing is kept yet."""
        super().__init__(outlines(blocks))
        self._blocks, self._room = blocks, room
        self._kept: dict[int, Block] = {}

    def one(self, layer: int) -> Block:
        """The block of a layer, kept if there is room."""
        if layer in self._kept:
            return self._kept[layer]
        block = self._blocks[layer]
        taken = FLOAT32.itemsize * n_numbers(block)
        if taken <= self._room:
            self._room -= taken
            self._kept[layer] = block = widened(block)
        return block


def kept(blocks: Sequence[Block]) -> Sequence[Block]:
    """The blocks for many passes, kept as far as a share of the free memory allows."""
    return Kept(blocks, room())


def widened(part: P) -> P:
    """The part with every matrix in it widened."""
    if isinstance(part, Linear):
        return replace(part, stored=part.weight)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    return replace(part, **{f.name: widened(getattr(part, f.name)) for f in fields(part)})


def outlines(blocks: Sequence[Block]) -> Sequence[Block]:
    """Blocks of the right parts and shapes, without the cost of reading them."""
    return blocks.outlines if isinstance(blocks, Made) else blocks
