"""How well a model fits a text: its loss beside that of knowing nothing, and other conventions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gptscope.analysis.check.conventions import conventions
from gptscope.analysis.check.result import Result
from gptscope.analysis.surprise import losses
from gptscope.model.files import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from gptscope.model.weights import Model

CLEARLY = 0.1  # nats per token that another convention must be better by
ERRORS = 3.0  # and so many standard errors of the difference
DOUBTFUL = 0.9  # of ln V: a trained model pays less on any text of its kind
TRAINED = 0.25  # of ln V: on a simple text, those known to us pay 0.14 to 0.25
MENDED = 0.5  # of what lies above that: what takes less away is not the cause
LIMIT = "ln V: what a model that knows nothing pays"


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

    def mends(self, n_vocab: int) -> bool:
        """Whether it is the cause: it takes away half of the loss above a trained model's."""
        above = self.loss + self.gain - TRAINED * math.log(n_vocab)
        return self.clearly_better and self.gain >= MENDED * above


def text_result(model: Model, ids: tuple[int, ...]) -> Result:
    """The mean loss beside ln V, that of a model for which all tokens are alike."""
    loss, n_vocab = float(losses(model, ids).mean()), model.spec.n_vocab
    even = math.log(n_vocab)
    share = loss / even if even else 1.0
    looked = f"loss on {counted(len(ids), 'token')} = {share:.2f} of ln V; {LIMIT}"
    sentence = (
        f"the text costs {loss:.2f} nats per token = {share:.2f} of ln V, and ln {n_vocab:,} = "
        f"{even:.2f} is what a model that knows nothing pays"
    )
    wrong, doubtful = loss > even, DOUBTFUL * even < loss <= even
    return Result("text", looked, loss, even, (sentence,) * wrong, (sentence,) * doubtful)


def others(model: Model, ids: tuple[int, ...], tick: Callable[[], Any] = lambda: None) -> list[Fit]:
    """Every other convention, the best first."""
    own, found = losses(model, ids), []
    for words, other in conventions(model):
        gain = own - losses(other, ids)
        error = float(gain.std(ddof=1)) / math.sqrt(len(gain)) if len(gain) > 1 else math.inf
        found.append(Fit(words, float((own - gain).mean()), float(gain.mean()), error))
        tick()
    return sorted(found, key=lambda fit: -fit.gain if math.isfinite(fit.gain) else math.inf)


def others_result(fits: list[Fit], own: float, n_vocab: int) -> Result:
    """Whether another convention is clearly better; the best is the cause if it mends most."""
    better = [fit for fit in fits if fit.clearly_better]
    sentences = (verdict(better, own, n_vocab),) if better else ()
    looked = f"{counted(len(fits), 'other convention')}, the best gain"
    gain = fits[0].gain if fits else None
    limit = max(CLEARLY, ERRORS * fits[0].error) if fits else None
    return Result("conventions", looked, gain, limit, sentences)


def verdict(better: list[Fit], own: float, n_vocab: int) -> str:
    """The cause, or that there is none among those that are clearly better."""
    best, more = better[0], len(better) - 1
    if best.mends(n_vocab):
        others = (
            f"; {counted(more, 'other')} {'are' if more > 1 else 'is'} better too" if more else ""
        )
        return (
            f"the text would fit better with {best.words}: {best.loss:.2f} nats per token, and not "
            f"{own:.2f}{others}"
        )
    fit = "fits" if not more else "fit"
    return (
        f"{counted(more + 1, 'other convention')} {fit} better than {own:.2f} nats per token, the "
        f"best ({best.words}) at {best.loss:.2f}: none mends it, so the cause is another"
    )
