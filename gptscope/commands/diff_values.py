"""Values of two passes side by side, as `check` and `diff` show them; long tables are cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.view import Column, Note, Part, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.analysis.errors_of_values import Compared

VALUES = (
    Column("value"),
    Column("error", "error"),
    Column("mean error", "error"),
    Column("limit", "error"),
    Column("agrees"),
)


def value_parts(values: Sequence[Compared], title: str, top: int) -> list[Part]:
    """A row for each value from the first that differs on; all, where none does."""
    start = next((i for i, one in enumerate(values) if not one.agrees), 0)
    since = f", from {values[start].name} on" if start else ""
    rows = [
        (v.name, v.error, v.mean, v.limit, v.wrong or ("yes" if v.agrees else "no"))
        for v in values[start:]
    ]
    return cut(f"{title}, errors in parts of the scale{since}", VALUES, rows, top)


def cut(title: str, columns: tuple[Column, ...], rows: Sequence[Any], top: int) -> list[Part]:
    """A table of the first rows, if there are any, and a note of how many were left out."""
    if not rows:
        return []
    parts: list[Part] = [Table(title, columns, rows[:top])]
    if len(rows) > top:
        parts.append(Note(f"{len(rows) - top:,} more: --top {len(rows)} shows all"))
    return parts
