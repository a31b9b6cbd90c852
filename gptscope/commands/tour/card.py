"""What every card is made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Facts, Part, Table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gptscope.commands.session import Run
    from gptscope.engine.trace import Trace
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Model

TOKENS, NUMBERS, TOP = 6, 4, 5  # shown of each


@dataclass(frozen=True)
class Card:
    """A step of the pass: in words, in shapes, as a formula, as a line of Python, in numbers."""

    title: str
    what: str
    paper: str  # how Vaswani et al. 2017 have it
    shapes: str
    formula: str
    python: str  # runs after the lines of `setup`
    values: tuple[Part, ...]

    def parts(self, number: int) -> tuple[Part, ...]:
        """The card as parts of a view."""
        words = (
            (Column("what"), self.what),
            (Column("2017 paper"), self.paper),
            (Column("shapes"), self.shapes),
            (Column("formula"), self.formula),
            (Column("python"), self.python),
        )
        return Facts(f"{number}. {self.title}", words), *self.values


@dataclass(frozen=True, eq=False)
class Walk:
    """What the cards speak of: a text on its way through a model."""

    run: Run

    @property
    def model(self) -> Model:
        """The model."""
        return self.run.model

    @property
    def spec(self) -> Spec:
        """Its sizes and choices."""
        return self.run.model.spec

    @property
    def n_tokens(self) -> int:
        """T."""
        return len(self.run.ids)

    @cached_property
    def trace(self) -> Trace:
        """Every value."""
        return self.run.trace()

    @property
    def shown(self) -> range:
        """The positions that tables and grids show: the first few."""
        return range(min(self.n_tokens, TOKENS))

    @property
    def last(self) -> str:
        """The last position and its token."""
        return f"token {self.n_tokens - 1} {token_glyphs(self.run.labels[-1])}"

    def table(self, columns: Iterable[Column], rows: Iterable[Any]) -> Table:
        """A row of numbers for each token that is shown."""
        heads = (Column("position", "id"), Column("token", "token"), *columns)
        pairs = zip(self.shown, rows, strict=False)
        return Table(self.of_them, heads, [(i, self.run.labels[i], *row) for i, row in pairs])

    @property
    def of_them(self) -> str:
        """A title, where not all tokens are shown."""
        return "" if self.n_tokens <= TOKENS else f"The first {TOKENS} of {self.n_tokens} tokens"


def numbers(d: int) -> tuple[Column, ...]:
    """Columns for the first few of d dimensions."""
    return columns(range(min(d, NUMBERS)))


def columns(dimensions: Iterable[int]) -> tuple[Column, ...]:
    """A column for each of these dimensions."""
    return tuple(Column(f"dim {i}", "signed") for i in dimensions)
