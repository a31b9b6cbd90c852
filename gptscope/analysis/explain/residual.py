"""The residual stream, from the two tables where it begins to any block."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gptscope.analysis.explain.norms import norm_out
from gptscope.analysis.explain.records import Part, Step, Sum, Term, products
from gptscope.analysis.wiring import summands
from gptscope.engine.hook_points import BY_KEY
from gptscope.model.positions import BASE
from gptscope.model.weights import rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.analysis.explain.place import Place


def token_row(p: Place) -> Iterator[Part]:
    """A number of the token table, projected and scaled where the model does so."""
    (t, i), model = p.at, p.model
    v, scale = p.trace.ids[t], model.spec.embed_scale
    if model.project_in is None:
        value = p.number() / scale
        yield Step("row of the token", f"token table[{v},{i}]", value)
    else:
        row = rows(model.token_table, [v], np.dtype(np.float64))[0]
        pair = (row, model.project_in.weight[:, i])
        held = p.number() / scale
        yield products("projected", "dimension", ("row of the token", "weight"), pair, held)
        value = held
    if scale != 1:
        yield Step("scale", "as the model has it", scale)
        yield Step("token_embeddings", "row x scale", value * scale)


def position_row(p: Place) -> Iterator[Part]:
    """A number of the table of positions; a sine or cosine if it was computed.

    Vaswani et al. 2017, section 3.5.
    """
    (t, i), d = p.at, p.model.spec.d_model
    if p.model.spec.positions == "sinusoidal":
        divisor = BASE ** ((i - i % 2) / d)
        yield Step("divisor", f"{BASE:g}^({i - i % 2}/{d})", divisor)
        yield Step("angle", f"{t} / divisor", t / divisor)
        wave, name = (np.cos, "cos") if i % 2 else (np.sin, "sin")
        yield Step("position", f"{name}(angle)", float(wave(t / divisor)))
    else:
        yield Step("row of the position", f"position table[{t},{i}]", p.number())


def stream(p: Place) -> Iterator[Part]:
    """A number of the residual stream: what every part added to it, from the embeddings on."""
    parts = summands(p.trace, p.key, p.layer)
    (first, layer), *more = parts
    if not more and first.endswith(".out"):  # a norm stands after every sum
        yield from norm_out(replace(p, key=first, layer=layer))
        return
    names = [BY_KEY[key].name.format(l=where) for key, where in parts]
    values = [float(p.trace[name][p.at]) for name in names]
    terms = tuple(Term(name, value) for name, value in zip(names, values, strict=True))
    yield Sum(p.full(p.key), "part", terms, p.number(), source=f"each at [{p.at[0]},{p.at[1]}]")
