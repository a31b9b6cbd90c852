"""JSON: one envelope for every command; schema.json beside this file says what may stand in it.

null means that nothing is there, as in a hidden cell. What JSON lacks is a string: "NaN",
"Infinity" and "-Infinity".
Numbers keep the shortest digits that give back the same float32 or float64.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from gptscope import __version__
from gptscope.view import Facts, Grid, Note, Part, Passage, Sheet, Table, View

if TYPE_CHECKING:
    from gptscope.render.screen import Screen

SCHEMA = "gptscope/view/2"


def render(view: View, screen: Screen) -> str:  # noqa: ARG001
    """The envelope as one line of ASCII."""
    envelope = {
        "schema": SCHEMA,
        "gptscope": __version__,
        "command": view.command,
        "model": plain(view.model),
        "input": plain(view.input),
        "edits": list(view.edits),
        "parts": [part(p) for p in view.parts],
    }
    return json.dumps(envelope, allow_nan=False) + "\n"


def part(p: Part) -> dict[str, Any]:
    """One part of a view as plain data, with the name it has for programs, if it has one."""
    name = "" if isinstance(p, Note) else p.name
    return unnamed(p) | ({"name": name} if name else {})


def unnamed(p: Part) -> dict[str, Any]:
    """One part without its name."""
    match p:
        case Table(title, columns, rows):
            names = [c.name for c in columns]
            heads = [{"name": c.name, "kind": c.kind} for c in columns]
            cells = [dict(zip(names, plain(list(row)), strict=True)) for row in rows]
            return {"kind": "table", "title": title, "columns": heads, "rows": cells}
        case Grid(title, rows, columns):
            sides = {"rows": list(rows), "columns": list(columns)} | positions(p)
            values = {"values": plain(p.cells())} | spoken(p)
            return {"kind": "grid", "title": title, **sides, **values}
        case Sheet(title, grids, columns):
            inner = [part(one) for one in grids]
            return {"kind": "sheet", "title": title, "columns": columns, "grids": inner}
        case Passage(title, tokens, numbers):
            each = {"tokens": list(tokens), "values": plain(list(numbers))}
            return {"kind": "passage", "title": title, **each}
        case Facts(title, pairs):
            facts = {column.name: plain(value) for column, value in pairs}
            return {"kind": "facts", "title": title, "facts": facts}
        case Note(text):
            return {"kind": "note", "text": text}


def positions(p: Grid) -> dict[str, list[int]]:
    """Where the tokens of rows and columns stand, if that is not 0, 1, 2, ..."""
    sides = {"row_positions": p.row_positions, "column_positions": p.column_positions}
    return {side: list(found) for side, found in sides.items() if found is not None}


def spoken(p: Grid) -> dict[str, list[list[str | None]]]:
    """The token of every cell, if the cells have any."""
    found = p.cell_tokens()
    return {} if found is None else {"tokens": found}


def plain(value: Any) -> Any:  # noqa: ANN401
    """Numbers, arrays, lists and mappings as JSON has them."""
    if isinstance(value, str | int | None):
        return value
    if hasattr(value, "items"):
        return {key: plain(v) for key, v in value.items()}
    if hasattr(value, "__len__"):
        return [plain(v) for v in value]
    if hasattr(value, "dtype"):
        return value.item() if value.dtype.kind in "biu" else number(float(str(value)))
    return number(value)


def number(value: float) -> float | str:
    """A number, or what stands in for one that JSON does not have."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return value
