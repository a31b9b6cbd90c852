"""What must be said beside attention: what is hidden, what the numbers are, what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.commands.attention_built import built
from gptscope.commands.attention_look import Look, Scale, Stage, Where, spoken
from gptscope.glyphs import token_glyphs
from gptscope.view import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

SCALES = {
    Scale.log: "6 is a weight of 1, 5 is 0.1, 4 is 0.01, and so on; 0 is a millionth or less",
    Scale.rank: (
        "1.00 is what a row reads most; of the n tokens that it sees, it reads the one at 1/n least"
    ),
}


def notes(look: Look, heads: Sequence[Where], rows: Sequence[int] | None = None) -> list[Note]:
    """What is to be said of these heads; `rows` where a table shows other rows than the window."""
    said = [SCALES.get(look.scale), *built(look.run, heads)]
    if look.no_first:
        said.append(without_first(look, heads, look.window.rows if rows is None else rows))
    if not look.window.whole:
        said.append(left_out(look, heads, rows))
    return [Note(text) for text in said if text]


def without_first(look: Look, heads: Sequence[Where], rows: Sequence[int]) -> str:
    """How much the first token took from the rows shown, and what became of the others."""
    import numpy as np

    text = f"The first token {token_glyphs(look.labels[0])} is hidden"
    others = [at for at in rows if at > 0]
    if others:
        took = [look.values(where, others, Stage.weights)[0][:, 0] for where in heads]
        kind = "row" if len(heads) == 1 else "row of each head"
        text += (
            f": it took {np.mean(took):.2f} of a {kind} on average, and what is left of each row "
            "is divided by its sum, so that it adds up to 1 again"
        )
    if 0 in rows and all(look.weights(where, [0])[1].all() for where in heads):
        text += ". Row 0 reads nothing else"
    return text


def left_out(look: Look, heads: Sequence[Where], rows: Sequence[int] | None) -> str:
    """What the window leaves out, how much that is, and how to see it."""
    window = look.window
    shown, every, part = rows, "--cols :", "--cols 3,4,9"
    sides = side("column", window.columns)
    if shown is None:
        shown, every, part = window.rows, "--rows : --cols :", "--rows 0:10"
        sides = f"{side('row', window.rows)} and {sides}"
    text = f"This is a window: {sides} of the tokens 0 to {window.n - 1}"
    share = missing(look, heads, shown) if look.stage == Stage.weights else 0.0
    if share >= 0.005:
        text += f"; {share:.2f} of what a row reads is outside it on average"
    return f"{text}. {every} shows all; --last 10 or {part} another part"


def side(name: str, positions: Sequence[int]) -> str:
    """Rows or columns in words."""
    return f"{name}{'s' if len(positions) > 1 else ''} {spoken(positions)}"


def missing(look: Look, heads: Sequence[Where], rows: Sequence[int]) -> float:
    """The mean share of these rows that lies outside the window's columns; 0 if it is none."""
    import numpy as np

    from gptscope.analysis.attention import outside

    shares = [outside(look.weights(where, rows)[0], look.window.columns) for where in heads]
    return float(np.mean(shares))
