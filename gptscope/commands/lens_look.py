"""What is looked at through the lens, and what stands in a cell."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from gptscope.commands.session import token_text
from gptscope.glyphs import token_glyphs

if TYPE_CHECKING:
    from gptscope.analysis.lens import Lens
    from gptscope.commands.session import Run

COLUMNS = 16  # tokens that are shown unasked where there is an edge


class Show(StrEnum):
    """What stands in the cells of the grid."""

    top = "top"
    prob = "prob"
    rank = "rank"
    entropy = "entropy"
    kl = "kl"


@dataclass(frozen=True, eq=False)
class Look:
    """A pass through the lens, and the one answer that was asked for, if any was."""

    run: Run
    lens: Lens
    answer: int | None

    def text(self, token_id: int) -> str:
        """The text of a token."""
        return token_text(self.run.model, token_id)

    def named(self, token_id: int) -> str:
        """The text of a token, visible, for a sentence."""
        return token_glyphs(self.text(token_id))

    def answer_at(self, column: int) -> int | None:
        """The id that is rated there; None after the last token if nothing is likeliest there."""
        end = self.lens.positions[column] == len(self.run.ids) - 1
        if end and self.answer is None and not self.lens.rank[-1, column]:
            return None
        return self.lens.answers[column]

    def role(self, column: int) -> str:
        """What the token is that is rated there."""
        if self.answer is not None:
            return "answer"
        end = self.lens.positions[column] == len(self.run.ids) - 1
        return "likeliest" if end else "came next"

    def after(self, column: int) -> str:
        """After which token a column stands, in words."""
        return f"after {self.run.place(self.lens.positions[column])}"
