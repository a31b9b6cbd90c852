"""What each layer would have said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands.answers import answer_id
from gptscope.commands.lens_look import COLUMNS, Look, Show
from gptscope.commands.lens_parts import asked, grid, tables
from gptscope.commands.lens_words import left_out, many, notes
from gptscope.commands.options import Answer, Pass, Target, with_options
from gptscope.commands.output import for_programs, show
from gptscope.commands.session import Run, start
from gptscope.errors import UsageError, check_index
from gptscope.view import View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Model
    from gptscope.view import Part

TOP = 3

APART: Mapping[tuple[str, str], str] = {
    ("--at", "--show"): "--at shows all numbers of one position",
    ("--at", "--last"): "--at is one position",
}


@with_options
def command(
    source: Pass,
    target: Target,
    what: Annotated[
        Show | None,
        typer.Option(
            "--show",
            help="top: the likeliest token; prob, rank: of the answer; entropy; kl: from the end.",
            show_default="top",
        ),
    ] = None,
    answer: Answer = None,
    at: Annotated[
        int | None,
        typer.Option(
            "--at", "--token", "-t", help="One token, as a table: from 0, -1 is the last."
        ),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            min=1,
            help="How many likeliest tokens each row names with --at.",
            show_default=str(TOP),
        ),
    ] = None,
    mid: Annotated[
        bool, typer.Option("--mid", help="Rows between attention and feed forward as well.")
    ] = False,
    last: Annotated[
        int | None, typer.Option("--last", min=1, help="Only the last tokens, so many.")
    ] = None,
) -> None:
    """What each layer would have said: the answer on its way through the layers.

    gptscope lens "Lily wanted to play with her"

    gptscope lens "Lily wanted to play with her" --at -1 --answer " mom" --mid

    gptscope lens "Lily wanted to play with her" --show rank --answer " mom"

    Each row reads the residual stream as if no layer came after it (the logit
    lens). Without --answer, the token is rated that really came next, and after
    the last one the model's own likeliest.
    """
    check_together(
        {
            "--at": at is not None,
            "--show": what is not None,
            "--last": last is not None,
            "--top": top is not None,
        }
    )
    run = start(source)
    rated = None if answer is None else answer_id(run.model, answer)
    positions, whole = positions_of(run, at, last, target)
    trace = run.trace(*values(run.model, mid=mid))
    look = looked(run, trace, positions, (rated, top or TOP))
    for_people = not for_programs(target)
    parts: list[Part] = [grid(look, what or Show.top)] if at is None else []
    parts += tables(look, for_people=for_people) if at is not None else []
    more = [] if whole else [left_out(look)]
    if for_people:
        more += many(look) if whole and last is None else []
    else:
        parts.append(asked(look))
    said = notes(look, what if at is None else Show.kl, more)
    show(View("lens", (*parts, *said), **run.about), target)


def check_together(given: Mapping[str, bool]) -> None:
    """Refuse options of which one would be ignored.

    Raises:
        UsageError: two do not go together, or one needs another; the hint says why.
    """
    if given["--top"] and not given["--at"]:
        raise UsageError("--top needs --at", hint="a grid has one token in each cell")
    for (one, other), why in APART.items():
        if given[one] and given[other]:
            raise UsageError(f"{one} and {other} do not go together", hint=why)


def positions_of(
    run: Run, at: int | None, last: int | None, target: Target
) -> tuple[Sequence[int], bool]:
    """Which tokens are looked at, and whether some are left out that nobody asked to leave out.

    Raises:
        UsageError: there is no token at that position.
    """
    from gptscope.commands.attention import on_screen

    n = len(run.ids)
    if at is not None:
        return [check_index("token", at, n)], True
    most = last or (COLUMNS if on_screen(target) else n)
    return range(max(0, n - most), n), most >= n or last is not None


def values(model: Model, *, mid: bool) -> list[str]:
    """What a pass has to keep.

    Raises:
        UsageError: this model's stream has no state between attention and feed forward.
    """
    if not mid:
        return ["embeddings", "output", "logits"]
    from gptscope.engine.lacking import why_lacking

    why = why_lacking("resid_after_attn", model)
    if why is not None:
        raise UsageError(f"--mid: {why}")
    return ["embeddings", "resid_after_attn", "output", "logits"]


def looked(run: Run, trace: Trace, positions: Sequence[int], asked: tuple[int | None, int]) -> Look:
    """What every state says at these positions, with a bar where it takes long."""
    from gptscope.analysis.lens import came_next, lens
    from gptscope.commands.progress import progress

    answer, top = asked
    came = came_next(trace)
    answers = [came[i] if answer is None else answer for i in positions]
    with progress(len(positions), "positions") as tick:
        made = lens(run.model, trace, answers, positions, top, tick)
    return Look(run, made, answer)
