"""What a sweep is asked about: the passes, the place, the tokens, and the number that is taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from gptscope.commands.answers import answer_id
from gptscope.commands.session import Run, fed, start, token_text
from gptscope.errors import UsageError, check_index
from gptscope.glyphs import token_glyphs

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gptscope.analysis.sweep import Lane
    from gptscope.analysis.sweep.metrics import Measure
    from gptscope.commands.options import Pass
    from gptscope.model.weights import Model

    Array = NDArray[np.floating[Any]]

IDS = "ids:"  # before token ids in place of a text
SHOWN = 6  # tokens of a text that does not fit


class Metric(StrEnum):
    """What is asked of each pass."""

    logit = "logit"
    prob = "prob"
    kl = "kl"


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
    metric: Metric
    wanted: Mapping[int, float]  # token id -> how often it counts
    roles: tuple[str, str]  # what each of them is
    logits: tuple[Array, ...]  # [V] of the run, and of the corrupt one, at the position

    @property
    def model(self) -> Model:
        """The model that runs."""
        return self.run.model

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
        """The number in words: `logit of ·mom less that of ·dad`."""
        if self.metric == Metric.kl:
            return f"KL from the {'unedited' if self.corrupt is None else 'clean'} pass, in bits"
        name = {"logit": "logit", "prob": "probability"}[self.metric]
        return f"{name} of " + " less that of ".join(self.names)

    @property
    def names(self) -> list[str]:
        """The tokens that are asked about."""
        return [token_glyphs(token_text(self.model, i)) for i in self.wanted]

    @property
    def where(self) -> str:
        """The place in words."""
        return f"after token {self.position} {token_glyphs(self.run.labels[self.position])}"

    @property
    def measure(self) -> Measure:
        """The number that is taken of logits."""
        from gptscope.analysis.sweep import asks, kl_from

        if self.metric == Metric.kl:
            return kl_from(self.logits[0])
        return asks(self.metric, self.wanted)

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
    metric: Metric,
) -> Asked:
    """Run the model on the text, or on the clean and the corrupt one, and read the answers.

    Raises:
        UsageError: the texts do not go together, or an answer is no token.
    """
    run, corrupt = runs(source, *texts)
    if metric == Metric.kl and answers != (None, None):
        raise UsageError("--metric kl compares all tokens: it takes no --answer and no --against")
    position = check_index("token", at, len(run.ids))
    every = [one.trace("logits").logits[position] for one in (run, corrupt) if one]
    wanted = tokens_of(run.model, every, answers)
    role = roles(answers, corrupt)
    asked = Asked(run, corrupt, position, metric, wanted, role, tuple(every))
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
            f"{asked.where}, the {asked.what} is {clean:.4g} in both runs: there is nothing to "
            "restore",
            "give another --answer, --against or --at",
        )


def roles(answers: tuple[str | None, str | None], corrupt: Run | None) -> tuple[str, str]:
    """What the answer and the other token are: given, or the likeliest of a run."""
    likeliest = "likeliest" if corrupt is None else "likeliest, clean"
    first = likeliest if answers[0] is None else "answer"
    return first, "likeliest, corrupt" if answers == (None, None) else "against"


def runs(source: Pass, clean: str | None, corrupt: str | None) -> tuple[Run, Run | None]:
    """The model with its text, or with the clean text and with the corrupt one.

    Raises:
        UsageError: there are other texts as well, or they differ in length or not at all.
    """
    if clean is None and corrupt is None:
        return start(source), None
    if clean is None or corrupt is None:
        raise UsageError("--clean and --corrupt go together: one is patched into the other")
    if any(one is not None for one in (source.text, source.file, source.ids)):
        raise UsageError("--clean and --corrupt are the texts: give no other beside them")
    run = start(read_as(source, clean))
    made = fed(run.model, read_as(source, corrupt), may_be_empty=False)
    other = replace(made, edits=run.edits, verbose=run.verbose)
    if run.ids == other.ids:
        raise UsageError("--clean and --corrupt are the same tokens: nothing could be patched")
    check_lengths(run, other)
    return run, other


def read_as(source: Pass, text: str) -> Pass:
    """The source with this text, or with the token ids after `ids:`."""
    if text.startswith(IDS):
        return replace(source, ids=text.removeprefix(IDS))
    return replace(source, text=text)


def check_lengths(clean: Run, corrupt: Run) -> None:
    """Whether both texts have as many tokens.

    Raises:
        UsageError: they do not; it shows the tokens from the first difference on.
    """
    if len(clean.ids) == len(corrupt.ids):
        return
    pairs = enumerate(zip(clean.ids, corrupt.ids, strict=False))
    shorter = min(len(clean.ids), len(corrupt.ids))
    part = next((i for i, (one, two) in pairs if one != two), shorter)
    tails = " | ".join(some(run.labels[part:]) for run in (clean, corrupt))
    raise UsageError(
        f"--clean has {len(clean.ids)} tokens and --corrupt {len(corrupt.ids)}, and each must "
        f"stand against one of the other; from token {part} on they are {tails}",
        "choose words of as many tokens: gptscope tokens TEXT shows them",
    )


def some(labels: Sequence[str]) -> str:
    """The first of these tokens."""
    words = [token_glyphs(one) for one in labels[:SHOWN]] + ["..."] * (len(labels) > SHOWN)
    return " ".join(words) or "none"


def tokens_of(
    model: Model, logits: Sequence[Array], answers: tuple[str | None, str | None]
) -> dict[int, float]:
    """How often each token counts: 1 for the answer, -1 for the other.

    Without an answer it is the likeliest of the run; with two runs and neither token given, the
    other is the likeliest of the corrupt run, if it is another.

    Raises:
        UsageError: one is no token of this model, or both are the same.
    """
    likeliest = [int(row.argmax()) for row in logits]
    first = likeliest[0] if answers[0] is None else answer_id(model, answers[0])
    if answers == (None, None):
        return {first: 1.0} | {i: -1.0 for i in likeliest[1:] if i != first}
    if answers[1] is None:
        return {first: 1.0}
    second = answer_id(model, answers[1], "--against")
    if first == second:
        raise UsageError(f"the answer and --against are the same token, {first}")
    return {first: 1.0, second: -1.0}
