"""What is looked at in attention: which step, in which scale, which rows and columns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from gptscope.commands.places import places
from gptscope.glyphs import token_glyphs

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gptscope.commands.session import Run
    from gptscope.engine.trace import Trace

NUMBERS, SMALL = 32, 128  # tokens that are shown unasked: as numbers, and in small grids

Where = tuple[int, int]  # layer and head


class Stage(StrEnum):
    """What stands in the cells: three steps from the product of query and key to the weight."""

    scores = "scores"
    scaled = "scaled"
    weights = "weights"


class Scale(StrEnum):
    """How a weight is written and coloured."""

    linear = "linear"
    log = "log"
    rank = "rank"


KEYS = {Stage.scores: "scores", Stage.scaled: "scaled_masked", Stage.weights: "weights"}


@dataclass(frozen=True)
class Window:
    """Which rows and columns of n tokens are shown."""

    rows: Sequence[int]
    columns: Sequence[int]
    n: int
    asked: bool = True

    @property
    def whole(self) -> bool:
        """Whether nothing is left out."""
        return [*self.rows] == [*self.columns] == [*range(self.n)]


@dataclass(frozen=True, eq=False)
class Look:
    """A pass, and what of it is to be seen."""

    run: Run
    trace: Trace
    window: Window
    stage: Stage = Stage.weights
    scale: Scale = Scale.linear
    no_first: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The text of each token."""
        return self.run.labels

    def weights(
        self, where: Where, rows: Sequence[int]
    ) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
        """The weights of some rows, without the first token if so asked, and what is hidden."""
        from gptscope.analysis.attention import no_first

        weights, hidden = self.values(where, rows, Stage.weights)
        return no_first(weights, hidden) if self.no_first else (weights, hidden)

    def values(
        self, where: Where, rows: Sequence[int], stage: Stage
    ) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
        """Some rows of one head in one step, and what is hidden."""
        import numpy as np

        layer, head = where
        scope = self.trace.layers[layer].heads[head]
        return getattr(scope, KEYS[stage])[rows], np.isneginf(scope.scaled_masked[rows])


def window_of(
    run: Run, asked: tuple[str | None, str | None, int | None], most: int | None = None
) -> Window:
    """The rows and columns of --rows, --cols and --last; unasked, the end of at most `most` tokens.

    Of a model with a mask, columns that no row sees are left out.
    """
    n, (rows, columns, last) = len(run.ids), asked
    if rows is None and columns is None:
        start = max(0, n - (last or most or n))
        return Window(range(start, n), range(start, n), n, asked=bool(last))
    chosen = places("--rows", ":" if rows is None else rows, n, "token")
    seen = f":{max(chosen) + 1}" if run.model.spec.causal else ":"
    return Window(chosen, places("--cols", seen if columns is None else columns, n, "token"), n)


def spoken(positions: Sequence[int]) -> str:
    """Positions in words: `3 to 9` where none is missing, else one by one."""
    first, last = positions[0], positions[-1]
    if len(positions) > 2 and [*positions] == [*range(first, last + 1)]:
        return f"{first} to {last}"
    return ", ".join(map(str, positions))


def named(look: Look, at: int) -> str:
    """A token in words; the last is called so."""
    text = token_glyphs(look.labels[at])
    return f"the last token {text}" if at == len(look.labels) - 1 else f"token {at} {text}"
