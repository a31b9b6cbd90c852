"""The effects of a sweep as a picture, and the strongest of them as a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gptscope.view import Column, Grid, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gptscope.view import Kind, Part


@dataclass(frozen=True)
class Looks:
    """How the numbers of a sweep are called and shown."""

    called: str
    kind: Kind = "signed"
    unchanged: float = 0.0  # the number of a pass without the change
    name: str = ""  # of a direction, where there may be two

    @property
    def names(self) -> tuple[str, str]:
        """What programs call the picture, and the strongest of it."""
        return (self.name, f"{self.name}_strongest") if self.name else ("effects", "strongest")

    @property
    def in_table(self) -> Kind:
        """With a bar, where a bar from 0 shows how strong it is."""
        return "contribution" if self.kind == "signed" and not self.unchanged else self.kind


@dataclass(frozen=True, eq=False)
class Map:
    """Numbers of a sweep in rows and columns, and what each is of."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    names: Sequence[Sequence[str]]  # of what was changed
    values: NDArray[np.float64]  # [rows, columns]
    looks: Looks
    hidden: NDArray[np.bool_] | None = None  # where there is none
    tokens: tuple[int, ...] | None = None  # positions, where columns are tokens

    def grid(self) -> Grid:
        """All numbers as a heat map."""
        return Grid(
            self.title,
            self.rows,
            self.columns,
            self.values,
            self.looks.kind,
            row_kind="text",
            column_kind="text" if self.tokens is None else "token",
            hidden=self.hidden,
            column_positions=self.tokens,
            name=self.looks.names[0],
        )

    def table(self, top: int) -> Table:
        """The numbers that are the farthest from those of a pass without the change."""
        flat = [
            (name, column, value)
            for names, values in zip(self.names, self.cells(), strict=True)
            for name, column, value in zip(names, self.columns, values, strict=True)
            if value is not None
        ]
        flat.sort(key=lambda one: -self.size(one[2]))
        shown, n = flat[:top], len(flat)
        title = f"The {len(shown)} strongest of {n:,}" if len(shown) < n else "By strength"
        number = Column(self.looks.called, self.looks.in_table)
        if self.tokens is None:
            rows = [(name, value) for name, _, value in shown]
            return Table(title, (Column("changed"), number), rows, name=self.looks.names[1])
        columns = (Column("changed"), Column("token", "token"), number)
        return Table(title, columns, shown, name=self.looks.names[1])

    def parts(self, top: int) -> list[Part]:
        """The picture and the table; of a single column the table alone, in the order of layers."""
        if len(self.columns) > 1:
            return [self.grid(), self.table(top)]
        number = Column(self.looks.called, self.looks.in_table)
        rows = [(names[0], row[0]) for names, row in zip(self.names, self.cells(), strict=True)]
        told, columns = [row for row in rows if row[1] is not None], (Column("changed"), number)
        return [Table(self.title, columns, told, name=self.looks.names[0])]

    def cells(self) -> list[list[Any]]:
        """The values row by row; None where there is none."""
        return self.grid().cells()

    def size(self, value: float) -> float:
        """How strong an effect is; what is not a number comes first."""
        return abs(value - self.looks.unchanged) if value == value else float("inf")  # noqa: PLR0124
