"""How long the rows of the table of tokens are, or of that of positions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.commands.session import about_model, opened, token_text
from gptscope.errors import UsageError
from gptscope.view import Column, Facts, Note, Part, Table, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gptscope.model.weights import Model
    from gptscope.model.weights import Table as Tensor

TOP = 10


def view_of_rows(name: str, which: str, top: int | None, *, verbose: bool) -> View:
    """How long the rows are: the two ends, the mean, and which are longest and shortest."""
    from gptscope.analysis.tensors_summary import row_lengths

    model = opened(name, verbose=verbose)
    table = table_of(model, which)
    lengths = row_lengths(table)
    n = min(top or TOP, len(lengths))
    order = np.argsort(lengths, kind="stable")
    order = order[np.isfinite(lengths[order])]
    parts = (
        facts(f"The table of {which} of {model.name}", table, lengths),
        ends(model, which, order[::-1][:n].tolist(), lengths, "longest"),
        ends(model, which, order[:n].tolist(), lengths, "shortest"),
        *broken(len(lengths) - len(order)),
    )
    return View("weights", parts, model=about_model(model))


def table_of(model: Model, which: str) -> Tensor:
    """The table of tokens or positions.

    Raises:
        UsageError: the model has no table of positions.
    """
    from gptscope.commands.positions import instead

    if which == "tokens":
        return model.token_table
    if model.position_table is None:
        raise UsageError(f"{model.name} has no table of positions: {instead(model.spec)}")
    return model.position_table


def facts(title: str, table: Tensor, lengths: NDArray[Any]) -> Facts:
    """Sizes, and how long rows are."""
    known = lengths[np.isfinite(lengths)]
    found = {"shortest": known.min, "mean": known.mean, "longest": known.max, "std": known.std}
    pairs = tuple(
        (Column(name, "length"), f() if len(known) else None) for name, f in found.items()
    )
    sizes = ((Column("rows", "count"), len(lengths)), (Column("width", "count"), table.shape[1]))
    return Facts(title, (*sizes, *pairs))


def ends(
    model: Model, which: str, chosen: Sequence[int], lengths: NDArray[Any], what: str
) -> Table:
    """The longest or the shortest rows, with their tokens."""
    length = Column("length", "length")
    if which == "positions":
        rows: list[tuple[Any, ...]] = [(i, lengths[i]) for i in chosen]
        return Table(f"The {what} rows", (Column("position", "id"), length), rows)
    rows = [(i, token_text(model, i), lengths[i]) for i in chosen]
    return Table(f"The {what} rows", (Column("id", "id"), Column("token", "token"), length), rows)


def broken(n: int) -> tuple[Part, ...]:
    """How many rows hold numbers that are none."""
    rows = "1 row holds" if n == 1 else f"{n:,} rows hold"
    return (Note(f"{rows} NaN or infinite numbers, and no length."),) if n else ()
