"""What becomes of a value, and what that is read from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import re

    from gptscope.engine.index import Index
    from gptscope.engine.spot import Spot
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]
Encode = Callable[[str], Sequence[int]]
Made = Callable[[Array, "Spot"], Any]  # the whole value -> what goes to the index of the spot


@dataclass(frozen=True)
class Change:
    """What becomes of a value."""

    made: Made
    by_row: bool = False  # of each token whatever the others are
    tried: bool = True  # whether it may be tried on zeros first, to see whether its shape fits
    remark: str = ""  # what is to be told of it, in a sentence without a full stop

    def __call__(self, value: Array, spot: Spot) -> Any:  # noqa: ANN401
        """What goes to the index of the spot."""
        return self.made(value, spot)

    def check(self, spot: Spot) -> None:
        """Whether the shape will fit.

        Raises:
            UsageError: it will not.
        """
        if self.tried:
            like = np.broadcast_to(np.float32(0), spot.shape)
            spot.check(np.shape(self.made(like, spot)), like[spot.index].shape)


@dataclass(frozen=True)
class Asked:
    """What a change is read from: its words, of which values, in which model."""

    words: re.Match[str]
    pattern: str
    index: Index
    model: Model
    encode: Encode
