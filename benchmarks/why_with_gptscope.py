"""The side of gptscope in why.py; each function runs in a process of its own."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

import gptscope
from gptscope.analysis.attribution import KEEP, attribute
from gptscope.analysis.lens import lens as lens_of
from gptscope.analysis.sweep import (
    KINDS,
    METRICS,
    Setting,
    ablations,
    measured,
    over,
    sites,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


@cache
def model(folder: str) -> gptscope.Model:
    """The model, opened once."""
    return gptscope.load(folder)


def one_pass(folder: str, ids: Sequence[int], answer: int) -> list[float]:
    """A pass that keeps the logits: that of the answer."""
    return [float(gptscope.trace(model(folder), ids, "logits").logits[-1, answer])]


def lens(folder: str, ids: Sequence[int], answer: int) -> list[float]:
    """What every layer would have said after every token: the probability of the answer."""
    trace = gptscope.trace(model(folder), ids, ["embeddings", "output", "logits"])
    found: list[float] = lens_of(model(folder), trace, answer).probability.ravel().tolist()
    return found


def attribution(folder: str, ids: Sequence[int], answer: int) -> list[float]:
    """The answer's logit split over everything: the terms of the heads."""
    trace = gptscope.trace(model(folder), ids, KEEP)
    terms = attribute(model(folder), trace, len(ids) - 1, {answer: 1.0}).terms
    return [term.value for term in terms if term.head is not None]


def sweep(folder: str, ids: Sequence[int], answer: int) -> list[float]:
    """The answer's logit after each head was made 0."""
    run = over(ids)
    rows = sites(KINDS["heads"], model(folder).spec, None)
    lanes = ablations(run, [site for row in rows for site in row], "zero")
    setting = Setting(
        model(folder), len(ids) - 1, METRICS["logit"].measure({answer: 1.0}, np.empty(0))
    )
    found: list[float] = measured(setting, lanes, len(ids)).tolist()
    return found


QUESTIONS: Mapping[str, Callable[[str, Sequence[int], int], list[float]]] = {
    "pass": one_pass,
    "lens": lens,
    "attribution": attribution,
    "sweep": sweep,
}


def ask(question: str, folder: str, ids: Sequence[int], answer: int) -> list[float]:
    """The numbers of one question."""
    return QUESTIONS[question](folder, ids, answer)


def seconds(question: str, folder: str, ids: Sequence[int], answer: int) -> float:
    """How long one question takes, the model being open."""
    model(folder)
    begin = time.perf_counter()
    ask(question, folder, ids, answer)
    return time.perf_counter() - begin
