"""What each attention head is for: scores beside what chance would give."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import typer

from gptscope.commands.options import Pass, Target, with_options
from gptscope.commands.output import show
from gptscope.errors import UsageError


class Score(StrEnum):
    """What heads are scored by."""

    previous = "previous"
    itself = "itself"
    first = "first"
    duplicate = "duplicate"
    induction = "induction"
    entropy = "entropy"
    distance = "distance"
    copying = "copying"


@dataclass(frozen=True)
class How:
    """Which passes are made, and what of them is shown."""

    score: Score | None
    seeds: int
    random_tokens: int | None
    details: bool
    composition: bool


OneLayer = Annotated[
    int | None, typer.Option("--layer", "-l", help="Heads of this block only, from 0.")
]
OneHead = Annotated[
    int | None, typer.Option("--head", "-H", help="This head only, from 0; of all blocks or one.")
]


@with_options
def command(
    source: Pass,
    target: Target,
    layer: OneLayer = None,
    head: OneHead = None,
    score: Annotated[
        Score | None, typer.Option(help="One score as a heat map, layers x heads.")
    ] = None,
    sort: Annotated[
        Score | None, typer.Option(help="The largest of this score first; else by layer.")
    ] = None,
    details: Annotated[
        bool, typer.Option("--details", help="Every score with its standard error and chance.")
    ] = False,
    composition: Annotated[
        bool, typer.Option("--composition", help="Which heads read what earlier ones write.")
    ] = False,
    weights_only: Annotated[
        bool, typer.Option("--weights-only", help="Copying and composition alone: no text is read.")
    ] = False,
    seeds: Annotated[
        int, typer.Option(min=0, help="Passes over random tokens; 0: the text alone.")
    ] = 5,
    random_tokens: Annotated[
        int | None,
        typer.Option(
            "--random-tokens",
            min=2,
            help="Random tokens, which then come once more.",
            show_default="50, or as many as fit",
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=1, help="How many heads to show.", show_default="48, and 8 of a kind or composition"
        ),
    ] = None,
) -> None:
    """What each attention head is for: scores beside what chance would give.

    gptscope heads "Lily wanted to play with her"

    gptscope heads --model llama-tiny --score previous

    gptscope heads --model llama-tiny --layer 1 --head 0

    gptscope heads --weights-only

    Where a head looks: at the token before, itself, the first token, an
    earlier duplicate of the token, or what came after that (induction); on the
    text and on random tokens that are repeated. Chance is a head that spreads
    evenly over what it sees.
    """
    from gptscope.commands.heads_asked import Asked
    from gptscope.commands.heads_view import view, view_of_weights

    asked = Asked(layer, head, sort, top)
    if weights_only:
        check_bare(source, score, sort, details=details)
        show(view_of_weights(source, asked), target)
        return
    if seeds == 1:
        raise UsageError("--seeds 1 has no standard error", hint="2 or more; 0: the text alone")
    how = How(score, seeds, random_tokens, details, composition)
    show(view(source, asked, how), target)


def check_bare(source: Pass, score: str | None, sort: str | None, *, details: bool) -> None:
    """Refuse what needs a pass.

    Raises:
        UsageError: a text, an edit, or a score of a pass is asked for.
    """
    given = {
        "a text": source.text or source.file or source.ids,
        "--edit": source.edit,
        "--score": score,
        "--details": details,
        f"--sort {sort}": sort not in (None, Score.copying),
    }
    wrong = next((name for name, value in given.items() if value), None)
    if wrong is not None:
        raise UsageError(f"--weights-only runs nothing: {wrong} does not go with it")
