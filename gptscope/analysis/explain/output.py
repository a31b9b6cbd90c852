"""Logits, and the probabilities made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.explain.records import Part, Step, products
from gptscope.engine.sampling import Sampling, ranked, stages
from gptscope.model.dtypes import widen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.analysis.explain.place import Place

Array = NDArray[np.floating[Any]]


def logit(p: Place) -> Iterator[Part]:
    """The last list of a token times the list of a token of the vocabulary."""
    t, v = p.at
    x = p.value("ln_final.out")[t] if p.model.ln_final else p.read("ln_final")[t]
    column = widen(p.model.unembedding[:, v], np.dtype(np.float64))
    yield products("logit", "dimension", ("stream", "unembedding"), (x, column), p.number())


def probability(p: Place, how: Sampling) -> Iterator[Part]:
    """A logit on its way to a chance: temperature, softmax, then top-k and top-p.

    Top-k: Fan, Lewis and Dauphin 2018. Top-p: Holtzman et al. 2020.
    """
    t, v = p.at
    logits = p.trace.logits[t].astype(np.float64)
    made = stages(p.trace.logits[t], how)
    yield Step("logit", f"logits[{t},{v}]", float(logits[v]))
    rank = int(np.flatnonzero(ranked(logits) == v)[0]) + 1
    yield Step("rank", f"of {len(logits)}, 1 is the likeliest", rank)
    if how.temperature == 0:
        yield Step("greedy", "temperature 0: the likeliest token is certain", float(rank == 1))
        return
    yield from softened(logits, v, how.temperature)
    before = made["softmax"]
    for name, limit in (("top-k", how.top_k), ("top-p", how.top_p)):
        if name in made:
            yield from kept(f"{name} {limit:g}", before, made[name], v)
            before = made[name]


def softened(logits: Array, v: int, temperature: float) -> Iterator[Part]:
    """exp(logit / temperature - maximum) over the sum of all of them."""
    divided = logits / temperature
    top, powers = float(divided.max()), np.exp(divided - divided.max())
    if temperature != 1:
        yield Step("divided", f"logit / {temperature:g}", float(divided[v]))
    yield Step("maximum", f"the largest of {len(logits)}", top)
    yield Step("exponential", "exp(it - maximum)", float(powers[v]))
    yield Step("sum", f"of {len(logits)} exponentials", float(powers.sum()))
    yield Step("probability", "exponential / sum", float(powers[v] / powers.sum()))


def kept(name: str, before: Array, after: Array, v: int) -> Iterator[Part]:
    """What a limit does: the tokens it keeps share everything, the others get nothing."""
    stays = after > 0
    yield Step(f"kept by {name}", f"{stays.sum()} tokens, together", float(before[stays].sum()))
    words = "probability / kept" if stays[v] else "not among them"
    yield Step(f"after {name}", words, float(after[v]))
