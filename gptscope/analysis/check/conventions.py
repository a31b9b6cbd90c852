"""Other conventions that the weights of a model may have been made for."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

from gptscope.analysis.check import attention, changes
from gptscope.engine.ops import ACTIVATIONS
from gptscope.model.files import counted

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
    numbers: list[tuple[str, Model | None]] = [
        *((f"positions counted from {n}", changes.shifted(model, n)) for n in SHIFTS),
        *((f"a rotary base of {n:,.0f}", attention.with_base(model, n)) for n in BASES),
        *(
            (counted(int(s.n_heads * n), "head"), attention.with_heads(model, n))
            for n in HEAD_FACTORS
        ),
    ]
    yield from ((words, made) for words, made in numbers if made is not None)


def swapped(model: Model) -> Iterator[tuple[str, Model]]:
    """Two blocks in each other's place."""
    n = model.spec.n_layers
    pairs = combinations(range(n), 2) if n <= FEW_LAYERS else pairwise(range(n))
    for a, b in pairs:
        order = [{a: b, b: a}.get(layer, layer) for layer in range(n)]
        yield f"blocks {a} and {b} swapped", changes.in_order(model, order)


CHANGES: dict[str, Change] = {  # in words -> the change
    "scores scaled otherwise: by 1, or by 1/sqrt(head width)": attention.scale,
    "scores divided by the number of the layer as well": attention.scale_by_layer,
    "1 added to every gain of the norms": lambda m: changes.gains(m, 1),
    "1 taken from every gain of the norms": lambda m: changes.gains(m, -1),
    "rotary pairs side by side in the file, not in halves": lambda m: attention.pairs(
        m, back=False
    ),
    "rotary pairs in halves in the file, not side by side": lambda m: attention.pairs(m, back=True),
    "queries, keys and values fused head by head": lambda m: attention.fused(m, back=False),
    "queries, keys and values in thirds, not head by head": lambda m: attention.fused(m, back=True),
    "queries and keys swapped": attention.queries_and_keys,
    "head h reading keys and values h mod G, not h // (H/G)": attention.dealt,
    "keys and values of the groups in the reverse order": lambda m: attention.reversed_groups(
        m, "k", "v"
    ),
    "values of the groups in the reverse order": lambda m: attention.reversed_groups(m, "v"),
    "the matrices of queries transposed": lambda m: attention.transposed(m, "q"),
    "the matrices of keys transposed": lambda m: attention.transposed(m, "k"),
    "the matrices of values transposed": lambda m: attention.transposed(m, "v"),
    "the output matrices of attention transposed": lambda m: attention.transposed(m, "out"),
    "the matrices of queries, keys and values transposed": lambda m: attention.transposed(
        m, "q", "k", "v"
    ),
    "all square matrices of attention transposed": lambda m: attention.transposed(
        m, "q", "k", "v", "out"
    ),
    "the gate and the units that it multiplies swapped": changes.gates,
    "the two norms of a block swapped": changes.norms,
    "a causal mask": changes.seen_ahead,
    "no sliding windows": attention.without_windows,
    "token rows scaled otherwise: by sqrt(width), or by 1": changes.embed_scale,
    "the token table as output": changes.tied,
    "attention and feed-forward layer both at once, or in a row": changes.parallel,
    "the other kind of norm: RMS or layer norm": changes.other_norm,
    "no soft caps": changes.uncapped,
}
