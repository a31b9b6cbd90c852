"""The units of feed-forward layers, and the tokens that heads read, as parts of a logit."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gptscope.commands.attribute_asked import GIVES, Asked, extremes, left_out
from gptscope.view import Column, Grid, Note, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gptscope.commands.attribute_asked import Named
    from gptscope.view import Part

    Array = NDArray[np.floating[Any]]

UNIT = (
    Column("layer", "id"),
    Column("unit", "id"),
    Column("value", "signed"),
    Column("says", "signed"),
    GIVES,
)
TOKEN = (Column("position", "id"), Column("token", "token"))
READ = (Column("weight", "probability"), Column("says", "signed"))
OF_A_UNIT = (
    "gives = value x says: the value of a unit after its activation, and what its row of the down "
    "matrix says at a value of 1"
)
OF_A_HEAD = "gives = weight x says: how much is read of a token, and what its value says"


def by_neuron(asked: Asked) -> list[Part]:
    """The hidden units that give or take most, of all layers or of one."""
    import numpy as np

    layers = asked.layers
    value, says = np.concatenate([units(asked, layer) for layer in layers], axis=1)
    gives = value * says
    places = [(layer, unit) for layer in layers for unit in range(asked.model.spec.d_ff)]
    order, left = asked.in_order(gives)
    rows = [(*places[i], value[i], says[i], gives[i]) for i in order]
    outside = sum(t.value for t in asked.of_kind("feed forward") if t.layer not in layers)
    other = [("units of other layers", outside)] if asked.layer is not None else []
    apart = [("units shown", math.fsum(gives[order])), *left_out(gives[left], "unit"), *other]
    named = [(f"unit {i} of layer {layer}", x) for (layer, i), x in zip(places, gives, strict=True)]
    return [
        Table(f"{asked.what}: hidden units", UNIT, rows, "units"),
        *asked.whole(apart, but=("feed forward",)),
        Note(extremes(named)),
        Note(OF_A_UNIT),
    ]


def units(asked: Asked, layer: int) -> Array:
    """The value of each unit, and what it says at a value of 1: [2, F]."""
    import numpy as np

    from gptscope.analysis.attribution import unit_directions

    values = asked.trace.values["mlp_act", layer][asked.position].astype(np.float64)
    return np.stack([values, unit_directions(asked.model, asked.account.found, layer)])


def by_source(asked: Asked) -> list[Part]:
    """The tokens that heads read: of one head, of all heads of a layer, or of all layers."""
    import numpy as np

    read = [reading(asked, layer) for layer in asked.layers]  # weights, says: [2, H, T] each
    if asked.layer is None:
        cells = np.stack([(weights * says).sum(axis=0) for weights, says in read])
        rows = tuple(f"layer {layer}" for layer in asked.layers)
    else:
        cells = read[0][0] * read[0][1]
        rows = tuple(f"head {h}" for h in range(len(cells)))
    if asked.head is not None:
        return one_head(asked, read[0])
    given = cells.sum(axis=0)
    table = Table("All of these together", (*TOKEN, GIVES), rows_of(asked, given), "tokens")
    return [grid_of(asked, rows, cells), table, *ending(asked, given, read)]


def grid_of(asked: Asked, rows: tuple[str, ...], cells: Array) -> Grid:
    """What the tokens that are shown give, in their own order; only they have a column."""
    order, left = asked.in_order(cells.sum(axis=0))
    at, labels = tuple(sorted(order)), asked.run.labels
    title = f"{asked.what}: tokens read"
    title += f", the {len(at)} that give or take most" * bool(left)
    return Grid(
        title,
        rows,
        tuple(labels[i] for i in at),
        cells[:, at],
        "contribution",
        row_kind="text",
        column_positions=at if left else None,
        name="tokens_by_layer" if asked.layer is None else "tokens_by_head",
    )


def one_head(asked: Asked, read: Array) -> list[Part]:
    """What one head gives by reading each token; of the weights and says of all: [2, H, T]."""
    weights, says = read[:, asked.head]
    given = weights * says
    title = f"{asked.what}: tokens that head {asked.head} of layer {asked.layer} reads"
    table = Table(title, (*TOKEN, *READ, GIVES), rows_of(asked, given, weights, says), "tokens")
    return [table, *ending(asked, given, [read]), Note(OF_A_HEAD)]


def rows_of(asked: Asked, given: Array, *beside: Array) -> list[tuple[Any, ...]]:
    """A row for each token that is shown."""
    order, _ = asked.in_order(given)
    labels = asked.run.labels
    return [(i, labels[i], *(x[i] for x in beside), given[i]) for i in order]


def ending(asked: Asked, given: Array, read: Sequence[Array]) -> list[Part]:
    """The sums, and which token gives most and takes most."""
    order, left = asked.in_order(given)
    heads = asked.of_kind("head")
    chosen = [t for t in heads if t.layer in asked.layers and asked.head in (None, t.head)]
    own = math.fsum(term.value for term in chosen)
    apart: list[Named] = [
        ("tokens shown", math.fsum(given[order])),
        *left_out(given[left], "token"),
    ]
    for layer, one in zip(asked.layers, read, strict=True):
        apart += changed(asked, layer, one)
    if len(chosen) < len(heads):
        apart.append(("other heads", math.fsum(t.value for t in heads) - own))
    named = [(asked.run.place(i), float(x)) for i, x in enumerate(given)]
    return [*asked.whole(apart, but=("head",)), Note(extremes(named))]


def changed(asked: Asked, layer: int, read: Array) -> list[Named]:
    """What an edit put into the outputs of the heads that are shown, if that is more than rounding.

    It is what they give less what their weights and values make of it: [2, H, T].
    """
    import numpy as np

    from gptscope.analysis.attribution import EDITED, rounding

    keys = [key for key in ("out", "attn_concat") if (key, layer) in asked.trace.changed]
    heads = [t for t in asked.of_kind("head") if t.layer == layer and asked.head in (None, t.head)]
    each = [read[0, t.head] * read[1, t.head] for t in heads]
    more = [t.value - float(given.sum()) for t, given in zip(heads, each, strict=True)]
    most = [rounding(asked.trace, float(np.abs(given).sum())) for given in each]
    by = [t.head for t, x, y in zip(heads, more, most, strict=True) if not abs(x) <= y]
    if not keys or not by:
        return []
    names = {
        "out": f"layers.{layer}.heads.{by[0] if len(by) == 1 else '*'}.out",
        "attn_concat": f"layers.{layer}.attn_concat",
    }
    return [(f"{' and '.join(names[key] for key in keys)} {EDITED}", math.fsum(more))]


def reading(asked: Asked, layer: int) -> Array:
    """How much each head reads of each token, and what its value says: [2, H, T]."""
    import numpy as np

    from gptscope.analysis.attribution import source_contributions

    found = source_contributions(asked.model, asked.trace, asked.account.found, layer)
    return np.stack(found)[..., : asked.seen]
