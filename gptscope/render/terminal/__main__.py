"""A gallery: every kind of part and of column, as this terminal shows it.

python -m gptscope.render.terminal --theme light --width 40
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import os
import sys
from contextlib import suppress
from typing import Any

from gptscope.render.screen import screen_of
from gptscope.render.terminal import render
from gptscope.view import Column, Facts, Grid, Note, Part, Passage, Sheet, Table, View

WORDS = (" Lily", " ran", "\n", " 漢字", "e\u0301", "a_b~", "\x1b[31m", " 👩")
COLUMNS = (
    Column("text"),
    Column("token", "token"),
    Column("id", "id"),
    Column("count", "count"),
    Column("probability", "probability"),
    Column("signed", "signed"),
    Column("length", "length"),
    Column("number", "number"),
    Column("error", "error"),
    Column("contribution", "contribution"),
)
ROWS: tuple[tuple[Any, ...], ...] = (
    ("words", " Lily", 643, 28_348_416, 0.75, -1.5, 2.25, 0.8, 0.0123, -1.5),
    ("odd ones: é ł · ~", "a_b~", 5, 12, 0.2, 0.0042, 0.5, 1e-5, 2e-5, 3.0),
    ("next to nothing", "\t", 7, 0, 1e-9, -1e-9, 0.0, 40, 0, 1e-9),
    ("wrong", "\x1b", 8, 1, math.nan, math.inf, math.nan, math.nan, math.nan, math.nan),
    (None, "", None, None, None, None, None, None, None, None),
)


def gallery() -> View:
    """A view with every kind of part."""
    wave = [math.sin(i / 5) * (1 - i / 140) for i in range(128)]
    lists = Table("A list", (Column("list", "vector"),), [(wave,), ([*wave[:20], math.nan],)])
    facts = tuple(zip(COLUMNS, ROWS[0], strict=True))
    parts: tuple[Part, ...] = (
        Note("A note. Text is never markup: [bold]; control characters are shown: \x1b[31m."),
        Facts("Facts", facts),
        Table("A table of every kind of column", COLUMNS, ROWS),
        Table("Parts of a sum", (COLUMNS[0], COLUMNS[-1]), [(row[0], row[-1]) for row in ROWS]),
        lists,
        lens(),
        *(Passage(f"A passage: {kind}", *running(kind), kind) for kind in ("length", "signed")),
        *(grid(kind) for kind in ("probability", "signed", "length")),
        Sheet("A sheet of grids", tuple(head(i) for i in range(8)), 4),
        Sheet("A sheet that is made smaller", tuple(head(i, 40) for i in range(12)), 12),
        Sheet("A sheet of signed grids", tuple(wavy(i) for i in range(4)), 4),
    )
    given = {"ids": list(range(30)), "prepended": 1, "appended": 0}
    edits = ("layers.2.heads.1.out=zero", "layers.*.heads.0.out=\x1b[31m")
    return View("gallery", parts, {"name": "a model"}, given, edits)


def lens(n: int = 12) -> Grid:
    """A token in every cell, above its number."""
    words = [*WORDS, " supercalifragilistic", ",", " girl"]
    rows = tuple(f"layer {i}" for i in range(4))
    tokens = tuple(tuple(words[(i * j + j) % len(words)] for j in range(n)) for i in range(4))
    values: Any = [[((i + 1) * (j + 2) % 9) / 8 for j in range(n)] for i in range(4)]
    columns = tuple(words[i % len(words)] for i in range(n))
    return Grid("A grid with tokens", rows, columns, values, row_kind="text", tokens=tokens)


def running(kind: Any) -> tuple[tuple[str, ...], tuple[float | None, ...]]:  # noqa: ANN401
    """A text and its numbers; the first token has none, and one went wrong."""
    tokens = ("Once", " upon", " a", " time", *WORDS, " and", " un", "believ", "ably", ".") * 2
    low = -5 if kind == "signed" else 0
    values = [low + (3.7 * i) % (10 if kind == "signed" else 5) for i in range(len(tokens))]
    return tokens, (None, *values[1:9], math.nan, *values[10:])


def grid(kind: Any) -> Grid:  # noqa: ANN401
    """A matrix with every eighth of the scale, and what is hidden."""
    n = len(WORDS)
    low = -1 if kind == "signed" else 0
    values: Any = [[low + (i + j) * (1 - low) / (2 * n - 2) for j in range(n)] for i in range(n)]
    hidden: Any = [[j > i + 4 for j in range(n)] for i in range(n)]
    return Grid(f"A grid: {kind}", WORDS, WORDS, values, kind, hidden=hidden)


def head(i: int, n: int = 10) -> Grid:
    """Something like the weights of a head: each row sums to 1, later tokens are hidden."""
    raw = [[math.exp(-abs(r - c - i) * 0.7) * (c <= r) for c in range(n)] for r in range(n)]
    values: Any = [[v / sum(row) for v in row] for row in raw]
    hidden: Any = [[c > r for c in range(n)] for r in range(n)]
    return Grid(f"{i // 4}.{i % 4}", ("",) * n, ("",) * n, values, hidden=hidden)


def wavy(i: int, n: int = 10) -> Grid:
    """Values on both sides of zero."""
    values: Any = [[math.sin((r + 1) * (c + i) / 9) for c in range(n)] for r in range(n)]
    return Grid(f"wave {i}", ("",) * n, ("",) * n, values, "signed")


def main(args: list[str] | None = None) -> None:
    """Print the gallery; the options are those of every command."""
    parser = argparse.ArgumentParser("python -m gptscope.render.terminal", description=__doc__)
    parser.add_argument("--theme", choices=["auto", "dark", "light"], default="auto")
    parser.add_argument("--ascii", action="store_true")
    parser.add_argument("--no-color", action="store_true")
    parser.add_argument("--width", type=int)
    parser.add_argument("--precision", type=int)
    asked = parser.parse_args(args)
    screen = screen_of(sys.stdout)
    screen = dataclasses.replace(
        screen,
        width=asked.width or screen.width,
        unicode=screen.unicode and not asked.ascii,
        colours=not asked.no_color,
        light=screen.light if asked.theme == "auto" else asked.theme == "light",
        precision=asked.precision,
    )
    with suppress(BrokenPipeError):
        print(render(gallery(), screen), end="", flush=True)  # noqa: T201
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit


if __name__ == "__main__":
    main()
