"""What is asked of heads, and what a score is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gptscope.errors import UsageError, check_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gptscope.commands.session import Run
    from gptscope.model.spec import Spec

    Array = NDArray[np.floating[Any]]

SHOWN, FEW = 24, 8  # heads in a list of all; of one kind
COPYING, EIGEN = "copying", "eigen"  # scores of the weights


@dataclass(frozen=True)
class Asked:
    """Which heads are looked at, and how they are shown."""

    layer: int | None = None
    head: int | None = None
    sort: str | None = None
    top: int | None = None

    @property
    def one(self) -> bool:
        """Whether a single head is looked at."""
        return self.layer is not None and self.head is not None

    def layers(self, spec: Spec) -> Sequence[int]:
        """The layers that are looked at.

        Raises:
            UsageError: there is no such layer.
        """
        n = spec.n_layers
        return range(n) if self.layer is None else [check_index("layer", self.layer, n)]

    def heads(self, spec: Spec) -> Sequence[int]:
        """The heads that are looked at in each layer.

        Raises:
            UsageError: there is no such head.
        """
        n = spec.n_heads
        return range(n) if self.head is None else [check_index("head", self.head, n)]

    def limit(self, spec: Spec) -> int:
        """How many heads are shown in a list of all: those of one layer, or few."""
        return self.top or (SHOWN if self.layer is None else max(SHOWN, spec.n_heads))

    def every(self, spec: Spec) -> list[tuple[int, int]]:
        """The heads that are looked at, in the order of the model."""
        return [(layer, head) for layer in self.layers(spec) for head in self.heads(spec)]


@dataclass(frozen=True)
class Draw:
    """Which random tokens are read."""

    seeds: int
    n: int  # in a half
    bos: bool


@dataclass(frozen=True, eq=False)
class Score:
    """One score of all heads on one kind of input."""

    values: Array  # [L, H]
    chance: Array  # [L]
    rows: Any  # [L]: how many rows count, of one pass; None: not a matter of rows
    error: Array | None = None  # [L, H]: the standard error


def has_word(score: Score, at: tuple[int, int]) -> bool:
    """Whether a head is called by the name of a score; never where there is no standard error."""
    from gptscope.analysis.heads.verdict import is_far_beyond

    if score.error is None:
        return False
    return is_far_beyond(
        float(score.values[at]), float(score.error[at]), float(score.chance[at[0]])
    )


def draw_of(run: Run, seeds: int, n: int | None, *, bos: bool | None) -> Draw | None:
    """The random tokens that fit this model; None where none are asked for, or fit.

    Raises:
        UsageError: more are asked for than fit into the context, or than there are.
    """
    from gptscope.analysis.heads.random_tokens import LEAST, LENGTH, longest, n_plain

    tokenizer = run.model.tokenizer
    first = bos if bos is not None else tokenizer is not None and tokenizer.adds_bos
    first = first and run.model.bos_id is not None
    if seeds == 0:
        return None
    room = longest(run.model, bos=first)
    if n is not None and n > room:
        raise UsageError(
            f"--random-tokens {n} do not fit twice into the context of {run.model.spec.n_ctx}",
            hint=f"at most {room} do" if room >= LEAST else "--seeds 0 looks at the text alone",
        )
    fit = n_plain(run.model, min(room, LENGTH if n is None else n))
    if n is not None and fit < n:
        raise UsageError(f"--random-tokens {n} are more than the {fit} that are not special")
    return Draw(seeds, fit, first) if fit >= LEAST else None
