"""What `attention` shows of a look: grids, sheets of small ones, tables, and words beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.commands.attention_look import Look, Scale, Stage, Where, named
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Grid, Kind, Note, Sheet, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gptscope.view import Part

KINDS: dict[Scale, Kind] = {
    Scale.linear: "probability",
    Scale.log: "length",
    Scale.rank: "probability",
}
SCALED = {
    Scale.linear: "",
    Scale.log: " in powers of ten above a millionth",
    Scale.rank: " by rank within each row",
}
READ = (Column("position", "id"), Column("token", "token"))


def numbers(look: Look, where: Where) -> list[Grid | Note]:
    """One head as a grid with numbers, and where its last row looks, in words."""
    title = f"Layer {where[0]}, head {where[1]}: {what(look)}, a row reads from the columns"
    return [grid(look, where, title), Note(looks(look, where))]


def sheet(look: Look, heads: Sequence[Where]) -> list[Part]:
    """Heads as small grids; of one layer, also what its last token reads most, in numbers."""
    one = len({layer for layer, _ in heads}) == 1
    name, which = ("head {1}", f"Layer {heads[0][0]}") if one else ("{0}.{1}", "Every layer.head")
    grids = tuple(grid(look, where, name.format(*where)) for where in heads)
    title = f"{which}: {what(look)}, a row reads from the columns"
    small = Sheet(title, grids, look.run.model.spec.n_heads)
    return [small, last_row(look, heads)] if one else [small]


def what(look: Look) -> str:
    """What stands in the cells."""
    if look.stage != Stage.weights:
        return look.stage.value
    return "weights" + (" without the first token" if look.no_first else "") + SCALED[look.scale]


def grid(look: Look, where: Where, title: str) -> Grid:
    """One head in the window, with the true positions."""
    import numpy as np

    from gptscope.analysis.attention import windowed

    window, labels = look.window, look.labels
    values, hidden = in_scale(look, where)
    rows = range(len(window.rows))
    shown = (windowed(x, rows, window.columns) for x in (values, hidden))
    cells, unseen = (np.ascontiguousarray(x) for x in shown)
    kind: Kind = KINDS[look.scale] if look.stage == Stage.weights else "signed"
    if window.whole:
        return Grid(title, labels, labels, cells, kind, hidden=unseen)
    left, above = (tuple(labels[i] for i in side) for side in (window.rows, window.columns))
    return Grid(
        title,
        left,
        above,
        cells,
        kind,
        hidden=unseen,
        row_positions=tuple(window.rows),
        column_positions=tuple(window.columns),
    )


def in_scale(look: Look, where: Where) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
    """The window's rows, whole, in the scale that is asked for, and what is hidden in them."""
    from gptscope.analysis.attention import powers_of_ten, rank_shares

    if look.stage != Stage.weights:
        return look.values(where, look.window.rows, look.stage)
    weights, hidden = look.weights(where, look.window.rows)
    if look.scale == Scale.log:
        return powers_of_ten(weights), hidden
    return (rank_shares(weights, hidden) if look.scale == Scale.rank else weights), hidden


def looks(look: Look, where: Where) -> str:
    """A sentence on where the last row looks."""
    import numpy as np

    from gptscope.analysis.attention import most_read

    at = look.window.rows[-1]
    weights, hidden = (x[0] for x in look.weights(where, [at]))
    if np.isnan(weights[~hidden]).any():
        return f"What {named(look, at)} reads is not a number"
    most = most_read(weights, hidden, 3)
    seen = ", ".join(f"{token_glyphs(look.labels[i])} {weights[i]:.2f}" for i in most)
    name = named(look, at)
    return (
        f"{name[0].upper()}{name[1:]} looks most at {seen or 'the first token, and nothing else'}"
    )


def last_row(look: Look, heads: Sequence[Where]) -> Table:
    """The token that the last row reads most, head by head."""
    from gptscope.analysis.attention import most_read

    at = look.window.rows[-1]
    rows = []
    for where in heads:
        weights, hidden = (x[0] for x in look.weights(where, [at]))
        most = most_read(weights, hidden, 1)
        cells = [(i, look.labels[i], weights[i]) for i in most]
        nothing = (None, None, None if hidden.all() else float("nan"))
        rows.append((where[1], *(cells[0] if cells else nothing)))
    columns = (Column("head", "id"), *READ, Column("weight", "probability"))
    return Table(f"What {named(look, at)} reads most", columns, rows)


def row(look: Look, where: Where, at: int) -> Table:
    """What one token reads, in every stage."""
    layer, head = where
    scores, _ = look.values(where, [at], Stage.scores)
    scaled, _ = look.values(where, [at], Stage.scaled)
    weights, hidden = look.weights(where, [at])
    columns = (
        *READ,
        Column("score", "signed"),
        Column("scaled", "signed"),
        Column("weight", "probability"),
    )
    rows = [
        (i, look.labels[i], scores[0, i], scaled[0, i], weights[0, i])
        for i in look.window.columns
        if not hidden[0, i]
    ]
    title = f"Layer {layer}, head {head}: what token {at} {token_glyphs(look.labels[at])} reads"
    return Table(title, columns, rows)


def added(look: Look, where: Where, chosen: Sequence[int]) -> Table:
    """What some tokens read together: their rows added, and the mean of those that read."""
    from gptscope.analysis.attention import summed

    layer, head = where
    weights, hidden = look.weights(where, chosen)
    total, n = summed(weights, range(len(chosen))), int((~hidden.all(axis=1)).sum())
    columns = (*READ, Column("sum", "length"), Column("mean", "probability"))
    rows = [
        (i, look.labels[i], total[i], total[i] / n)
        for i in look.window.columns
        if not hidden[:, i].all()
    ]
    names = " + ".join(f"{i} {token_glyphs(look.labels[i])}" for i in chosen)
    return Table(f"Layer {layer}, head {head}: what {names} read, added", columns, rows)


def top_in_words(look: Look, where: Where, rows: Sequence[int], n: int) -> Table:
    """The n tokens that each token reads most, in words."""
    import numpy as np

    lines = []
    for at, weights, hidden in zip(rows, *look.weights(where, rows), strict=True):
        most = most_in_window(look, weights, hidden, n)
        words = ", ".join(f"{i} {token_glyphs(look.labels[i])} {weights[i]:.2f}" for i in most)
        wrong = np.isnan(weights[~hidden]).any()
        lines.append((at, look.labels[at], words or ("not a number" if wrong else "nothing")))
    return Table(top_title(where), (*READ, Column("reads most")), lines)


def top_in_rows(look: Look, where: Where, rows: Sequence[int], n: int) -> Table:
    """The same as data: a row for each token, and each that it reads."""
    lines = [
        (at, look.labels[at], place, i, look.labels[i], weights[i])
        for at, weights, hidden in zip(rows, *look.weights(where, rows), strict=True)
        for place, i in enumerate(most_in_window(look, weights, hidden, n), 1)
    ]
    read = (Column("rank", "id"), Column("reads position", "id"), Column("reads token", "token"))
    return Table(top_title(where), (*READ, *read, Column("weight", "probability")), lines)


def most_in_window(
    look: Look, weights: NDArray[np.floating[Any]], hidden: NDArray[np.bool_], n: int
) -> list[int]:
    """The columns of the window that one row reads most."""
    import numpy as np

    from gptscope.analysis.attention import most_read

    unseen = np.ones_like(hidden)
    unseen[[*look.window.columns]] = False
    return most_read(weights, hidden | unseen, n)


def top_title(where: Where) -> str:
    """The head, and what its table shows."""
    return f"Layer {where[0]}, head {where[1]}: what each token reads most"
