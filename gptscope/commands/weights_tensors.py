"""Tensors by name: how each is stored, and what its numbers are like."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gptscope.commands.info_files import shapes_of
from gptscope.commands.progress import progress
from gptscope.errors import UsageError
from gptscope.model.files import short
from gptscope.view import Column, Facts, Note, Part, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gptscope.analysis.tensors import Held
    from gptscope.analysis.tensors_summary import Moments, Summary
    from gptscope.model.checkpoint import Checkpoint
    from gptscope.model.weights import Table as Tensor

    Cells = tuple[object, ...]

NAMED = 8  # tensors in a sentence
NAME = Column("tensor")
STORED = (
    NAME,
    Column("stored as"),
    Column("shape"),
    Column("bytes", "count"),
    Column("zeros", "probability"),
)
NOT_FINITE = Column("not finite", "count")
NUMBERS = (
    NAME,
    Column("mean", "signed"),
    Column("std", "length"),
    Column("largest abs", "length"),
    Column("histogram"),
)
BARS, DIGITS = ".▁▂▃▄▅▆▇█", "0123456789"  # nothing, then little to much


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
    from gptscope.analysis.tensors import beginning, by_pattern, matching

    names = list(checkpoint.arrays)
    if pattern is not None:
        begun = beginning(names)
        names = matching(names, pattern) or matching(names, begun + pattern)
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


def parts_of(
    title: str, rows: list[Row], top: int | None, *, begun: str, glyphs: str
) -> tuple[Part, ...]:
    """Totals; how each is stored; what its numbers are like.

    Every name begins with `begun`; histograms are drawn with `glyphs`, the first of them nothing.
    """
    shown = rows[:top]
    names = [row.name.removeprefix(begun) for row in shown]
    broke = any(row.moments.not_finite for row in rows)
    cells = [stored(row, broke=broke) for row in shown]
    columns = (*STORED, *([NOT_FINITE] if broke else []))
    like = [numbers(row, glyphs) for row in shown]
    return (
        totals(title, rows, begun),
        Table("How they are stored", columns, named(names, cells)),
        Table("What their numbers are like", NUMBERS, named(names, like)),
        Note(words(rows, shown, glyphs)),
        *broken(rows),
    )


def named(names: Sequence[str], cells: Sequence[Cells]) -> list[Cells]:
    """Rows that begin with a name."""
    return [(name, *row) for name, row in zip(names, cells, strict=True)]


def totals(title: str, rows: list[Row], begun: str) -> Facts:
    """All that was looked at."""
    from gptscope.analysis.tensors import held

    whole = held(tensor for row in rows for tensor in row.tensors)
    pairs = {
        "tensors": whole.tensors,
        "numbers": whole.numbers,
        "bytes": whole.bytes,
    }
    counts = tuple((Column(name, "count"), n) for name, n in pairs.items())
    shared = ((Column("all names begin with"), begun),) if begun else ()
    return Facts(title, (*counts, *shared))


def stored(row: Row, *, broke: bool) -> Cells:
    """Kind, shape, bytes and zeros of a row; how many numbers are none, if any row has some."""
    from gptscope.analysis.tensors import kind

    kinds = ", ".join(dict.fromkeys(map(kind, row.tensors)))
    shapes = shapes_of([tensor.shape for tensor in row.tensors])
    zeros = row.share_of_zeros if row.moments.n else None
    more = (row.moments.not_finite,) if broke else ()
    return kinds, shapes, row.held.bytes, zeros, *more


def numbers(row: Row, glyphs: str) -> Cells:
    """Mean, spread, largest and histogram of a row; nothing where it has no finite number."""
    found = row.moments
    if not found.n:
        return None, None, None, ""
    return found.mean, found.std, found.largest, bars(row.summary.heights, glyphs)


def bars(heights: Iterable[float], glyphs: str) -> str:
    """A glyph for each height of 0 to 1: the first for 0 alone."""
    return "".join(glyphs[math.ceil(height * (len(glyphs) - 1))] for height in heights)


def words(rows: list[Row], shown: list[Row], glyphs: str) -> str:
    """What the columns mean, and how many rows were left out."""
    from gptscope.analysis.tensors_summary import BINS, SPAN

    left = f"{len(shown)} of {len(rows)} rows; --top {len(rows)} shows all. "
    return (
        f"{left if len(shown) < len(rows) else ''}zeros: their share; std: of the population; all "
        f"of finite numbers. The histogram has the mean in its middle and {BINS} bins, {SPAN} std "
        "wide together; the first and the last have all beyond. From nothing to the fullest bin: "
        f"{glyphs}"
    )


def broken(rows: list[Row]) -> tuple[Note, ...]:
    """Which tensors hold numbers that are none."""
    names = [row.name for row in rows if row.moments.not_finite]
    if not names:
        return ()
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    named = ", ".join(map(short, names[:NAMED]))
    return (Note(f"NaN or infinite numbers are in {named}{more}."),)
