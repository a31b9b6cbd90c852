"""Logits, and the probabilities made of them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.explain.records import Part, Step, products
from gptscope.engine.sampling import Sampling, ranked, stages
from gptscope.model.weights import rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.analysis.explain.place import Place

Array = NDArray[np.floating[Any]]


def logit(p: Place) -> Iterator[Part]:
    """The last list of a token times the list of a token of the vocabulary.

    Some models project the list before, and scale, shift or cap what comes of it.
    """
    (t, v), model, s = p.at, p.model, p.model.spec
    name = "ln_final.out" if model.ln_final else p.names_read("ln_final")[0]
    x = p.trace[name][t].astype(np.float64)
    if model.project_out is not None:
        x, name = x @ model.project_out.weight.astype(np.float64), "projected"
    row = rows(model.output_table, [v], np.dtype(np.float64))[0]
    capped = s.logit_cap is not None
    held = float(p.value("logits_before_cap" if capped else "logits")[p.at])
    bias = 0.0 if model.output_bias is None else float(model.output_bias[v])
    factors = ("stream", "unembedding")
    made = products("logit", "dimension", factors, (x, row), (held - bias) / s.logit_scale)
    yield replace(made, source=f"{name}[{t},i] x unembedding[i,{v}]")
    value = made.value
    if s.logit_scale != 1:
        value *= s.logit_scale
        yield Step("scale", "of all logits in this model", s.logit_scale)
        yield Step("scaled logit", "logit x scale", value)
    if model.output_bias is not None:
        value += bias
        yield Step("bias", f"output bias[{v}]", bias)
        yield Step("biased logit", "plus bias", value)
    if s.logit_cap is not None and p.key == "logits":
        value = s.logit_cap * math.tanh(value / s.logit_cap)
        yield Step("capped logit", f"{s.logit_cap:g} tanh(logit / {s.logit_cap:g})", value)


def probability(p: Place, how: Sampling) -> Iterator[Part]:
    """A logit on its way to a chance: temperature, softmax, then top-k and top-p.

    Top-k: Fan, Lewis and Dauphin 2018. Top-p: Holtzman et al. 2020.
    """
    t, v = p.at
    logits = p.trace.logits[t].astype(np.float64)
    yield Step("logit", f"logits[{t},{v}]", float(logits[v]))
    rank = int(np.flatnonzero(ranked(logits) == v)[0]) + 1
    yield Step("rank", f"of {len(logits)}, 1 is the likeliest", rank)
    if how.temperature == 0:
        yield Step("greedy", "temperature 0: the likeliest token is certain", float(rank == 1))
        return
    made = stages(p.trace.logits[t], how)
    *steps, last = softened(logits, v, how.temperature)
    yield from (*steps, last)
    before, chance = made["softmax"], last.value
    for name, limit in (("top-k", how.top_k), ("top-p", how.top_p)):
        if name not in made:
            continue
        stays = made[name] > 0
        kept = float(before[stays].sum())
        yield Step(f"kept by {name} {limit:g}", f"{stays.sum()} tokens, together", kept)
        before, chance = made[name], chance / kept if stays[v] else 0.0
        words = "probability / kept" if stays[v] else "not among them"
        yield Step(f"after {name} {limit:g}", words, chance)


def softened(logits: Array, v: int, temperature: float) -> Iterator[Step]:
    """exp(logit / temperature - maximum) over the sum of all of them."""
    divided, name = logits / temperature, "logit"
    if temperature != 1:
        name = "divided"
        yield Step(name, f"logit / {temperature:g}", float(divided[v]))
    top = float(divided.max())
    powers = np.exp(divided - top)
    yield Step("maximum", f"the largest of {len(logits)}", top)
    yield Step("exponential", f"exp({name} - maximum)", float(powers[v]))
    yield Step("sum", f"of {len(logits)} exponentials", float(powers.sum()))
    yield Step("probability", "exponential / sum", float(powers[v] / powers.sum()))
