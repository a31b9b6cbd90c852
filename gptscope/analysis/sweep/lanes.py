"""Many passes side by side, layer by layer: each begins in the layer where it first differs.

So the layers before an edit are computed once, a block is read and widened once for all passes, and
of a pass no more is held than its stream and what others take from it in one layer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.sweep.together import at_once, blocks_of
from gptscope.engine.forward import embed
from gptscope.engine.step import Step
from gptscope.model.blocks import widened
from gptscope.model.memory import room
from gptscope.model.weights import FLOAT32, n_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gptscope.engine.edits import Edits
    from gptscope.model.weights import Block, Model

Array = NDArray[np.floating[Any]]
Seen = Mapping[tuple["Lane", str], Array]  # what lanes have noted in this layer, by key
Put = Callable[[Array, Seen], Array]  # a value with all its heads -> what goes on in its place


@dataclass(frozen=True, eq=False)
class Lane:
    """A pass: over tokens, or the same as its parent until a layer in which it is changed."""

    ids: NDArray[np.int64] | None = None  # [T], where it has no parent
    parent: Lane | None = None
    changes: Mapping[tuple[str, int], Put] = field(default_factory=dict)  # by key and layer
    begins: int = 0  # the layer of the first change
    ends: int | None = None  # the last layer that is needed; None: to the end
    takes: tuple[Lane, ...] = ()  # whose values its changes use
    notes: frozenset[str] = frozenset()  # keys of the values that others take from it

    def runs_in(self, layer: int) -> bool:
        """Whether this layer has to be computed."""
        return self.begins <= layer and (self.ends is None or layer <= self.ends)


class Listener:
    """The hook of a lane: it changes what the lane changes, and notes what others take."""

    def __init__(self, lane: Lane, seen: MutableMapping[tuple[Lane, str], Array]) -> None:
        """`seen` is where values are noted."""
        self._lane, self._seen = lane, seen

    def __call__(self, key: str, value: Array, layer: int | None = None) -> Array:
        """The value, changed if the lane changes it."""
        put = None if layer is None else self._lane.changes.get((key, layer))
        if put is not None:
            value = put(value, self._seen)
        if key in self._lane.notes:
            self._seen[self._lane, key] = value
        return value

    def wants(self, key: str, layer: int | None) -> bool:
        """Whether this value is changed or noted."""
        return key in self._lane.notes or (key, layer) in self._lane.changes


def with_sources(lanes: Sequence[Lane]) -> list[Lane]:
    """These lanes and all that they begin from or take from, each after its sources."""
    found: dict[Lane, None] = {}

    def add(lane: Lane) -> None:
        if lane not in found:
            for source in (*((lane.parent,) if lane.parent else ()), *lane.takes):
                add(source)
            found[lane] = None

    for lane in lanes:
        add(lane)
    return list(found)


def streams(
    model: Model, lanes: Sequence[Lane], edits: Edits | None, tick: Callable[[int], None]
) -> dict[Lane, Array]:
    """What every lane leaves after its last layer [T, d]; `lanes` come after their sources.

    `edits` are made in all of them, before their own changes. `tick` is called after each block.
    """
    seen: dict[tuple[Lane, str], Array] = {}
    n_tokens = next(len(lane.ids) for lane in lanes if lane.ids is not None)
    hooks = {lane: Listener(lane, seen) for lane in lanes}
    changed = {lane: edits.hook(n_tokens, hook) if edits else hook for lane, hook in hooks.items()}
    at = np.arange(n_tokens)
    found = {
        lane: embed(model, lane.ids, at, changed[lane]) for lane in lanes if lane.ids is not None
    }
    for layer in range(model.spec.n_layers):
        seen.clear()
        entering, weights = dict(found), for_many(model.blocks[layer])
        parts = in_turn([lane for lane in lanes if lane.runs_in(layer)])
        n = at_once(max(map(len, parts)), n_tokens)
        for part in parts:
            given = [entering[entered_as(lane, entering)] for lane in part]
            steps = [Step(model.spec, layer, at, changed[lane], None) for lane in part]
            for lane, x in zip(part, blocks_of(given, weights, steps, n), strict=True):
                found[lane] = x
                tick(1)
    return found


def entered_as(lane: Lane, streams: Mapping[Lane, Array]) -> Lane:
    """The lane whose stream it goes on with: its own, or where it begins, that of its parent."""
    return lane if lane in streams or lane.parent is None else lane.parent


def in_turn(lanes: Sequence[Lane]) -> list[list[Lane]]:
    """The lanes in parts, each after those whose values it takes."""
    turn: dict[Lane, int] = {}
    for lane in lanes:
        turn[lane] = max((turn[one] + 1 for one in lane.takes if one in turn), default=0)
    turns = sorted(set(turn.values()))
    return [[lane for lane in lanes if turn[lane] == one] for one in turns]


def for_many(one: Block) -> Block:
    """A block for many passes: widened once, if there is room for it."""
    return widened(one) if n_numbers(one) * FLOAT32.itemsize <= room() else one


def batches(model: Model, lanes: Sequence[Lane], n_tokens: int) -> Iterator[Sequence[Lane]]:
    """The lanes in parts whose streams fit into a share of the free memory."""
    one = n_tokens * model.spec.d_model * model.dtype.itemsize
    sources = max((len(with_sources([lane])) for lane in lanes), default=1)
    most = max(1, room() // (one * sources))
    return (lanes[first : first + most] for first in range(0, len(lanes), most))


def work(model: Model, lanes: Sequence[Lane], n_tokens: int) -> int:
    """How many blocks will be computed."""
    layers = range(model.spec.n_layers)
    every = (with_sources(part) for part in batches(model, lanes, n_tokens))
    return sum(lane.runs_in(layer) for part in every for lane in part for layer in layers)
