"""The likeliest next tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptscope.commands.options import Pass, Target, Top, with_options
from gptscope.commands.output import show
from gptscope.commands.sampling import Temperature, TopK, TopP
from gptscope.commands.session import Run, start, token_text
from gptscope.errors import UsageError, check_index
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Facts, Table, View

if TYPE_CHECKING:
    from gptscope.engine.sampling import Sampling


DRAWN = "drawn with"
COLUMNS = (
    Column("rank", "id"),
    Column("id", "id"),
    Column("token", "token"),
    Column("logit", "signed"),
    Column("probability", "probability"),
)


@with_options
def command(
    source: Pass,
    target: Target,
    at: Annotated[
        str, typer.Option("--at", help="After which token: from 0, -1 is the last; or all.")
    ] = "-1",
    top: Top = 10,
    temperature: Temperature = 1.0,
    top_k: TopK = None,
    top_p: TopP = None,
) -> None:
    """The likeliest next tokens, with logits and probabilities.

    gptscope next "Lily wanted to play with her"

    gptscope next "Lily wanted to play with her" --temperature 0.7 --top-k 5

    gptscope next "Lily wanted to play with her" --at all
    """
    from gptscope.engine.sampling import Sampling

    how = Sampling(temperature, top_k, top_p)
    run = start(source)
    logits = run.trace("logits").logits
    if at == "all":
        parts: tuple[Any, ...] = (every_position(logits, run, how),)
    else:
        position = check_index("token", parse_at(at), len(run.ids))
        parts = one_position(logits[position], run, how, (position, top))
    show(View("next", parts, **run.about), target)


def parse_at(text: str) -> int:
    """A position.

    Raises:
        UsageError: it is not a number.
    """
    try:
        return int(text)
    except ValueError:
        raise UsageError(f"--at takes a position or all, not {text!r}") from None


def one_position(
    logits: Any,  # noqa: ANN401
    run: Run,
    how: Sampling,
    where: tuple[int, int],
) -> tuple[Table, Facts]:
    """The top tokens after one position, and what is left for all others.

    `probability` is softmax(logits); with settings, `drawn with` is what a draw would use.
    """
    from gptscope.engine.sampling import Sampling, distribution, ranked

    position, top = where
    plain, drawn = distribution(logits, Sampling()), distribution(logits, how)
    columns = COLUMNS if how == Sampling() else (*COLUMNS, Column(DRAWN, "probability"))
    order = ranked(logits, top).tolist()
    rows = [
        (rank, i, token_text(run.model, i), logits[i], plain[i], drawn[i])[: len(columns)]
        for rank, i in enumerate(order, 1)
    ]
    title = f"After token {position} {token_glyphs(run.labels[position])} {told(how)}"
    chosen = None if how == Sampling() else drawn
    return Table(title.strip(), columns, rows), the_rest(plain, chosen, order)


def the_rest(plain: Any, drawn: Any, order: list[int]) -> Facts:  # noqa: ANN401
    """What the tokens that are not shown have together; `drawn` is None without settings."""
    import numpy as np

    facts = [
        (Column("tokens not shown", "count"), len(plain) - len(order)),
        (Column("their probability", "probability"), float(np.delete(plain, order).sum())),
    ]
    if drawn is not None:
        facts += [
            (Column(f"their {DRAWN}", "probability"), float(np.delete(drawn, order).sum())),
            (Column("tokens that can be drawn", "count"), int((drawn > 0).sum())),
        ]
    return Facts("", tuple(facts))


def every_position(logits: Any, run: Run, how: Sampling) -> Table:  # noqa: ANN401
    """For each token: the best guess for the next one, and how the one that came was rated."""
    from gptscope.engine.sampling import Sampling, distribution, rank

    name = "probability" if how == Sampling() else DRAWN
    columns = (
        Column("position", "id"),
        Column("token", "token"),
        Column("best guess", "token"),
        Column(name, "probability"),
        Column("what came", "token"),
        Column(f"its {name}", "probability"),
        Column("its rank", "id"),
    )
    rows = []
    for i, row in enumerate(logits):
        p = distribution(row, how)
        best = int(row.argmax())
        came = run.ids[i + 1] if i + 1 < len(run.ids) else None
        seen = (None,) * 3 if came is None else (run.labels[i + 1], p[came], rank(row, came))
        rows.append((i, run.labels[i], token_text(run.model, best), p[best], *seen))
    return Table(f"After every token {told(how)}".strip(), columns, rows)


def told(how: Sampling) -> str:
    """The settings that change the probabilities, in words."""
    words = [f"temperature {how.temperature:g}"] if how.temperature != 1 else []
    words += [f"top-k {how.top_k}"] if how.top_k is not None else []
    words += [f"top-p {how.top_p:g}"] if how.top_p is not None else []
    return f"({', '.join(words)})" if words else ""
