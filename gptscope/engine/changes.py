"""What an edit puts in the place of a value. `CHANGES` is the only table of them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.change import Asked, Change, Encode
from gptscope.engine.elsewhere import frozen, patched, steered
from gptscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gptscope.engine.index import Index
    from gptscope.engine.spot import Spot
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]
MAY_BE_INFINITE = ("scores", "scaled_masked", "logits_before_cap", "logits")  # before a softmax
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|[+-]?inf"


@dataclass(frozen=True)
class Form:
    """A way to write a change."""

    written: str  # as help and docs show it
    meaning: str
    pattern: str
    read: Callable[[Asked], Change]


def zero(_: Asked) -> Change:
    """0."""
    return Change(lambda _value, _spot: 0.0, by_row=True)


def mean(_: Asked) -> Change:
    """The mean over the tokens of this pass, for each of them."""

    def made(value: Array, spot: Spot) -> Array:
        if "S" in spot.axes:
            raise UsageError(f"{spot.name} has no mean over tokens: each sees others")
        axis = spot.axes.index("T")
        over = value.mean(axis=axis, keepdims=True)
        return np.broadcast_to(over, value.shape)[spot.index]

    return Change(made)


def number(asked: Asked) -> Change:
    """This number."""
    x = float(asked.words[0])

    def made(_: Array, spot: Spot) -> float:
        if math.isinf(x) and spot.point.key not in MAY_BE_INFINITE:
            raise UsageError(f"{spot.name} cannot be infinite: a score or a logit alone can")
        return x

    return Change(made, by_row=True)


def times(asked: Asked) -> Change:
    """So many times the value."""
    factor = float(asked.words["factor"])
    return Change(lambda value, spot: value[spot.index] * value.dtype.type(factor), by_row=True)


def plus(asked: Asked) -> Change:
    """The value and a number."""
    x = float(asked.words["number"])
    return Change(lambda value, spot: value[spot.index] + value.dtype.type(x), by_row=True)


CHANGES: tuple[Form, ...] = (
    Form("zero", "0 in its place", "zero", zero),
    Form("mean", "its mean over the tokens of this pass", "mean", mean),
    Form("0.5", "this number", rf"(?!\+)(?:{NUMBER})", number),
    Form("*2", "so many times the value", rf"\*(?P<factor>{NUMBER})", times),
    Form("+0.5", "the value and this number", rf"\+(?P<number>{NUMBER})", plus),
    Form(
        "+FILE*2.5",
        "the value and so many times the array of a file (gptscope steer)",
        rf"\+(?P<file>.+?)(?:\*(?P<factor>{NUMBER}))?",
        steered,
    ),
    Form(
        "from:TEXT",
        "what it is in a pass over another text; from[2]:TEXT takes another index of it",
        r"from(?:\[(?P<index>[^\]]*)\])?:(?:ids:(?P<ids>.+)|(?P<text>.+))",
        patched,
    ),
    Form(
        "freeze:FILE",
        "what it is in a file of gptscope trace",
        r"freeze:(?P<file>.+)",
        frozen,
    ),
)


def change_of(
    words: str, pattern: str, index: Index, model: Model, encode: Encode | None
) -> Change:
    """The change that these words mean.

    Raises:
        UsageError: they mean none.
        GptscopeError: a file that cannot be read.
    """
    for form in CHANGES:
        match = re.fullmatch(form.pattern, words, re.DOTALL | re.ASCII)
        if match is not None:
            return form.read(Asked(match, pattern, index, model, encode or plainly(model)))
    known = ", ".join(form.written for form in CHANGES)
    raise UsageError(f"{words!r} is no change: one is written {known}")


def plainly(model: Model) -> Encode:
    """How a model's own tokenizer makes ids of a text."""

    def encode(text: str) -> Sequence[int]:
        if model.tokenizer is None:
            raise UsageError(f"{model.no_tokenizer}, so it cannot read {text!r}", "from:ids:5,2,7")
        return model.tokenizer.encode(text)

    return encode


def made_of(what: Any) -> Change:  # noqa: ANN401
    """A function of the value at the index, or what goes there itself."""
    if callable(what):
        return Change(lambda value, spot: what(value[spot.index].copy()), tried=False)
    return Change(lambda _value, _spot: what)
