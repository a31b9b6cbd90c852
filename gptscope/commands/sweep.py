"""The effect of every edit of a kind, as a heat map with numbers."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.analysis.sweep_choices import KINDS, METRICS, REPLACEMENTS
from gptscope.commands import sweep_words as words
from gptscope.commands.options import Against, Answer, At, Pass, Target, with_options
from gptscope.commands.output import for_programs, show
from gptscope.commands.sweep_asked import Asked, Direction, asked_of
from gptscope.commands.sweep_cells import directions, patched, taken_away
from gptscope.commands.sweep_paths import ends_of, told_by_the_other, told_instead
from gptscope.errors import UsageError
from gptscope.view import View

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gptscope.commands.sweep_map import Map


# For the help, from the tables of what there is to choose.
PATCHED_ONLY = " and ".join(name for name, kind in KINDS.items() if kind.patched_only)
PUT = ", or ".join(one.what for one in REPLACEMENTS.values())
DISTANCES = "".join(f"; {name}: {one.what}" for name, one in METRICS.items() if one.is_distance)

if TYPE_CHECKING:
    What = str
    With = str
    Metric = str
else:
    What = StrEnum("What", {name: name for name in KINDS})
    With = StrEnum("With", {name: name for name in REPLACEMENTS})
    Metric = StrEnum("Metric", {name: name for name in METRICS})
USUAL = Metric("logit")


@with_options
def command(
    source: Pass,
    target: Target,
    answer: Answer = None,
    against: Against = None,
    at: At = -1,
    what: Annotated[
        What | None,
        typer.Option(
            "--what",
            help=f"Which values are changed, one in each pass; {PATCHED_ONLY} need --clean.",
            show_default="heads",
        ),
    ] = None,
    replacement: Annotated[
        With | None,
        typer.Option("--with", help=f"What is put there: {PUT}.", show_default="mean"),
    ] = None,
    metric: Annotated[
        Metric,
        typer.Option(help=f"What is measured: of the answer{DISTANCES}."),
    ] = USUAL,
    clean: Annotated[
        str | None,
        typer.Option(
            help="The text that leads to the answer, in place of TEXT.", show_default=False
        ),
    ] = None,
    corrupt: Annotated[
        str | None,
        typer.Option(help="A text of as many tokens that leads elsewhere.", show_default=False),
    ] = None,
    direction: Annotated[
        Direction | None,
        typer.Option(
            help="Clean values into the corrupt run (denoise), the other way, or both.",
            show_default="denoise",
        ),
    ] = None,
    sender: Annotated[
        str | None,
        typer.Option("--from", help="Along paths from here: layers.0.heads.3.", show_default=False),
    ] = None,
    receiver: Annotated[
        str | None,
        typer.Option("--to", help="To there: layers.3.heads.*.q, logits.", show_default=False),
    ] = None,
    freeze_mlp: Annotated[
        bool, typer.Option("--freeze-mlp", help="No path goes through feed-forward layers.")
    ] = False,
    top: Annotated[
        int, typer.Option("--top", min=1, help="How many of the strongest to list.")
    ] = 10,
) -> None:
    """The effect of every edit of a kind, as a heat map with numbers.

    gptscope sweep "Lily saw a cat. The" --answer " cat" --against " dog"

    gptscope sweep --clean "Lily saw a cat. The" --corrupt "Lily saw a dog. The" --what resid

    gptscope sweep "Lily saw a cat. The" --from 'layers.*.heads.*' --to layers.3.heads.1.v

    Each number is from a pass of its own in which one value is taken away; or,
    with --clean and --corrupt, in which it is that of the other run (activation
    patching). --from and --to change what one part tells another (path patching).
    """
    check_options(
        {
            "--what": what,
            "--with": replacement,
            "--direction": direction,
            "--clean": clean or corrupt,
            "--from": sender,
            "--to": receiver,
            "--freeze-mlp": freeze_mlp or None,
        }
    )
    what, replacement = what or What("heads"), replacement or With("mean")
    asked = asked_of(source, (clean, corrupt), (answer, against), at, metric)
    way = directions(direction or Direction.denoise)
    if sender is None or receiver is None:
        maps = values(asked, what, replacement, direction or Direction.denoise)
        said = values_said(asked, what)
    else:
        ends = ends_of(asked, sender, receiver)
        if asked.corrupt is None:
            maps = [told_instead(asked, ends, replacement, freeze_mlp=freeze_mlp)]
        else:
            maps = told_by_the_other(
                asked, asked.corrupt, ends, direction or Direction.denoise, freeze_mlp=freeze_mlp
            )
        gives = words.given_instead(asked, replacement, way)
        said = words.of_paths(asked, gives, freeze_mlp=freeze_mlp, to_logits=receiver == "logits")
    if asked.corrupt is not None:
        said += words.of_patches(asked, way)
    elif sender is None:
        said += words.of_removal(asked, replacement)
    else:
        said += words.of_one_token(asked, replacement)
    said += [*words.answer_note(asked), *words.edited(asked)]
    shown = [part for one in maps for part in one.parts(top)]
    told = words.question(asked, data=for_programs(target))
    parts = (*told, *shown, *words.notes(said))
    show(View("sweep", parts, **asked.run.about), target)


def values(asked: Asked, what: What, replacement: With, direction: Direction) -> list[Map]:
    """The pictures of the values of a kind."""
    if asked.corrupt is None:
        return [taken_away(asked, what, replacement)]
    return patched(asked, asked.corrupt, what, direction)


def values_said(asked: Asked, what: What) -> list[str]:
    """What must be said of the rows and columns."""
    by = KINDS[what].by
    by_token = by == "token" or (asked.corrupt is not None and by == "layer")
    return words.of_rows(what) + (words.of_tokens(asked) if by_token else [])


def check_options(given: Mapping[str, object]) -> None:
    """Refuse options of which one would be ignored.

    Raises:
        UsageError: two do not go together, or one needs another.
    """
    has = {name for name, value in given.items() if value is not None}
    if ("--from" in has) != ("--to" in has):
        raise UsageError("--from and --to go together: a path has two ends")
    if "--freeze-mlp" in has and "--from" not in has:
        raise UsageError("--freeze-mlp needs --from and --to: it closes paths")
    if "--what" in has and "--from" in has:
        raise UsageError("--what and --from do not go together", "--from names what is changed")
    if "--with" in has and "--clean" in has:
        raise UsageError(
            "--with and --clean do not go together", "the other run's value is put there"
        )
    if "--clean" not in has and "--direction" in has:
        raise UsageError("--direction needs --clean and --corrupt")
    kind = KINDS.get(str(given["--what"]))
    if "--clean" not in has and kind is not None and kind.patched_only:
        raise UsageError(
            f"--what {given['--what']} needs --clean and --corrupt",
            "--what heads takes away all that a head gives" if kind.by == "head" else None,
        )
