"""What `steer` shows: how long a direction is, what it tells apart, what it makes likelier."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gptscope.commands.diff_values import cut
from gptscope.commands.session import about_model, token_text
from gptscope.glyphs import visible
from gptscope.view import Column, Facts, Note, Part, Table, View

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gptscope.analysis.steer import Fed, Separation
    from gptscope.model.weights import Model

    Array = NDArray[Any]
    Texts = list[tuple[str, str]]

SIDES = (
    Column("side"),
    Column("texts", "count"),
    Column("mean along it", "signed"),
    Column("standard deviation", "length"),
)
TEXTS = (Column("side"), Column("text"), Column("along it", "signed"))
PAIR = Column("cosine of its pair", "signed")
TOKENS = (
    Column("rank", "id"),
    Column("raised", "token"),
    Column("raised by", "contribution"),
    Column("lowered", "token"),
    Column("lowered by", "contribution"),
)
USUAL = {"last": "the last of each text", "all": "the mean over each text"}


@dataclass(frozen=True)
class Made:
    """A direction, and what it was made of: first the texts --from, then those --to."""

    model: Model
    name: str
    tokens: str
    texts: tuple[Texts, Texts]
    rows: Sequence[Array]  # [n, d] and [m, d]
    fed: Sequence[Sequence[Fed]]
    edits: tuple[str, ...]

    @cached_property
    def direction(self) -> Array:
        """The difference of the means: [d]."""
        from gptscope.analysis.steer import direction

        return direction(*self.rows)

    @property
    def paired(self) -> bool:
        """Whether either side has as many texts, and more than one."""
        return len(self.rows[0]) == len(self.rows[1]) > 1


def view(made: Made, top: int, output: Path | None) -> View:
    """Facts, the two sides, tokens, and how to use it."""
    from gptscope.analysis.steer import separation

    found = separation(*made.rows)
    parts: list[Part] = [facts(made, found), sides(found), *texts(made, found, top)]
    if not made.direction.any():
        parts.append(Note("Both sides have the same mean: the direction is 0"))
    parts += [*tokens(made, top), *notes(made, found, output)]
    return View("steer", tuple(parts), about_model(made.model), edits=made.edits)


def facts(made: Made, found: Separation) -> Facts:
    """How long the direction is, and how well it tells the texts apart."""
    import numpy as np

    from gptscope.analysis.lengths import lengths
    from gptscope.analysis.steer import cosines

    length = float(lengths(made.direction))
    whole = float(lengths(np.concatenate(made.rows)).mean())
    n = sum(map(len, made.rows))
    pairs: list[tuple[Column, Any]] = [
        (Column("model"), made.model.name),
        (Column("value"), made.name),
        (Column("tokens"), USUAL[made.tokens]),
        (Column("length of the direction", "length"), length),
        (Column("mean length of the value", "length"), whole),
        (Column("direction / value", "length"), length / whole if whole else None),
        (Column("told apart, the same texts"), of_all(found.right, n)),
        (Column("told apart, each left out"), of_all(found.right_left_out, n)),
    ]
    if made.paired:
        each = cosines(made.rows[1] - made.rows[0], made.direction)
        pairs += [
            (Column("cosine of the pairs, mean", "signed"), number(each.mean())),
            (Column("cosine of the pairs, smallest", "signed"), number(each.min())),
        ]
    return Facts("", tuple(pairs), name="direction")


def of_all(count: int | None, n: int) -> str | None:
    """So many of n, where they are counted."""
    return None if count is None else f"{count} of {n}"


def sides(found: Separation) -> Table:
    """Where the two sets lie along the direction."""
    rows = [
        (side, len(x), number(x.mean()), number(x.std(ddof=1)) if len(x) > 1 else None)
        for side, x in zip(("from", "to"), found.projections, strict=True)
    ]
    return Table("Where the texts lie along the direction", SIDES, rows, name="sides")


def number(x: Any) -> float | None:  # noqa: ANN401
    """A number; None where a direction of zeros gives none."""
    return float(x) if x == x else None  # noqa: PLR0124 - NaN is not itself


def texts(made: Made, found: Separation, top: int) -> list[Part]:
    """Every text, where there are several, and how far its pair goes the same way."""
    from gptscope.analysis.steer import cosines

    if max(map(len, made.rows)) == 1:
        return []
    along = found.projections
    each = cosines(made.rows[1] - made.rows[0], made.direction).tolist() if made.paired else []
    columns = (*TEXTS, PAIR) if made.paired else TEXTS
    rows = [
        (side, text, number(along[i][j]), *(number(x) for x in each[j : j + 1]))
        for i, side in enumerate(("from", "to"))
        for j, (_, text) in enumerate(made.texts[i])
    ]
    if made.paired:  # pairs stand together
        n = len(made.rows[0])
        rows = [row for pair in zip(rows[:n], rows[n:], strict=True) for row in pair]
    cuts = cut("The texts", columns, rows, top)
    return [replace(one, name="texts") if isinstance(one, Table) else one for one in cuts]


def tokens(made: Made, top: int) -> list[Part]:
    """The tokens that the direction makes likelier and less likely, by itself."""
    import numpy as np

    from gptscope.analysis.steer import lensed
    from gptscope.engine.hook_points import parse
    from gptscope.engine.sampling import ranked
    from gptscope.engine.trace import trace

    address = parse(made.name)
    run = trace(made.model, made.fed[0][0].ids, ["token_embeddings", "position_embeddings"])
    given = lensed(made.model, run, (address.point.key, address.layer), made.direction)
    if given is None:
        return [Note(f"{made.name} is no part of the stream: it raises no token by itself")]
    if not np.isfinite(given).all() or not given.any():
        return []
    up, down = ranked(given, top).tolist(), ranked(-given, top).tolist()
    rows = [
        (rank, token_text(made.model, i), given[i], token_text(made.model, j), given[j])
        for rank, (i, j) in enumerate(zip(up, down, strict=True), 1)
    ]
    words = (
        "Logits of the direction past all later layers, with the gains of the norms and without "
        "their scales, less the mean over all tokens: what moves all alike changes no probability"
    )
    title = "Tokens that it raises and lowers most"
    return [Table(title, TOKENS, rows, name="tokens"), Note(words)]


def notes(made: Made, found: Separation, output: Path | None) -> list[Note]:
    """What the numbers mean, and how to add the direction."""
    file = "steer.npz" if output is None else str(output)
    line = shlex.quote(f"{made.name}=+{file}*1")
    add = visible(f"To add it once, or more or less: gptscope generate TEXT --edit {line}")
    keep = [] if output is not None else [Note("-o steer.npz keeps the direction in a file")]
    words = (
        "Told apart: texts on their own side of the middle between the two means; "
        "each left out: by a direction made without that text"
    )
    if found.right is None:
        words = "One text on a side is always told apart, so that is counted from two a side on"
    return [Note(words), *keep, Note(add)]
