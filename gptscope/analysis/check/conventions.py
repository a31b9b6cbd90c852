"""Other conventions that the weights of a model may have been made for."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from gptscope.analysis.check import changes
from gptscope.analysis.check.result import many
from gptscope.engine.ops import ACTIVATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gptscope.model.weights import Model

    Change = Callable[[Model], Model | None]

EPSILONS = (1e-5, 1e-6, 1e-12)
BASES = (1e4, 5e5, 1e6)
SHIFTS = (1, 2, -1, -2)
HEAD_FACTORS = (2, 0.5, 4, 0.25)
LIKE = ("gelu", "gelu_new", "quick_gelu", "relu", "silu")  # one of each kind
FEW_LAYERS = 8  # any two may have been swapped; of more, only neighbours are


def conventions(model: Model) -> Iterator[tuple[str, Model]]:
    """Every other convention that applies to this model: in words, and the changed model."""
    for words, change in CHANGES.items():
        made = change(model)
        if made is not None:
            yield words, made
    yield from settings(model)
    yield from swapped(model)


def settings(model: Model) -> Iterator[tuple[str, Model]]:
    """Other values of the numbers and names that a config says."""
    s = model.spec
    own = ACTIVATIONS.get(s.activation)
    for name in LIKE:
        if ACTIVATIONS[name] is not own:
            yield f"the activation {name}", replace(model, spec=replace(s, activation=name))
    for eps in EPSILONS:
        if eps != s.norm_eps:
            yield f"a norm epsilon of {eps:g}", replace(model, spec=replace(s, norm_eps=eps))
    for shift in SHIFTS if model.position_table is not None else ():
        yield f"positions counted from {shift}", changes.shifted(model, shift)
    for base in BASES:
        made = changes.with_base(model, base)
        if made is not None:
            yield f"a rotary base of {base:,.0f}", made
    for factor in HEAD_FACTORS:
        made = changes.with_heads(model, s.n_heads * factor)
        if made is not None:
            yield many(made.spec.n_heads, "head"), made


def swapped(model: Model) -> Iterator[tuple[str, Model]]:
    """Two blocks in each other's place."""
    n = model.spec.n_layers
    pairs = combinations(range(n), 2) if n <= FEW_LAYERS else pairwise(range(n))
    for a, b in pairs:
        order = [{a: b, b: a}.get(layer, layer) for layer in range(n)]
        yield f"blocks {a} and {b} swapped", changes.in_order(model, order)


CHANGES: dict[str, Change] = {  # in words -> the change
    "scores scaled otherwise: by 1, or by 1/sqrt(head width)": changes.scale,
    "scores divided by the number of the layer as well": changes.scale_by_layer,
    "1 added to every gain of the norms": lambda m: changes.gains(m, 1),
    "1 taken from every gain of the norms": lambda m: changes.gains(m, -1),
    "rotary pairs side by side in the file, not in halves": lambda m: changes.pairs(m, back=False),
    "rotary pairs in halves in the file, not side by side": lambda m: changes.pairs(m, back=True),
    "queries, keys and values fused head by head": lambda m: changes.fused(m, back=False),
    "queries, keys and values in thirds, not head by head": lambda m: changes.fused(m, back=True),
    "queries and keys swapped": changes.queries_and_keys,
    "the output matrices of attention transposed": lambda m: changes.transposed(m, "out"),
    "the matrices of queries, keys and values transposed": lambda m: changes.transposed(
        m, "q", "k", "v"
    ),
    "a causal mask": changes.seen_ahead,
    "no sliding windows": changes.without_windows,
    "token rows scaled otherwise: by sqrt(width), or by 1": changes.embed_scale,
    "the token table as output": changes.tied,
    "attention and feed-forward layer both at once, or in a row": changes.parallel,
    "the other kind of norm: RMS or layer norm": changes.other_norm,
    "no soft caps": changes.uncapped,
}
