"""How well a model fits a text: its loss beside that of knowing nothing, and other conventions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.check.conventions import conventions
from gptscope.analysis.check.result import Result, many
from gptscope.engine.forward import forward
from gptscope.engine.ids import checked_ids

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gptscope.model.weights import Model

CLEARLY = 0.1  # nats per token that another convention must be better by
ERRORS = 3.0  # and so many standard errors of the difference


@dataclass(frozen=True)
class Fit:
    """The loss with another convention, in nats per token, and how much better that is."""

    words: str
    loss: float
    gain: float  # above 0: better than the model as it is
    error: float  # standard error of the gain

    @property
    def clearly_better(self) -> bool:
        """Whether it is more than chance."""
        return self.gain > max(CLEARLY, ERRORS * self.error)


def losses(model: Model, ids: tuple[int, ...]) -> NDArray[np.float64]:
    """-ln p of every token but the first, given those before it: [T - 1], in nats."""
    logits = forward(model, checked_ids(model.spec, ids))[:-1].astype(np.float64)
    largest = logits.max(axis=-1, keepdims=True)
    total = largest[:, 0] + np.log(np.exp(logits - largest).sum(axis=-1))
    found: NDArray[np.float64] = total - logits[np.arange(len(logits)), list(ids[1:])]
    return found


def text_result(model: Model, ids: tuple[int, ...]) -> Result:
    """The mean loss beside ln V, that of a model for which all tokens are alike."""
    loss, even = float(losses(model, ids).mean()), math.log(model.spec.n_vocab)
    sentence = (
        f"the text costs {loss:.2f} nats per token, and ln {model.spec.n_vocab:,} = {even:.2f} is "
        "what a model that knows nothing pays"
    )
    looked = f"loss on {many(len(ids), 'token')}, nats per token"
    return Result("text", looked, loss, even, () if loss <= even else (sentence,))


def others(model: Model, ids: tuple[int, ...], tick: Callable[[], Any] = lambda: None) -> list[Fit]:
    """Every other convention, the best first."""
    own, found = losses(model, ids), []
    for words, other in conventions(model):
        gain = own - losses(other, ids)
        error = float(gain.std(ddof=1)) / math.sqrt(len(gain)) if len(gain) > 1 else math.inf
        found.append(Fit(words, float((own - gain).mean()), float(gain.mean()), error))
        tick()
    return sorted(found, key=lambda fit: -fit.gain if math.isfinite(fit.gain) else math.inf)


def others_result(fits: list[Fit], own: float) -> Result:
    """Whether another convention is clearly better; the best is named."""
    better = [fit for fit in fits if fit.clearly_better]
    faults = []
    if better:
        best = better[0]
        more = f"; {many(len(better) - 1, 'other')} would as well" if len(better) > 1 else ""
        faults.append(
            f"the text would fit better with {best.words}: {best.loss:.2f} nats per token, and not "
            f"{own:.2f}{more}"
        )
    looked = f"{many(len(fits), 'other convention')}, the best gain in nats per token"
    gain = fits[0].gain if fits else None
    limit = max(CLEARLY, ERRORS * fits[0].error) if fits else None
    return Result("conventions", looked, gain, limit, tuple(faults))
