"""All checks of a model, one after the other."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.check.against import Difference, Saved, against_result, differences
from gptscope.analysis.check.fit import Fit, others, others_result, text_result
from gptscope.analysis.check.parts import part_results
from gptscope.analysis.check.passes import pass_results
from gptscope.analysis.check.precision import Noise, precision_result, wide
from gptscope.analysis.check.result import Result, impossible
from gptscope.analysis.check.weights import model_weight_results, weight_results
from gptscope.errors import ModelError, NotFiniteWarning
from gptscope.model.load import load

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gptscope.analysis.check.opening import Opening
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Model

LOOKED_AT = 32  # tokens of a pass whose every value is kept
DRAWN = 32  # ids where there is no text
NEED_A_MODEL = (
    *("empty rows", "gains", "pass", "rows", "look ahead", "cache"),
    *("float32", "text", "conventions"),
)


@dataclass(frozen=True)
class Plan:
    """What the passes are fed, and what they are compared with."""

    ids: tuple[int, ...]
    is_text: bool = False  # whether a loss on these ids says anything
    conventions: bool = True
    saved: Saved | None = None
    saved_ids: tuple[int, ...] = ()


@dataclass(eq=False)
class Examined:
    """The result of every check, and the numbers behind some of them."""

    results: list[Result] = field(default_factory=list)
    noise: list[Noise] = field(default_factory=list)
    fits: list[Fit] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    @property
    def findings(self) -> list[tuple[str, str]]:
        """Every sentence with the name of its check."""
        return [(result.check, one) for result in self.results for one in result.findings]


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


def steps(
    found: Opening, plan: Plan | None, made: Examined, tick: Callable[[], Any]
) -> Iterator[Result]:
    """The results one by one; the numbers behind them are put into `made`."""
    yield from part_results(found)
    yield from weight_results(found)
    if found.model is None or plan is None:
        names = NEED_A_MODEL
        yield from (impossible(name, "the model cannot be put together") for name in names)
        return
    model, ids = found.model, plan.ids[:LOOKED_AT]
    yield from model_weight_results(found, model)
    broken = False
    for result in pass_results(model, ids):
        broken |= result.check == "pass" and bool(result.findings)
        yield result
    if broken:
        why = "the pass holds NaN or infinities"
        yield from (impossible(name, why) for name in ("float32", "text", "conventions"))
    else:
        result, made.noise = precision_result(model, ids)
        yield result
        yield from fit_results(model, plan, made, tick)
    if plan.saved is not None:
        made.differences = differences(as_saved(found, plan.saved), plan.saved_ids, plan.saved)
        yield against_result(made.differences)


def fit_results(
    model: Model, plan: Plan, made: Examined, tick: Callable[[], Any]
) -> Iterator[Result]:
    """The loss on a text, and what other conventions make of it."""
    if not plan.is_text or len(plan.ids) < 2:
        yield impossible("text", "no text that this model can read: --text or --ids gives one")
        yield impossible("conventions", "no text to compare them on")
        return
    result = text_result(model, plan.ids)
    yield result
    if not plan.conventions:
        yield impossible("conventions", "not asked for")
        return
    made.fits = others(model, plan.ids, tick)
    yield others_result(made.fits, result.figure or 0.0)


def as_saved(found: Opening, saved: Saved) -> Model:
    """The model computed in the dtype of the saved values."""
    assert found.model is not None  # noqa: S101 - for the types
    if saved.computed == found.model.dtype:
        return found.model
    try:
        return load(found.name, saved.computed)
    except ModelError:  # it was put together otherwise than the config says
        return wide(found.model)
