"""Where two passes part: every step of the stream, and the predictions that move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gptscope.commands.answers import drawable
from gptscope.commands.session import Run, token_text
from gptscope.model.files import counted
from gptscope.view import Column, Grid, Note, Part, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.analysis.compare import Moved
    from gptscope.engine.trace import Trace

    Traces = tuple[Trace, Trace]

KL = "KL(before || after)"
WIDE = 16  # tokens in a grid, where not all are wanted
LAYERS = (
    Column("value"),
    Column("distance", "length"),
    Column("relative", "length"),
    Column("most, relative", "length"),
    Column("at token"),
    Column("tokens changed", "count"),
)
MOVED = (
    Column("position", "id"),
    Column("token", "token"),
    Column("best guess before", "token"),
    Column("best guess after", "token"),
    Column("KL, bits", "length"),
)


@dataclass(frozen=True)
class Asked:
    """What is to be shown of two passes."""

    position: int
    answers: tuple[int, ...]  # the one asked about, and the one it is compared with
    top: int
    every: bool  # token, however many there are


def layers(run: Run, made: Moved, asked: Asked) -> list[Part]:
    """Every part and state of the stream from the first that is moved on: here, and where most."""
    import numpy as np

    counts = made.changed.sum(axis=1).tolist()
    start = next((i for i, n in enumerate(counts) if n), None)
    if start is None:
        return []
    rows = []
    for i, name in list(enumerate(made.rows))[start:]:
        far = int(np.nan_to_num(made.relative[i], nan=-1, posinf=np.inf).argmax())
        here = made.distance[i, asked.position], made.relative[i, asked.position]
        at = run.place(far).removeprefix("token ") if counts[i] else None
        unknown = not counts[i] and np.isnan(made.distance[i]).any()
        rows.append((name, *here, made.relative[i, far], at, None if unknown else counts[i]))
    since = from_there_on(made.rows, start)
    title = f"How far values are moved at {run.place(asked.position)}, and at most{since}"
    words = "distance: the length of (after - before); relative: that over the length before."
    return [Table(title, LAYERS, rows, name="values"), Note(words)]


def grid(run: Run, made: Moved, asked: Asked) -> list[Part]:
    """The stream after each step x tokens: how far it is moved, as a part of its length.

    It begins where the stream is moved first; nothing where it never is.
    """
    steps = made.states.nonzero()[0].tolist()
    start = next((n for n, i in enumerate(steps) if made.changed[i].any()), None)
    if start is None:
        return []
    at, rows = shown(made, asked), [made.rows[i] for i in steps]
    whole = len(at) == len(run.ids)
    title = f"How far the stream is moved, in parts of its length{from_there_on(rows, start)}"
    if not whole:
        title += f"; {len(at)} of {len(run.ids)} tokens, {which(made, at)}"
    moved = Grid(
        title,
        tuple(rows[start:]),
        tuple(run.labels[i] for i in at),
        made.relative[steps[start:]][:, at],
        "length",
        row_kind="text",
        column_positions=None if whole else tuple(at),
        name="stream",
    )
    return [moved]


def from_there_on(rows: Sequence[str], start: int) -> str:
    """Where what is shown begins, if not with the first."""
    return f", from {rows[start]} on" if start else ""


def shown(made: Moved, asked: Asked) -> list[int]:
    """The positions that stand in a grid, in order: those that are moved, of many the farthest."""
    moved = reached(made)
    if asked.every or not moved:
        return [*range(len(made.kl))]
    return sorted([i for i in far(made) if i in moved][:WIDE])


def reached(made: Moved) -> set[int]:
    """The positions where the stream is moved at all."""
    import numpy as np

    return set(np.flatnonzero(np.any(made.changed[made.states], axis=0)).tolist())


def which(made: Moved, at: list[int]) -> str:
    """Which positions these are."""
    more = len(reached(made)) > len(at)
    return "those whose prediction moves most" if more else "the others are not moved"


def far(made: Moved) -> list[int]:
    """The positions whose prediction moves, the farthest first."""
    import numpy as np

    size = np.where(np.isnan(made.kl), np.inf, made.kl)
    order: list[int] = np.argsort(-size, kind="stable").tolist()
    return order


def shifted(run: Run, traces: Traces, made: Moved, asked: Asked) -> list[Part]:
    """How far the prediction after each token moves; of many the farthest."""
    every = [i for i in range(len(run.ids)) if made.predictions[i]]
    some = every if asked.every else [i for i in far(made) if made.predictions[i]][:WIDE]
    x, y = (trace["logits"] for trace in traces)
    rows = [
        (i, run.labels[i], best(run, x[i]), best(run, y[i]), float(made.kl[i]))
        for i in sorted(some)
    ]
    left = len(every) - len(some)
    more = [Note(f"{counted(left, 'prediction')} more moved less: -f csv has all")] if left else []
    return [
        Table(f"Predictions that moved: {KL} after each token", MOVED, rows, name="predictions"),
        *more,
    ]


def best(run: Run, logits: Any) -> str | None:  # noqa: ANN401
    """The likeliest token, where there is one."""
    return token_text(run.model, int(logits.argmax())) if drawable(logits) else None
