"""What each attention head is for: scores beside what chance would give."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands.options import Pass, Target, with_options
from gptscope.commands.output import show
from gptscope.errors import UsageError

if TYPE_CHECKING:
    from gptscope.commands.heads_asked import Asked

SEEDS, MOST = 5, 1000  # passes over random tokens; at the most


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
    eigen = "eigen"


OF_WEIGHTS = (Score.copying, Score.eigen)


@dataclass(frozen=True)
class How:
    """Which passes are made, and what of them is shown."""

    score: Score | None = None
    seeds: int | None = None  # None: not said
    random_tokens: int | None = None
    details: bool = False
    composition: bool = False

    @property
    def n_seeds(self) -> int:
        """How many passes over random tokens are made."""
        return SEEDS if self.seeds is None else self.seeds


OneLayer = Annotated[
    int | None,
    typer.Option("--layer", "-l", help="Heads of this block only, from 0; -1 is the last."),
]
OneHead = Annotated[
    int | None,
    typer.Option(
        "--head", "-H", help="This head only, from 0; -1 is the last. Of all blocks or one."
    ),
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
        int | None,
        typer.Option(
            min=0,
            help=f"Passes over random tokens, up to {MOST:,}; 0: the text alone.",
            show_default=f"{SEEDS} passes",
        ),
    ] = None,
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
            min=1,
            help="Heads in the grids and tables of all, and in each list of the strongest.",
            show_default="24, and 8",
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
    how = How(score, seeds, random_tokens, details, composition)
    if weights_only:
        check_bare(source, asked, how)
        show(view_of_weights(source, asked), target)
        return
    check_seeds(how)
    check_map(asked, how)
    show(view(source, asked, how), target)


def check_bare(source: Pass, asked: Asked, how: How) -> None:
    """Refuse what needs a pass.

    Raises:
        UsageError: a text, an edit, or a score of a pass is asked for.
    """
    given = {
        "a text": source.text or source.file or source.ids,
        "--bos" if source.bos else "--no-bos": source.bos is not None,
        "--edit": source.edit,
        "--score": how.score,
        "--details": how.details,
        f"--sort {asked.sort}": asked.sort not in (None, *OF_WEIGHTS),
        "--seeds": how.seeds is not None,
        "--random-tokens": how.random_tokens is not None,
    }
    wrong = next((name for name, value in given.items() if value), None)
    if wrong is not None:
        raise UsageError(f"--weights-only runs nothing: {wrong} does not go with it")


def check_seeds(how: How) -> None:
    """Refuse a number of passes that says nothing, or takes too long.

    Raises:
        UsageError: there is one seed, or too many, or none for the random tokens that are wanted.
    """
    if how.n_seeds == 1:
        raise UsageError("--seeds 1 has no standard error", hint="2 or more; 0: the text alone")
    if how.n_seeds > MOST:
        raise UsageError(
            f"--seeds {how.n_seeds} is more than the {MOST:,} passes that are made at the most",
            hint="four times as many halve a standard error",
        )
    if how.n_seeds == 0 and how.random_tokens is not None:
        raise UsageError("--seeds 0 reads no random tokens: --random-tokens does not go with it")


def check_map(asked: Asked, how: How) -> None:
    """Refuse what a heat map cannot show.

    Raises:
        UsageError: tables, an order or a number of heads is asked for.
    """
    if how.score is None:
        return
    given = {
        "--details": how.details,
        "--sort": asked.sort,
        "--top": asked.top and not how.composition,
    }
    wrong = next((name for name, value in given.items() if value), None)
    if wrong is not None:
        raise UsageError(f"--score shows a map of all heads: {wrong} does not go with it")
