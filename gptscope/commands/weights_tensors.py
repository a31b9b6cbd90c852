"""Tensors by name: how each is stored, and what its numbers are like."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gptscope.commands.info_files import shapes_of
from gptscope.commands.progress import progress
from gptscope.errors import UsageError
from gptscope.model.files import short
from gptscope.view import Column, Facts, Note, Part, Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gptscope.analysis.tensors import Held
    from gptscope.analysis.tensors_summary import Moments, Summary
    from gptscope.model.checkpoint import Checkpoint
    from gptscope.model.weights import Table as Tensor

NAMED = 8  # tensors in a sentence
NAME = Column("tensor")
STORED = (
    NAME,
    Column("stored as"),
    Column("shape"),
    Column("bytes", "count"),
    Column("not finite", "count"),
)
NUMBERS = (
    NAME,
    Column("mean", "signed"),
    Column("std", "length"),
    Column("largest", "length"),
    Column("zeros", "probability"),
    Column("histogram", "vector"),
)


@dataclass(frozen=True, eq=False)
class Row:
    """A tensor, or several with names alike, and what its numbers are like."""

    name: str
    tensors: Sequence[Tensor]
    held: Held
    summary: Summary

    @property
    def moments(self) -> Moments:
        """Mean, spread and ends."""
        return self.summary.moments

    @property
    def share_of_zeros(self) -> float:
        """Zeros over all numbers; 0 where there are none."""
        return self.moments.zeros / max(1, self.held.numbers)


def rows_of(
    checkpoint: Checkpoint, pattern: str | None, *, together: bool
) -> Mapping[str, list[Tensor]]:
    """The tensors that match, those with names alike together if that is wanted.

    Raises:
        UsageError: none matches.
    """
    from gptscope.analysis.tensors import by_pattern, matching

    names = list(checkpoint.arrays)
    if pattern is not None:
        names = matching(names, pattern)
    if pattern is not None and not names:
        what = f"no tensor of {checkpoint.path.name} is called {short(pattern)}"
        some = ", ".join(short(name) for name in list(checkpoint.arrays)[:3])
        raise UsageError(what, hint=f"they are called {some}, ...; a star stands for anything")
    alike = by_pattern(names) if together else {name: [name] for name in names}
    return {name: [checkpoint.arrays[one] for one in ones] for name, ones in alike.items()}


def measured(groups: Mapping[str, list[Tensor]]) -> list[Row]:
    """All numbers of every tensor, read once for the moments and once for the histogram."""
    from gptscope.analysis.tensors import held
    from gptscope.analysis.tensors_summary import summaries

    sums = {name: held(tensors) for name, tensors in groups.items()}
    rows = []
    with progress(sum(one.numbers for one in sums.values())) as tick:
        for (name, tensors), summary in zip(
            groups.items(), summaries(groups.values()), strict=True
        ):
            rows.append(Row(name, tensors, sums[name], summary))
            tick(sums[name].numbers)
    return rows


def parts_of(title: str, rows: list[Row], top: int | None) -> tuple[Part, ...]:
    """Totals; how each is stored; what its numbers are like."""
    shown = rows[:top]
    return (
        totals(title, rows),
        Table("How they are stored", STORED, [stored(row) for row in shown]),
        Table("What their numbers are like", NUMBERS, [numbers(row) for row in shown]),
        Note(words(rows, shown)),
        *broken(rows),
    )


def totals(title: str, rows: list[Row]) -> Facts:
    """All that was looked at."""
    from gptscope.analysis.tensors import held

    whole = held(tensor for row in rows for tensor in row.tensors)
    pairs = {
        "tensors": whole.tensors,
        "numbers": whole.numbers,
        "bytes": whole.bytes,
    }
    counts = tuple((Column(name, "count"), n) for name, n in pairs.items())
    return Facts(title, counts)


def stored(row: Row) -> tuple[object, ...]:
    """Kind, shape and bytes of a row."""
    from gptscope.analysis.tensors import kind

    kinds = ", ".join(dict.fromkeys(map(kind, row.tensors)))
    shapes = shapes_of([tensor.shape for tensor in row.tensors])
    held = row.held
    return row.name, kinds, shapes, held.bytes, row.moments.not_finite


def numbers(row: Row) -> tuple[object, ...]:
    """Mean, spread, ends and histogram of a row; nothing where it has no finite number."""
    found = row.moments
    if not found.n:
        return row.name, None, None, None, None, row.summary.heights
    means = found.mean, found.std, found.largest
    return row.name, *means, row.share_of_zeros, row.summary.heights


def words(rows: list[Row], shown: list[Row]) -> str:
    """What the columns mean, and how many rows were left out."""
    from gptscope.analysis.tensors_summary import BINS, SPAN

    left = f"{len(shown)} of {len(rows)} rows; --top {len(rows)} shows all. "
    return (
        f"{left if len(shown) < len(rows) else ''}std: of the population; largest: without its "
        "sign; zeros: their share; all of finite numbers. The histogram has the mean in its middle "
        f"and {BINS} bins, {SPAN} std wide together; the first and the last have all beyond; the "
        "fullest is 1."
    )


def broken(rows: list[Row]) -> tuple[Note, ...]:
    """Which tensors hold numbers that are none."""
    names = [row.name for row in rows if row.moments.not_finite]
    if not names:
        return ()
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    named = ", ".join(map(short, names[:NAMED]))
    return (Note(f"NaN or infinite numbers are in {named}{more}."),)
