"""What is asked of the logits after each pass, as one number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.sweep.lanes import batches, streams, with_sources
from gptscope.engine.forward import unembed
from gptscope.engine.hook_points import BY_KEY
from gptscope.engine.step import untouched

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gptscope.analysis.sweep.lanes import Lane
    from gptscope.analysis.sweep_choices import Measure
    from gptscope.engine.edits import Edits
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]
AT_ONCE = 64  # rows of logits that are held


@dataclass(frozen=True, eq=False)
class Setting:
    """What passes are made in, and what is asked of each."""

    model: Model
    position: int  # of the token after which logits are looked at
    measure: Measure
    edits: Edits | None = None  # made in all passes
    tick: Callable[[int], None] = lambda _: None  # called after each block

    @property
    def edits_the_end(self) -> bool:
        """Whether something after the last block is edited."""
        places = self.edits.places if self.edits else ()
        return any(BY_KEY[key].at_the_end for key, _ in places)


def measured(setting: Setting, lanes: Sequence[Lane], n_tokens: int) -> NDArray[np.float64]:
    """The number that is asked for after each of these passes, in their order.

    What leaves the last block alike is measured once: it is the same number to the last bit.
    """
    first: dict[bytes, int] = {}
    rows, which = list[Array](), list[int]()
    for row in last_rows(setting, lanes, n_tokens):
        known = first.setdefault(row.tobytes(), len(rows))
        rows += [row] * (known == len(rows))
        which.append(known)
    return np.array([float(setting.measure(row)) for row in logits_of(setting, rows)])[which]


def last_rows(setting: Setting, lanes: Sequence[Lane], n_tokens: int) -> Iterator[Array]:
    """The stream of each lane at the position [d]; its logits [V] where their making is edited."""
    model, edits, at = setting.model, setting.edits, setting.position
    for part in batches(model, lanes, n_tokens):
        found = streams(model, with_sources(part), edits, setting.tick)
        for lane in part:
            if edits and setting.edits_the_end:
                yield unembed(model, found[lane], edits.hook(n_tokens, untouched))[at]
            else:
                yield found[lane][at].copy()


def logits_of(setting: Setting, rows: Sequence[Array]) -> Iterator[Array]:
    """The logits [V] of each row that `last_rows` gave."""
    if setting.edits_the_end:
        yield from rows
        return
    for first in range(0, len(rows), AT_ONCE):
        yield from unembed(setting.model, np.stack(rows[first : first + AT_ONCE]))
