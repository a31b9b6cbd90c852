"""The values of a head, from what it reads to what it adds. Vaswani et al. 2017, section 3.2."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gptscope.analysis.explain.place import Place
from gptscope.analysis.explain.records import Part, Softmax, Step, Sum, Term, products

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.model.weights import Linear


def projected(p: Place) -> Iterator[Part]:
    """A number of a query, key or value: what the head reads times its weights, plus a bias."""
    _, i = p.at
    w: Linear = getattr(p.block.attention, p.key[0])
    column = (p.head or 0) * p.model.spec.d_head + i
    yield p.dot(p.names_read("attention")[0], w, column)


def query_or_key(p: Place) -> Iterator[Part]:
    """A number of a query or key; where positions are rotary, the pair that turned into it.

    Su et al. 2021, "RoFormer", section 3.2.2; here number i turns with number i + P.
    """
    (t, i), turning = p.at, p.block.attention.turning
    if turning is None:
        yield from projected(p)
        return
    speeds = turning.speeds_at(len(p.trace.ids))
    still, n = p.of(f"{p.key}_before_rope", t, i), len(speeds)
    yield from projected(still)
    if i >= 2 * n:
        yield Step(p.key, "does not turn", still.number())
        return
    pair = i % n
    a, b = (p.value(still.key)[t, j] for j in (pair, pair + n))
    angle = t * speeds[pair]
    yield Step("a", f"{still.key}[{t},{pair}]", a)
    yield Step("b", f"{still.key}[{t},{pair + n}]", b)
    yield Step("speed", f"radians per position of pair {pair}", speeds[pair])
    yield Step("angle", f"position {t} x speed", angle)
    yield Step("cos", "cos(angle)", math.cos(angle))
    yield Step("sin", "sin(angle)", math.sin(angle))
    turned = (a * math.cos(angle) - b * math.sin(angle), a * math.sin(angle) + b * math.cos(angle))
    yield Step(p.key, ("a cos - b sin", "a sin + b cos")[i >= n], turned[i >= n])


def score(p: Place) -> Iterator[Part]:
    """Query times key."""
    t, s = p.at
    pair = (p.value("q")[t], p.value("k")[s])
    made = products("score", "dimension", ("query", "key"), pair, p.value("scores")[t, s])
    yield replace(made, source=f"{p.full('q')}[{t},i] x {p.full('k')}[{s},i]")


def scaled(p: Place) -> Iterator[Part]:
    """The score times the scale; minus infinity where the future is hidden."""
    (whole,) = score(p)
    yield whole
    d_head, scale = p.model.spec.d_head, p.block.attention.scale
    usual = math.isclose(scale, d_head**-0.5)
    yield Step("scale", f"1 / sqrt({d_head})" if usual else "as the model has it", scale)
    yield Step("scaled", "score x scale", whole.value * scale)
    if np.isneginf(p.value("scaled_masked")[p.at]):
        yield Step("masked", "a later token is hidden", -math.inf)


def weight(p: Place) -> Iterator[Part]:
    """The share of one token in all that a token reads: the softmax of its masked row."""
    yield from scaled(p)
    t, s = p.at
    row = p.value("scaled_masked")[t]
    exponentials = np.exp(row - row.max())
    yield Softmax(row, exponentials, exponentials / exponentials.sum(), s)


def mixed(p: Place) -> Iterator[Part]:
    """A number of a head's output: the values of all tokens, each times its weight."""
    t, i = p.at
    pair = (p.value("weights")[t], p.value("v")[:, i])
    made = products(p.full("out"), "token", ("weight", "value"), pair, p.number())
    yield replace(made, source=f"{p.full('weights')}[{t},s] x {p.full('v')}[s,{i}]")


def concatenated(p: Place) -> Iterator[Part]:
    """A number of the heads side by side: a number of one of them."""
    t, j = p.at
    head, i = divmod(j, p.model.spec.d_head)
    yield from mixed(Place(p.model, p.trace, "out", p.layer, head, (t, i)))


def attended(p: Place) -> Iterator[Part]:
    """What attention adds to one number: every head through its rows of the output matrix."""
    (t, i), d_head, out = p.at, p.model.spec.d_head, p.block.attention.out
    pieces = p.value("attn_concat")[t] * out.weight[:, i]  # [H*d_h]
    by_head = pieces.reshape(-1, d_head).sum(axis=1)
    terms = [Term(str(h), float(share)) for h, share in enumerate(by_head)]
    terms += [] if out.bias is None else [Term("bias", float(out.bias[i]))]
    where = f"layers.{p.layer}.heads.h.out[{t},:] x its rows of column {i} of the output matrix"
    yield Sum(p.full("attn_out"), "head", tuple(terms), p.number(), source=where)
