"""What each head's matrices do alone: singular values of OV and QK."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.commands.progress import progress
from gptscope.commands.session import about_model, opened
from gptscope.errors import check_index
from gptscope.view import Column, Grid, Note, Part, Table, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gptscope.model.weights import Model

    Array = NDArray[np.floating[Any]]

SHOWN = 3  # singular values of each head
NAMES = {"OV": "W_V W_O, what a head moves", "QK": "W_Q W_K', where it looks"}

MEANING = (
    "Singular values of the product of two matrices as they are stored (Elhage et al. 2021): gains "
    "of norms, biases and the scale of scores are left out. Effective rank: the exponential of the "
    "entropy of their shares (Roy and Vetterli 2007). Norm: the root of the sum of their squares."
)
GROUPED = "Heads of a group share keys and values."
TURNED = "QK is that of queries and keys before they turn, as at a distance of 0."
NORMED = "Norms of queries and keys are left out."


def view_of_heads(name: str, layer: int | None, top: int | None, *, verbose: bool) -> View:
    """For OV and QK a grid of the largest singular values, and a row for each head."""
    from gptscope.analysis.singular import circuits

    model = opened(name, verbose=verbose)
    n = model.spec.n_layers
    layers = range(n) if layer is None else [check_index("layer", layer, n)]
    found = []
    with progress(len(layers)) as tick:
        for i in layers:
            found.append(circuits(model.blocks[i].attention, model.spec.n_heads))
            tick(1)
    ov, qk = (np.stack([getattr(one, key) for one in found]) for key in ("ov", "qk"))
    notes: tuple[Part, ...] = (*left_out(len(layers) * model.spec.n_heads, top), Note(words(model)))
    parts = (*look("OV", ov, layers, top), *look("QK", qk, layers, top), *notes)
    return View("weights", parts, model=about_model(model))


def look(key: str, values: Array, layers: Sequence[int], top: int | None) -> tuple[Grid, Table]:
    """One of the two circuits; values are [layers, H, n]."""
    heads = tuple(map(str, range(values.shape[1])))
    grid = Grid(
        f"{key}, the largest singular value: a row for each layer, a column for each head",
        tuple(map(str, layers)),
        heads,
        values[..., 0],
        "length",
        row_kind="text",
        column_kind="text",
    )
    return grid, table(key, values, layers, top)


def table(key: str, values: Array, layers: Sequence[int], top: int | None) -> Table:
    """A row for each head, or for those with the largest values, the largest first."""
    from gptscope.analysis.singular import effective_rank, norm

    n = min(SHOWN, values.shape[-1])
    columns = (
        *(Column("layer", "id"), Column("head", "id")),
        *(Column(place, "length") for place in ("largest", "second", "third")[:n]),
        *(Column("effective rank", "length"), Column("norm", "length")),
    )
    rank, norms = effective_rank(values), norm(values)
    rows = [
        (layer, h, *values[i, h, :n], rank[i, h], norms[i, h])
        for i, layer in enumerate(layers)
        for h in range(values.shape[1])
    ]
    if top is not None:
        rows = sorted(rows, key=lambda row: -np.nan_to_num(row[2], nan=-1))[:top]
    return Table(f"{key} = {NAMES[key]}", columns, rows)


def left_out(n: int, top: int | None) -> tuple[Note, ...]:
    """How many heads the tables do not show."""
    if top is None or top >= n:
        return ()
    return (Note(f"{top} of {n} heads, those with the largest values; --top {n} shows all."),)


def words(model: Model) -> str:
    """What the numbers mean, and what is left out of them."""
    from gptscope.model.blocks import outlines

    s, attention = model.spec, [block.attention for block in outlines(model.blocks)]
    found = {
        GROUPED: s.n_kv_heads < s.n_heads,
        TURNED: any(one.turning is not None for one in attention),
        NORMED: any(one.q_norm is not None for one in attention),
    }
    width = f"The effective rank is at most the width of a head, {s.d_head}."
    return " ".join([MEANING, width, *(text for text, holds in found.items() if holds)])
