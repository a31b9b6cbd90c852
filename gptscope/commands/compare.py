"""A pass before and after edits, side by side."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands.answers import likeliest, wanted
from gptscope.commands.compare_layers import Asked
from gptscope.commands.compare_parts import parts
from gptscope.commands.options import Against, Answer, At, Pass, Target, with_options
from gptscope.commands.output import for_programs, show
from gptscope.commands.session import Run, start
from gptscope.errors import UsageError, check_index
from gptscope.view import View

if TYPE_CHECKING:
    from gptscope.engine.trace import Trace


@with_options
def command(
    source: Pass,
    target: Target,
    answer: Answer = None,
    against: Against = None,
    at: At = -1,
    top: Annotated[
        int, typer.Option("--top", min=1, help="How many likeliest next tokens of either pass.")
    ] = 5,
) -> None:
    """A pass before and after edits, side by side.

    gptscope compare "Lily wanted to play with her" --edit layers.1.heads.0.out=zero

    gptscope compare "Lily wanted to play with her" --edit 'layers.2.mlp_out[-1]=0'

    gptscope compare "Lily wanted to play with" --edit 'layers.0.output[0]=from:Tom' -a " his"

    What the next token would be, and how far the residual stream is from where
    it was: after every part of every layer, at every token.
    """
    if not source.edit:
        raise UsageError(
            "compare needs an --edit: what is to be changed",
            hint="--edit layers.1.heads.0.out=zero",
        )
    run = start(source)
    position = check_index("token", at, len(run.ids))
    traces = both(run)
    answers = answers_of(run, traces[0], position, (answer, against))
    asked = Asked(position, answers, top, every=for_programs(target))
    show(View("compare", parts(run, traces, asked), **run.about), target)


def both(run: Run) -> tuple[Trace, Trace]:
    """The pass without the edits, and with them."""
    from gptscope.analysis.compare import watched

    keep = () if run.edits is None else watched(run.edits)
    return replace(run, edits=None).trace(*keep), run.trace(*keep)


def answers_of(
    run: Run, before: Trace, position: int, texts: tuple[str | None, str | None]
) -> tuple[int, ...]:
    """The ids that are asked about: the answer, without which the likeliest, and the other.

    Raises:
        GptscopeError: the logits before the edits are no numbers.
        UsageError: one is no token of this model, or both are the same.
    """
    if texts == (None, None):
        return ()
    best = likeliest(before.logits[position], f"after {run.place(position)}")
    return tuple(wanted(run.model, [best], *texts))
