"""What a command shows: plain data, without looks. A renderer turns it into text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

Kind = Literal[
    "text",  # words of the program, or of a file
    "token",  # a piece of the user's text
    "id",  # a number that is a name: token id, position, layer, head
    "count",  # how many
    "probability",  # 0 to 1
    "signed",  # a real number around zero
    "length",  # a real number from zero up: norm of a vector, standard deviation
    "number",  # a setting
    "error",  # how far off: three digits; one where it is next to nothing, and known no better
    "contribution",  # a signed part of a sum: a bar to either side shows how large
    "vector",  # a list of signed numbers, [n]
]


@dataclass(frozen=True)
class Column:
    """What stands in one column of a table, or in one fact."""

    name: str
    kind: Kind = "text"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of cells under named columns; None is an empty cell."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Any]]
    name: str = ""  # for programs, where the title says what was asked


@dataclass(frozen=True, eq=False)
class Grid:
    """A matrix of one kind of number, labelled on two sides."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: NDArray[np.floating[Any]]  # [len(rows), len(columns)]
    kind: Kind = "probability"
    row_kind: Kind = "token"
    column_kind: Kind = "token"
    hidden: NDArray[np.bool_] | None = None  # cells where nothing is to be seen
    row_positions: tuple[int, ...] | None = None  # of tokens, where they are not 0, 1, 2, ...
    column_positions: tuple[int, ...] | None = None
    tokens: tuple[tuple[str, ...], ...] | None = None  # one in every cell, above its number
    name: str = ""

    @property
    def at_rows(self) -> Sequence[int]:
        """The position of each row."""
        return range(len(self.rows)) if self.row_positions is None else self.row_positions

    @property
    def at_columns(self) -> Sequence[int]:
        """The position of each column."""
        return range(len(self.columns)) if self.column_positions is None else self.column_positions

    def cells(self) -> list[list[Any]]:
        """The values row by row; None where nothing is to be seen."""
        if self.hidden is None:
            return [list(row) for row in self.values]
        pairs = zip(self.values, self.hidden, strict=True)
        return [[None if h else v for v, h in zip(*pair, strict=True)] for pair in pairs]

    def cell_tokens(self) -> list[list[str | None]] | None:
        """The tokens row by row; None where nothing is to be seen, and where no cell has one."""
        if self.tokens is None:
            return None
        if self.hidden is None:
            return [list(row) for row in self.tokens]
        pairs = zip(self.tokens, self.hidden, strict=True)
        return [[None if h else t for t, h in zip(*pair, strict=True)] for pair in pairs]


@dataclass(frozen=True, eq=False)
class Sheet:
    """Many grids of one kind, small, side by side in rows of `columns`: all heads of a model."""

    title: str
    grids: tuple[Grid, ...]
    columns: int
    name: str = ""


@dataclass(frozen=True, eq=False)
class Passage:
    """A running text, each token on the colour of its number; None where it has none."""

    title: str
    tokens: tuple[str, ...]
    values: Sequence[float | None]  # as many
    kind: Kind = "length"
    name: str = ""


@dataclass(frozen=True, eq=False)
class Facts:
    """A few named values."""

    title: str
    pairs: tuple[tuple[Column, Any], ...]
    name: str = ""


@dataclass(frozen=True)
class Note:
    """A sentence for the reader."""

    text: str


Part = Table | Grid | Sheet | Passage | Facts | Note


@dataclass(frozen=True, eq=False)
class View:
    """The answer of one command: what was asked of which model, and the parts that answer it."""

    command: str
    parts: tuple[Part, ...]
    model: Mapping[str, Any] | None = None
    input: Mapping[str, Any] | None = None
    edits: tuple[str, ...] = ()
