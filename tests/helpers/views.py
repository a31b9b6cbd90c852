"""Small views with a part of every kind, and what is awkward in each."""

import numpy as np

from gptscope.render import render
from gptscope.render.screen import Screen
from gptscope.view import Column, Facts, Grid, Note, Passage, Table, View

NAN, INF = float("nan"), float("inf")
KINDS = (
    *("text", "token", "id", "count", "probability", "signed", "length", "number", "error"),
    *("contribution", "vector"),
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
        (
            "some words",
            " tok",
            7,
            1234,
            0.25,
            -1.5,
            2.0,
            0.8,
            2e-5,
            -0.5,
            np.float32([1, -1, 0.25]),
        ),
        (None, "\n", *(None,) * 8, np.float32([0, 0.5, -0.5])),
    ],
)
GRID = grid([[1.0, 0.5], [0.25, 0.75]], hidden=np.array([[False, True], [False, False]]))
FACTS = Facts("some facts", ((Column("name"), "value"), (Column("n", "count"), 1000)))
NOTE = Note("A note.")
LENS = Grid(
    "a lens",
    ("layer 0", "layer 1"),
    ("a", " b"),
    np.array([[0.5, 0.125], [1.0, 0.25]]),
    row_kind="text",
    hidden=np.array([[False, False], [False, True]]),
    tokens=((" b", "\n"), ("\u6f22\u5b57", "never seen")),
)
PASSAGE = Passage(
    "a passage",
    ("Lily", " ran", ".", "\n", " far"),
    (None, 2.5, 0.25, NAN, 5.0),
    name="told",
)
INPUT = {"text": "a b", "ids": [1, 2], "tokens": ["a", " b"], "prepended": 0, "appended": 0}
EDITS = ("layers.2.heads.*.out=zero", "layers.0.mlp_act[:,17]=0")
PARTS = (TABLE, GRID, FACTS, NOTE, LENS, PASSAGE)
EVERYTHING = View("test", PARTS, {"name": "a model"}, INPUT, EDITS)


def view(*parts):
    return View("test", parts)


def lines(*parts, width=80, **screen):
    """What a terminal shows, line by line, without spaces at their ends."""
    text = render(view(*parts), "table", Screen(width, **screen))
    return [line.rstrip() for line in text.removesuffix("\n").split("\n")]
