"""The parts of a logit one by one, and summed by layer, by head and by feed-forward layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gptscope.commands.attribute_asked import GIVES, Asked, extremes, left_out, rest
from gptscope.view import Column, Grid, Note, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.analysis.attribution import Term
    from gptscope.view import Part

PARTS = ("attention", "feed forward")
ATTENTION, MLP = ("head", "attention bias"), ("feed forward", "feed-forward bias")
OTHER = ("norm shift", "edit")
LAYER = Column("layer", "id")


def by_part(asked: Asked) -> list[Part]:
    """Every part."""
    pairs = [(term.name, term.value) for term in asked.terms]
    order, left = asked.in_order([value for _, value in pairs])
    order += [i for i in left if asked.terms[i].kind == "edit"]
    left = [i for i in left if i not in order]
    rows = [pairs[i] for i in order] + left_out([pairs[i][1] for i in left], "part")
    table = Table(asked.what, (Column("part"), GIVES), rows, "parts")
    return [table, asked.closing(), Note(extremes(pairs))]


def by_layer(asked: Asked) -> list[Part]:
    """What attention and feed-forward layer of each block give, with their biases."""
    rows, pairs = [], []
    for layer in range(asked.model.spec.n_layers):
        here = [term for term in asked.terms if term.layer == layer]
        split = of_kinds(here, ATTENTION), of_kinds(here, MLP)
        other = of_kinds(here, OTHER)
        rows.append((layer, *split, other, sum(split) + other))
        pairs += [(f"{part} of layer {layer}", x) for part, x in zip(PARTS, split, strict=True)]
    columns = (*(Column(name, "signed") for name in PARTS), Column(other_name(asked), "signed"))
    plain = all(row[3] == 0 for row in rows)
    shown = [(*row[:3], row[4]) if plain else row for row in sort(asked, rows)]
    columns = (LAYER, *(columns[:2] if plain else columns), Column("together", "contribution"))
    outside = [(term.name, term.value) for term in asked.terms if term.layer is None]
    every = ("all layers", math.fsum(row[-1] for row in rows))
    table = Table(asked.what, columns, shown, "layers")
    whole = asked.whole([every, *outside], but=kinds(asked))
    return [table, *whole, Note(extremes([*pairs, *outside]))]


def other_name(asked: Asked) -> str:
    """What a layer has beside its two parts: shifts of norms, what edits put there, or both."""
    kinds = {term.kind for term in asked.terms if term.layer is not None and term.kind in OTHER}
    names = {"norm shift": "norms", "edit": "edits"}
    return " and ".join(name for kind, name in names.items() if kind in kinds)


def by_head(asked: Asked) -> list[Part]:
    """Every head, as a grid of layers and heads."""
    import numpy as np

    heads = [term for term in asked.terms if term.kind == "head"]
    values = np.array([term.value for term in heads]).reshape(asked.model.spec.n_layers, -1)
    rows = tuple(f"layer {layer}" for layer in range(len(values)))
    columns = tuple(f"head {h}" for h in range(values.shape[1]))
    grid = Grid(
        asked.what,
        rows,
        columns,
        values,
        "contribution",
        row_kind="text",
        column_kind="text",
        name="heads",
    )
    said = Note(extremes([(f"layers.{t.layer}.heads.{t.head}", t.value) for t in heads]))
    return [grid, *asked.whole([("all heads", total(heads))], but=("head",)), said]


def by_mlp(asked: Asked) -> list[Part]:
    """Every feed-forward layer, and its bias."""
    rows = []
    for layer in range(asked.model.spec.n_layers):
        here = [term for term in asked.terms if term.layer == layer]
        split = tuple(of_kinds(here, (kind,)) for kind in MLP)
        rows.append((layer, *split, sum(split)))
    columns = (
        LAYER,
        Column("units", "signed"),
        Column("bias", "signed"),
        Column("together", "contribution"),
    )
    table = Table(asked.what, columns, sort(asked, rows), "feed_forward")
    every = rest([term for term in asked.terms if term.kind in MLP], but=())
    said = Note(extremes([(f"feed forward of layer {row[0]}", row[3]) for row in rows]))
    return [table, *asked.whole(every, but=MLP), said]


def sort(asked: Asked, rows: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
    """Rows by the size of their last number, if that is asked for."""
    return [rows[i] for i in asked.in_order([row[-1] for row in rows])[0]]


def kinds(asked: Asked) -> tuple[str, ...]:
    """All kinds of terms."""
    return tuple({term.kind for term in asked.terms})


def of_kinds(terms: Sequence[Term], which: Sequence[str]) -> float:
    """The sum of the terms of some kinds."""
    return total([term for term in terms if term.kind in which])


def total(terms: Sequence[Term]) -> float:
    """The sum of these terms."""
    return math.fsum(term.value for term in terms)
