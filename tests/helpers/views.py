"""Small views with a part of every kind, and what is awkward in each."""

import numpy as np

from gptscope.view import Column, Facts, Grid, Note, Table, View

NAN, INF = float("nan"), float("inf")
KINDS = (
    *("text", "token", "id", "count", "probability", "signed", "length", "number", "error"),
    "vector",
)


def grid(values, rows=None, columns=None, **kinds):
    values = np.array(values)
    rows = rows or [f"r{i}" for i in range(len(values))]
    columns = columns or [f"c{i}" for i in range(values.shape[1])]
    return Grid("a grid", tuple(rows), tuple(columns), values, **kinds)


TABLE = Table(
    "a table",
    tuple(Column(kind, kind) for kind in KINDS),
    [
        ("some words", " tok", 7, 1234, 0.25, -1.5, 2.0, 0.8, 2e-5, np.float32([1, -1, 0.25])),
        (None, "\n", None, None, None, None, None, None, None, np.float32([0, 0.5, -0.5])),
    ],
)
GRID = grid([[1.0, 0.5], [0.25, 0.75]], hidden=np.array([[False, True], [False, False]]))
FACTS = Facts("some facts", ((Column("name"), "value"), (Column("n", "count"), 1000)))
NOTE = Note("A note.")
INPUT = {"text": "a b", "ids": [1, 2], "tokens": ["a", " b"], "prepended": 0, "appended": 0}
EVERYTHING = View("test", (TABLE, GRID, FACTS, NOTE), {"name": "a model"}, INPUT)


def view(*parts):
    return View("test", parts)
