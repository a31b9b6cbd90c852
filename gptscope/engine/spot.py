"""Where in a pass something is changed: a value, one head of it, some of its numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.aliases import as_gptscope, as_transformer_lens, axes_of
from gptscope.engine.needs import letters
from gptscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gptscope.engine.hook_points import HookPoint
    from gptscope.engine.index import Index
    from gptscope.model.spec import Spec

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Spot:
    """Some numbers of one value of a pass over so many tokens.

    By its name in TransformerLens, a value is that of all heads, and lies as it does there.
    """

    point: HookPoint
    layer: int | None
    row: int | None  # of the stacked heads [H or G, ...]; None where it has none, or of all
    head: int | None  # which reads that row
    spec: Spec
    n_tokens: int
    alias: str = ""
    index: Index = ()

    @property
    def name(self) -> str:
        """The full name of the value, as a trace has it."""
        return (self.alias or self.point.name).format(l=self.layer, h=self.head)

    @property
    def axes(self) -> list[str]:
        """The letters of its axes."""
        return axes_of(self.point) if self.alias else self.point.axes.split()

    @property
    def shape(self) -> tuple[int, ...]:
        """How large it is."""
        sizes = letters(self.spec, self.n_tokens)
        if self.alias and self.point.key[0] in "kv":
            sizes["H"] = self.spec.n_kv_heads
        return tuple(sizes[axis] for axis in self.axes)

    def put(self, value: Array, made: Callable[[Array, Spot], Any]) -> Array:
        """The value with what is made of it at the index.

        Raises:
            UsageError: the shape does not fit.
        """
        if self.alias:
            turned = as_transformer_lens(self.point, value, self.spec.norm_eps)
            new = self.placed(turned, made(turned, self))
            return as_gptscope(self.point, new, self.spec.norm_eps)
        if self.row is None:
            return self.placed(value, made(value, self))
        whole = value.copy()
        whole[self.row] = self.placed(value[self.row], made(value[self.row], self))
        return whole

    def placed(self, value: Array, new: Any) -> Array:  # noqa: ANN401
        """A copy of the value with something else at the index.

        Raises:
            UsageError: the shape does not fit.
        """
        changed = value.copy()
        self.check(np.shape(new), np.shape(changed[self.index]))
        changed[self.index] = new
        return changed

    def equal(self, given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        """Whether two shapes are the same: nothing is spread over tokens unasked.

        Raises:
            UsageError: they are not.
        """
        if given != wanted:
            raise self.unfit(given, wanted)

    def check(self, given: tuple[int, ...], wanted: tuple[int, ...]) -> None:
        """Whether one shape can be spread to the other.

        Raises:
            UsageError: it cannot.
        """
        try:
            fits = np.broadcast_shapes(given, wanted) == wanted
        except ValueError:
            fits = False
        if not fits:
            raise self.unfit(given, wanted)

    def unfit(self, given: tuple[int, ...], wanted: tuple[int, ...]) -> UsageError:
        """What is said where a shape does not fit."""
        shape, has = (" x ".join(map(str, one)) or "one number" for one in (given, wanted))
        return UsageError(f"{self.name}: {shape} does not fit where there is {has}")
