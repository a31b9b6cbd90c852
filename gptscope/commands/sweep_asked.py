"""What a sweep is asked about: the passes, the place, the tokens, and the number that is taken."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from gptscope.analysis.sweep_choices import METRICS
from gptscope.commands.answers import APART, likeliest, wanted
from gptscope.commands.session import Run, token_text
from gptscope.commands.sweep_texts import runs
from gptscope.errors import UsageError, check_index
from gptscope.glyphs import token_glyphs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gptscope.analysis.sweep import Lane
    from gptscope.analysis.sweep_choices import Measure, Metric
    from gptscope.commands.options import Pass
    from gptscope.model.weights import Model

    Array = NDArray[np.floating[Any]]


class Direction(StrEnum):
    """Which run is patched: the corrupt one with clean values, the clean one with corrupt ones."""

    denoise = "denoise"
    noise = "noise"
    both = "both"


@dataclass(frozen=True, eq=False)
class Asked:
    """The run of the text, or of the clean and the corrupt text, and what is asked of it."""

    run: Run
    corrupt: Run | None
    position: int
    metric: str  # of METRICS
    wanted: Mapping[int, float]  # token id -> how often it counts
    roles: tuple[str, str]  # what each of them is
    logits: tuple[Array, ...]  # [V] of the run, and of the corrupt one, at the position

    @property
    def model(self) -> Model:
        """The model that runs."""
        return self.run.model

    @property
    def formula(self) -> Metric:
        """The metric that is asked for."""
        return METRICS[self.metric]

    @property
    def is_distance(self) -> bool:
        """Whether it is how far all logits are from those of the first pass."""
        return self.formula.is_distance

    @property
    def first(self) -> int:
        """The first token in which the two texts differ."""
        other = self.run.ids if self.corrupt is None else self.corrupt.ids
        pairs = enumerate(zip(self.run.ids, other, strict=True))
        return next((i for i, (one, two) in pairs if one != two), 0)

    @property
    def tokens(self) -> Sequence[int]:
        """Positions where a change of one token can have an effect on what is asked."""
        if not self.model.spec.causal or self.run.edits is not None:
            return range(len(self.run.ids))
        return range(self.first, max(self.position, self.first) + 1)

    @property
    def what(self) -> str:
        """The number in words: `answer - against (logit of ·mom less that of ·dad)`."""
        called, unit = self.formula.called, self.formula.unit
        if self.is_distance:
            first = "unedited" if self.corrupt is None else "clean"
            return f"{called} from the {first} pass" + (f", in {unit}" if unit else "")
        words = f"{called} of " + " less that of ".join(self.names)
        return f"{APART} ({words})" if self.apart else words

    @property
    def the_what(self) -> str:
        """The same in a sentence."""
        return self.what if self.apart else f"the {self.what}"

    @property
    def apart(self) -> bool:
        """Whether it is a difference of two answers."""
        return not self.is_distance and len(self.wanted) > 1

    @property
    def names(self) -> list[str]:
        """The tokens that are asked about."""
        return [token_glyphs(token_text(self.model, i)) for i in self.wanted]

    @property
    def where(self) -> str:
        """The place in words."""
        return f"after {self.run.place(self.position)}"

    @property
    def measure(self) -> Measure:
        """The number that is taken of logits."""
        return self.formula.measure(self.wanted, self.logits[0])

    @property
    def ends(self) -> tuple[float, ...]:
        """The number of the run, and that of the corrupt one."""
        return tuple(float(self.measure(row)) for row in self.logits)

    def measured(self, lanes: Sequence[Lane]) -> NDArray[np.float64]:
        """The number after each of these passes; a bar shows where this takes long."""
        from gptscope.analysis.sweep import Setting, measured, work
        from gptscope.commands.progress import progress

        model, n = self.model, len(self.run.ids)
        with progress(work(model, lanes, n), "blocks") as tick:
            setting = Setting(model, self.position, self.measure, self.run.edits, tick)
            return measured(setting, lanes, n)


def asked_of(
    source: Pass,
    texts: tuple[str | None, str | None],
    answers: tuple[str | None, str | None],
    at: int,
    metric: str,
) -> Asked:
    """Run the model on the text, or on the clean and the corrupt one, and read the answers.

    Raises:
        GptscopeError: the logits of a run are no numbers.
        UsageError: the texts do not go together, or an answer is no token.
    """
    run, corrupt = runs(source, *texts)
    if METRICS[metric].is_distance and answers != (None, None):
        raise UsageError(
            f"--metric {metric} compares all tokens: it takes no --answer and no --against"
        )
    position = check_index("token", at, len(run.ids))
    every = [one.trace("logits").logits[position] for one in (run, corrupt) if one]
    where = f"after {run.place(position)}"
    names = [where] if corrupt is None else [f"{where} of the clean run", "of the corrupt run"]
    best = [likeliest(row, name) for row, name in zip(every, names, strict=True)]
    tokens = wanted(run.model, best, *answers)
    asked = Asked(run, corrupt, position, metric, tokens, roles(answers, corrupt), tuple(every))
    if corrupt is not None:
        check_ends(asked)
    return asked


def check_ends(asked: Asked) -> None:
    """Whether there is anything between the two runs.

    Raises:
        UsageError: both give the same number.
    """
    clean, corrupt = asked.ends
    if clean == corrupt:
        raise UsageError(
            f"{asked.where}, {asked.the_what} is {clean:.4g} in both runs: there is nothing to "
            "restore",
            "give another --answer, --against or --at",
        )


def roles(answers: tuple[str | None, str | None], corrupt: Run | None) -> tuple[str, str]:
    """What the answer and the other token are: given, or the likeliest of a run."""
    first = "likeliest" if corrupt is None else "likeliest, clean"
    first = first if answers[0] is None else "answer"
    return first, "likeliest, corrupt" if answers == (None, None) else "against"
