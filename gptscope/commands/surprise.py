"""How surprised the model is by every token of a text."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptscope.commands import completion
from gptscope.commands.options import Pass, Target, with_options
from gptscope.commands.output import for_programs, show
from gptscope.commands.places import places
from gptscope.commands.session import Run, start, timed
from gptscope.errors import UsageError
from gptscope.model.files import counted
from gptscope.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gptscope.analysis.surprise import Surprise, Window
    from gptscope.model.weights import Model

LONGEST = 20_000_000  # bytes of a text: its numbers take ten times as much memory
FEW = 24  # tokens that are all listed where nobody says how many
TOP = 10


@dataclass(frozen=True, eq=False)
class Read:
    """A text, how it went through the model, and what came of it."""

    run: Run
    made: Surprise
    plan: list[Window]
    size: int  # of a window
    overlap: int


@dataclass(frozen=True)
class Shown:
    """What is to be shown of it."""

    top: int | None  # the worst; None is every token, in order
    part: range | None  # of the positions, where some are asked for


@with_options
def command(
    source: Pass,
    target: Target,
    against: Annotated[
        str | None,
        typer.Option(
            "--against",
            help="A second model on the same text: where the two differ most.",
            show_default=False,
            autocompletion=completion.models,
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top", min=1, help="How many tokens to list: the worst.", show_default=f"{TOP}"
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="List every token, in order.")] = False,
    part: Annotated[
        str | None,
        typer.Option("--range", help="Show these tokens alone: 100:200.", show_default=False),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window",
            min=1,
            help="Tokens that are read at once; as many as the model can, 4096 at most.",
            show_default=False,
        ),
    ] = None,
    overlap: Annotated[
        int | None,
        typer.Option(
            "--overlap",
            min=0,
            help="Tokens that a window shares with the one before; half a window if not given.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """How surprised the model is by every token of a text.

    gptscope surprise "Lily wanted to play with her dog"

    gptscope surprise "Lily wanted to play with her dog" --against llama-tiny

    A long file goes through in windows: gptscope surprise --file story.txt --top 20

    The surprise of a token is -log2 of its probability, in bits: 1 for one of
    two equally likely tokens, 10 for one of 1,024.
    """
    from gptscope.commands.surprise_view import parts

    run = start(source, longest=LONGEST)
    shown = asked(run, top, part, every=every)
    first, for_people = read(run, window, overlap), not for_programs(target)
    if against is None:
        found = parts(first, shown, for_people=for_people)
        show(View("surprise", found, **run.about), target)
        return
    from gptscope.commands.surprise_pair import pair_parts, second_run

    second = read(second_run(run, source, against), window, overlap)
    found = pair_parts(first, second, shown, for_people=for_people)
    show(View("surprise", found, **run.about), target)


def asked(run: Run, top: int | None, part: str | None, *, every: bool) -> Shown:
    """What the options ask for.

    Raises:
        UsageError: both the worst and all, or positions that are not there.
    """
    if every and top is not None:
        raise UsageError("give one of --top and --all, not both")
    found = None
    if part is not None:
        some = places("--range", part, len(run.ids), "token")
        found = range(some[0], some[-1] + 1)
        if list(found) != some:
            raise UsageError(f"--range takes tokens in a row, as 100:200, not {part!r}")
    n = len(run.ids) if found is None else len(found)
    return Shown(None if every or (top is None and n <= FEW) else top or TOP, found)


def read(run: Run, window: int | None, overlap: int | None) -> Read:
    """The text through the model, with a bar.

    Raises:
        UsageError: the window or the overlap does not fit the model or the text.
    """
    from gptscope.analysis.surprise import LONGEST_WINDOW, surprise, usual_overlap, windows
    from gptscope.engine.step import untouched

    spec = run.model.spec
    if window is not None and window > spec.n_ctx:
        what = f"--window {window:,}: {run.model.name} reads {counted(spec.n_ctx, 'token')} at most"
        raise UsageError(what)
    size = window or min(spec.n_ctx, LONGEST_WINDOW)
    overlap = usual_overlap(size, run.prepended) if overlap is None else overlap
    plan = windows(len(run.ids), run.prepended, size, overlap)

    def hooks(n_tokens: int) -> Any:  # noqa: ANN401
        return run.edits.hook(n_tokens, untouched) if run.edits else untouched

    with timed(run.verbose) as say, bar(run, len(plan)) as (model, tick):
        made = surprise(model, run.ids, plan, run.prepended, hooks, tick)
        say(f"rated {counted(len(made), 'token')} in {counted(len(plan), 'window')}")
    return Read(run, made, plan, size, overlap)


@contextmanager
def bar(run: Run, n_windows: int) -> Iterator[tuple[Model, Callable[[int], object]]]:
    """The model for many passes, and a bar: of blocks where there is one pass, else of tokens."""
    from gptscope.commands.progress import counting, progress
    from gptscope.model.blocks import kept

    if n_windows > 1:
        with progress(len(run.ids), "tokens") as tick:
            yield replace(run.model, blocks=kept(run.model.blocks)), tick
        return
    with counting(run.model) as model:
        yield model, lambda _n: None
