"""CSV: tables, grids, passages and facts, one after another, a blank line and a title between."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from gptscope.glyphs import visible
from gptscope.view import Column, Facts, Grid, Note, Part, Passage, Sheet, Table, View

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.render.screen import Screen

    Data = Table | Grid | Passage | Facts

FORMULA = ("=", "+", "-", "@")  # a spreadsheet would compute a cell that begins so


def render(view: View, screen: Screen) -> str:  # noqa: ARG001
    """The parts that hold data; a title only where there are several."""
    parts = [one for p in view.parts for one in flat(p)]
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    for i, p in enumerate(parts):
        if i:
            out.writerow([])
        if len(parts) > 1 and p.title:
            out.writerow([cell(p.title)])
        out.writerows([cell(value) for value in row] for row in lines(p))
    return text.getvalue()


def flat(p: Part) -> tuple[Data, ...]:
    """The parts that hold data; a sheet is its grids."""
    if isinstance(p, Sheet):
        return p.grids
    return () if isinstance(p, Note) else (p,)


def lines(p: Data) -> Iterator[list[Any]]:
    """The header and the rows of one part."""
    match p:
        case Table(_, columns, rows):
            sizes = [_size(column, rows, i) for i, column in enumerate(columns)]
            yield [name for c, n in zip(columns, sizes, strict=True) for name in _names(c, n)]
            for row in rows:
                yield [v for value, n in zip(row, sizes, strict=True) for v in _spread(value, n)]
        case Grid() if p.tokens is not None:
            yield from one_by_one(p)
        case Grid(_, rows, columns):
            yield ["", *columns]
            yield from ([label, *line] for label, line in zip(rows, p.cells(), strict=True))
        case Passage(_, tokens, numbers):
            yield ["position", "token", "value"]
            yield from ([i, *both] for i, both in enumerate(zip(tokens, numbers, strict=True)))
        case Facts(_, pairs):
            yield [column.name for column, _ in pairs]
            yield [value for _, value in pairs]


def one_by_one(p: Grid) -> Iterator[list[Any]]:
    """A line for every cell of a grid with tokens; a position after every label of a token."""
    sides = (p.row_kind == "token", p.column_kind == "token")
    names = ["row position", "column position"] if all(sides) else ["position", "position"]
    yield ["row", *names[: sides[0]], "column", *names[1 : 1 + sides[1]], "token", "value"]
    rows = zip(p.rows, p.at_rows, p.cell_tokens() or (), p.cells(), strict=True)
    for row, at_row, tokens, values in rows:
        before = [row, at_row][: 1 + sides[0]]
        columns = zip(p.columns, p.at_columns, tokens, values, strict=True)
        for column, at_column, token, value in columns:
            yield [*before, *[column, at_column][: 1 + sides[1]], token, value]


def cell(value: Any) -> Any:  # noqa: ANN401
    """A cell that no spreadsheet takes for a formula; empty where nothing is."""
    if not isinstance(value, str):
        return "" if value is None else value
    shown = visible(value, keep="\n")
    return f"'{shown}" if shown.startswith(FORMULA) else shown


def _size(column: Column, rows: Any, i: int) -> int | None:  # noqa: ANN401
    """The length of the lists in a column of vectors."""
    return len(rows[0][i]) if column.kind == "vector" and len(rows) else None


def _names(column: Column, n: int | None) -> list[str]:
    return [column.name] if n is None else [f"{column.name}[{i}]" for i in range(n)]


def _spread(value: Any, n: int | None) -> list[Any]:  # noqa: ANN401
    return [value] if n is None else list(value)
