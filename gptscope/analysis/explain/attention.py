"""The values of a head, from what it reads to what it adds. Vaswani et al. 2017, section 3.2."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.explain.place import Place
from gptscope.analysis.explain.records import Part, Softmax, Step, Sum, Term, products

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gptscope.model.weights import Linear, Norm

    Array = NDArray[np.floating[Any]]

RMS = "x / sqrt(mean square + eps)"


def projected(p: Place) -> Iterator[Part]:
    """A number of a query, key or value: what the head reads times its weights, plus a bias."""
    _, i = p.at
    w: Linear = getattr(p.block.attention, p.key[0])
    head = (p.head or 0) if p.key[0] == "q" else p.group
    yield p.dot(p.names_read("attention")[0], w, head * p.model.spec.d_head + i)


def normed(p: Place) -> Iterator[Part]:
    """A number of a query or key after its norm, if there is one; before, what was projected.

    Henry et al. 2020, "Query-Key Normalization", section 3.
    """
    name, (t, i), eps = p.key[0], p.at, p.model.spec.norm_eps
    w: Norm | None = getattr(p.block.attention, f"{name}_norm")
    if w is None:
        yield from projected(p)
        return
    still = p.of(f"{name}_before_norm", t, i)
    yield from projected(still)
    head = (p.head or 0) if name == "q" else p.group
    x, gain, shift = listed(p, still.key, head, w)
    yield Step("x", f"{still.key}[{t},{i}]", still.number())
    if p.model.spec.norm == "rms_norm":
        middle, size = 0.0, float((x**2).mean())
        yield Step("mean square", f"of {len(x)} numbers", size)
    else:
        middle, size = float(x.mean()), float(x.var())
        yield Step("mean", f"of {len(x)} numbers", middle)
        yield Step("variance", f"of {len(x)} numbers", size)
    yield Step("eps", "so that nothing is divided by zero", eps)
    normalized = (still.number() - middle) / (size + eps) ** 0.5
    yield Step("normalized", "(x - mean) / sqrt(variance + eps)" if middle else RMS, normalized)
    yield Step("gain", "of this number", gain[i])
    if shift is not None:
        yield Step("shift", "of this number", shift[i])
    words = "normalized x gain" + ("" if shift is None else " + shift")
    yield Step("out", words, normalized * gain[i] + (0.0 if shift is None else shift[i]))


def listed(p: Place, key: str, head: int, w: Norm) -> tuple[Array, Array, Array | None]:
    """The list that is normalised, and the gains and shifts of this head's part of it."""
    d_head, t = p.model.spec.d_head, p.at[0]
    stacked = p.trace.values[key, p.layer].astype(np.float64)  # [H or G, T, d_h]
    wide = w.gain.shape[-1] != d_head
    x = stacked[:, t].ravel() if wide else stacked[head, t]

    def own(array: Array) -> Array:
        rows = array.reshape(-1, d_head).astype(np.float64)  # one for each head, or one for all
        row: Array = rows[head % len(rows)]
        return row

    return x, own(w.gain), None if w.shift is None else own(w.shift)


def query_or_key(p: Place) -> Iterator[Part]:
    """A number of a query or key; where positions are rotary, the pair that turned into it.

    Su et al. 2021, "RoFormer", section 3.2.2; here number i turns with number i + P.
    """
    (t, i), turning = p.at, p.block.attention.turning
    if turning is None:
        yield from normed(p)
        return
    speeds = turning.speeds_at(len(p.trace.ids))
    still, n = p.of(f"{p.key}_before_rope", t, i), len(speeds)
    yield from normed(still)
    if i >= 2 * n:
        yield Step(p.key, "does not turn", still.number())
        return
    pair = i % n
    a, b = (p.value(still.key)[t, j] for j in (pair, pair + n))
    yield Step("a", f"{still.key}[{t},{pair}]", a)
    yield Step("b", f"{still.key}[{t},{pair + n}]", b)
    yield from turned(p, (a, b), (speeds[pair], turning.factor), first=i < n)


def turned(
    p: Place, pair: tuple[float, float], how: tuple[float, float], *, first: bool
) -> Iterator[Part]:
    """The first or second number of a pair that turns by position times speed, times a factor."""
    (a, b), (speed, factor), t = pair, how, p.at[0]
    angle = t * speed
    cos, sin = math.cos(angle), math.sin(angle)
    yield Step("speed", "of this pair, in radians per position", speed)
    yield Step("angle", f"position {t} x speed", angle)
    yield Step("cos", "cos(angle)", cos)
    yield Step("sin", "sin(angle)", sin)
    words = "a cos - b sin" if first else "a sin + b cos"
    value = a * cos - b * sin if first else a * sin + b * cos
    if factor == 1:
        yield Step(p.key, words, value)
        return
    yield Step("turned", words, value)
    yield Step("factor", "of cos and sin in this model", factor)
    yield Step(p.key, "turned x factor", value * factor)


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
    scaled = whole.value * scale
    yield Step("scaled", "score x scale", scaled)
    limit, slopes, (t, s) = p.model.spec.score_cap, p.block.attention.slopes, p.at
    if limit is not None:
        scaled = limit * math.tanh(scaled / limit)
        yield Step("capped", f"{limit:g} tanh(scaled / {limit:g})", scaled)
    if slopes is not None:
        slope = slopes[p.head or 0]
        yield Step("slope", f"of head {p.head}, per token of distance", slope)
        yield Step("biased", f"scaled - slope x {t - s}", scaled - slope * (t - s))
    if np.isneginf(p.value("scaled_masked")[p.at]):
        why = "a later token is hidden" if s > t else "a token outside the window is hidden"
        yield Step("masked", why, -math.inf)


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
    yield Sum(p.full("attn_out"), "head", tuple(terms), p.held(), source=where)
    yield from multiplied(p)


def multiplied(p: Place) -> Iterator[Part]:
    """What a part adds, times the number that the model puts before every sum."""
    scale = p.model.spec.residual_scale
    if scale != 1:
        yield Step("scale", "as the model has it", scale)
        yield Step(p.key, "sum x scale", p.held() * scale)
