"""A logit split exactly into what every part of the model gave it, directly.

The scale of every norm on the way is frozen at this pass, so that a logit is a sum over all that
was added to the stream: direct logit attribution. `KEEP` names the values that it takes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gptscope.analysis.attribution.directions import (
    SCALES,
    Directions,
    directions,
    unembedded,
)
from gptscope.analysis.attribution.parts import (
    bias_contribution,
    head_contributions,
    row,
    source_contributions,
    unit_contributions,
    unit_directions,
)
from gptscope.analysis.attribution.records import EDITED, Account, Term
from gptscope.analysis.wiring import NORMS, full_name, reads

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gptscope.analysis.wiring import Value
    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Model

__all__ = [
    "EDITED",
    "KEEP",
    "KEEP_EDITED",
    "Account",
    "Directions",
    "Term",
    "attribute",
    "directions",
    "rounding",
    "source_contributions",
    "unit_contributions",
    "unit_directions",
]

KEEP = (
    *("token_embeddings", "position_embeddings", "attn_concat", "mlp_out"),
    *("logits_before_cap", "logits", *SCALES),
)
KEEP_EDITED = (
    *(*KEEP, "embeddings", "input", "attn_out", "resid_after_attn", "mlp_act", "output"),
    *(f"{norm}.out" for norm in NORMS),
)
ROUNDING = {"float32": 1e-5, "float64": 1e-12}  # of the product of two lengths


def attribute(model: Model, trace: Trace, position: int, wanted: Mapping[int, float]) -> Account:
    """The terms of a sum of logits at a position: `{answer: 1}`, `{answer: 1, against: -1}`.

    They come in the order of the pass. The trace holds the values of `KEEP`, or after edits of
    `KEEP_EDITED`: what an edited value has more than its own parts is then a term of its own.

    Raises:
        UsageError: the trace lacks a value.
    """
    found = directions(model, trace, position, wanted)
    edited = bool(trace.edits)
    terms: list[Term] = []
    for value in reversed(found.at):
        own = list(own_terms(model, trace, found, value))
        terms += own
        if edited:
            terms += changed(trace, found, value, own)
    terms += list(at_the_end(model, wanted))
    account = Account(tuple(terms), logit(trace, position, wanted), found)
    return with_edited_logit(account, trace) if edited else account


def own_terms(model: Model, trace: Trace, found: Directions, value: Value) -> Iterator[Term]:
    """What a value of the stream brings along that is no other value of it."""
    (key, layer), u = value, found.at[value]
    name = full_name(value)
    if key == "attn_out":
        yield from of_attention(model, trace, found, layer or 0)
    elif key == "mlp_out":
        yield from of_mlp(model, trace, found, layer or 0)
    elif key.endswith(".out"):
        norm = name.removesuffix(".out")
        shift = model.norm(norm).shift
        if shift is not None:
            yield Term(
                f"{norm}.shift", float(shift.astype(u.dtype) @ u), "norm shift", layer, of=value
            )
    elif not reads(trace, value):
        yield Term(name, float(row(trace, name, found.position) @ u), "embedding", of=value)


def of_attention(model: Model, trace: Trace, found: Directions, layer: int) -> Iterator[Term]:
    """A term for each head, and one for the bias of the output matrix."""
    value: Value = ("attn_out", layer)
    for h, given in enumerate(head_contributions(model, trace, found, layer)):
        yield Term(f"layers.{layer}.heads.{h}", float(given), "head", layer, h, value)
    w, u = model.blocks[layer].attention.out, found.at[value]
    bias = bias_contribution(w, u, model.spec.residual_scale)
    if bias is not None:
        yield Term(f"layers.{layer}.attn.bias", bias, "attention bias", layer, of=value)


def of_mlp(model: Model, trace: Trace, found: Directions, layer: int) -> Iterator[Term]:
    """A term for the units of a feed-forward layer, and one for its last bias."""
    value: Value = ("mlp_out", layer)
    u, name = found.at[value], f"layers.{layer}.mlp"
    bias = bias_contribution(model.blocks[layer].mlp.down, u, model.spec.residual_scale)
    if ("mlp_act", layer) in trace.values:
        given = float(unit_contributions(model, trace, found, layer).sum())
    else:
        given = float(row(trace, f"{name}_out", found.position) @ u) - (bias or 0.0)
    yield Term(name, given, "feed forward", layer, of=value)
    if bias is not None:
        yield Term(f"{name}.bias", bias, "feed-forward bias", layer, of=value)


def at_the_end(model: Model, wanted: Mapping[int, float]) -> Iterator[Term]:
    """The biases after the last norm."""
    if model.project_out is not None and model.project_out.bias is not None:
        u = unembedded(model, wanted)
        bias = bias_contribution(model.project_out, u, model.spec.logit_scale)
        yield Term("project_out.bias", bias or 0.0, "output bias")
    if model.output_bias is not None:
        given = sum(weight * float(model.output_bias[i]) for i, weight in wanted.items())
        yield Term("output_bias", given, "output bias")


def logit(trace: Trace, position: int, wanted: Mapping[int, float]) -> float:
    """The sum of logits as the pass has it, before their cap where there is one."""
    capped = ("logits_before_cap", None) in trace.values
    held = trace["logits_before_cap" if capped else "logits"][position]
    return sum(weight * float(held[i]) for i, weight in wanted.items())


def changed(trace: Trace, found: Directions, value: Value, own: list[Term]) -> Iterator[Term]:
    """What an edit put into a value, if that is more than rounding."""
    parts = reads(trace, value)
    have = [row(trace, full_name(one), found.position) for one in (value, *parts)]
    u = [found.at[one] for one in (value, *parts)]
    held, *given = (float(x @ y) for x, y in zip(have, u, strict=True))
    more = held - sum(given) - sum(term.value for term in own)
    sizes = sum(float(np.linalg.norm(x) * np.linalg.norm(y)) for x, y in zip(have, u, strict=True))
    if not abs(more) <= rounding(trace, sizes + sum(abs(term.value) for term in own)):
        yield Term(f"{full_name(value)} {EDITED}", more, "edit", value[1], of=value)


def with_edited_logit(account: Account, trace: Trace) -> Account:
    """The account with a term for an edit of the logits themselves."""
    if not trace.changed & {("logits", None), ("logits_before_cap", None)}:
        return account
    term = Term(f"logits {EDITED}", account.remainder, "edit", of=("logits", None))
    return replace(account, terms=(*account.terms, term))


def rounding(trace: Trace, size: float) -> float:
    """How far numbers of this size may be off."""
    return ROUNDING[str(trace.logits.dtype)] * max(1.0, size)
