"""All checks of a model, one after the other."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.check.against import Against, Saved, against_result, differences
from gptscope.analysis.check.checks import CHECKS
from gptscope.analysis.check.conventions import conventions
from gptscope.analysis.check.fit import Fit, others, others_result, text_result
from gptscope.analysis.check.parts import part_results
from gptscope.analysis.check.passes import finite_result, pass_results
from gptscope.analysis.check.precision import Noise, precision_result, wide
from gptscope.analysis.check.result import Result, all_impossible, impossible
from gptscope.analysis.check.weights import model_weight_results, weight_results
from gptscope.engine.trace import trace
from gptscope.errors import ModelError, NotFiniteWarning
from gptscope.model.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gptscope.analysis.check.opening import Opening
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Model

LOOKED_AT = 32  # tokens of a pass whose every value is kept
DRAWN = 32  # ids where there is no text


@dataclass(frozen=True)
class Plan:
    """The passes of a model that could be put together: what they are fed and compared with."""

    model: Model
    ids: tuple[int, ...]
    is_text: bool = False  # whether a loss on these ids says anything
    conventions: bool = True
    saved: Saved | None = None
    saved_ids: tuple[int, ...] = ()

    @property
    def speaks(self) -> bool:
        """Whether there is a loss that says anything."""
        return self.is_text and len(self.ids) > 1


@dataclass(eq=False)
class Examined:
    """The result of every check, and the numbers behind some of them."""

    results: list[Result] = field(default_factory=list)
    noise: list[Noise] = field(default_factory=list)
    fits: list[Fit] = field(default_factory=list)
    against: Against | None = None

    @property
    def findings(self) -> list[tuple[str, str]]:
        """Every sentence with the name of its check."""
        return [(result.check, one) for result in self.results for one in result.findings]

    @property
    def doubts(self) -> list[tuple[str, str]]:
        """The sentences of checks that are doubtful, which are no findings."""
        return [(result.check, one) for result in self.results for one in result.doubts]


def drawn_ids(spec: Spec) -> tuple[int, ...]:
    """Ids where there is no text: the same in every run."""
    drawn = np.random.default_rng(0).integers(0, spec.n_vocab, min(DRAWN, spec.n_ctx))
    return tuple(drawn.tolist())


def examine(found: Opening, plan: Plan | None, tick: Callable[[], Any] = lambda: None) -> Examined:
    """Every check, in the order in which a model is opened and run; `tick` after each step."""
    made = Examined()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotFiniteWarning)  # it is a finding here
        for result in steps(found, plan, made, tick):
            made.results.append(result)
            tick()
    return made


def n_steps(plan: Plan | None) -> int:
    """How often `examine` ticks: once a check, and once a convention that is tried."""
    n = len(CHECKS) - 1  # the last of them is asked for
    if plan is None:
        return n
    tried = plan.conventions and plan.speaks
    return n + (plan.saved is not None) + tried * sum(1 for _ in conventions(plan.model))


def steps(
    found: Opening, plan: Plan | None, made: Examined, tick: Callable[[], Any]
) -> Iterator[Result]:
    """The results one by one; the numbers behind them are put into `made`."""
    yield from part_results(found)
    if found.checkpoint is None:
        yield from all_impossible("weights", "the weights could not be opened")
        return
    yield from weight_results(found, found.checkpoint)
    if plan is None:
        yield from all_impossible("model", "the model cannot be put together")
        return
    yield from model_weight_results(found, plan.model)
    whole = trace(plan.model, plan.ids[:LOOKED_AT])
    finite = finite_result(whole)
    yield finite
    if finite.findings:
        yield from all_impossible("pass", "the pass holds NaN or infinities")
    else:
        yield from pass_results(plan.model, whole)
        result, made.noise = precision_result(plan.model, whole.ids)
        yield result
        yield from fit_results(plan, made, tick)
    if plan.saved is not None:
        computed = as_saved(plan.model, found.name, plan.saved)
        made.against = differences(computed, plan.saved_ids, plan.saved)
        yield against_result(made.against)


def fit_results(plan: Plan, made: Examined, tick: Callable[[], Any]) -> Iterator[Result]:
    """The loss on a text, and what other conventions make of it."""
    if not plan.speaks:
        yield impossible("text", "no text that this model can read: --text or --ids gives one")
        yield impossible("conventions", "no text to compare them on")
        return
    result = text_result(plan.model, plan.ids)
    yield result
    if not plan.conventions:
        yield impossible("conventions", "not asked for")
        return
    made.fits = others(plan.model, plan.ids, tick)
    yield others_result(made.fits, result.found or 0.0, plan.model.spec.n_vocab)


def as_saved(model: Model, name: str, saved: Saved) -> Model:
    """The model computed in the dtype of the saved values."""
    if saved.computed == model.dtype:
        return model
    try:
        return load(name, saved.computed)
    except ModelError:  # it was put together otherwise than the config says
        return wide(model)
