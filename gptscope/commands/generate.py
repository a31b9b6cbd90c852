"""Go on with a text, token by token."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptscope.commands.options import Pass, Target, with_options
from gptscope.commands.output import chosen_format, emit, show, tell
from gptscope.commands.sampling import Temperature, TopK, TopP
from gptscope.commands.session import Run, start, timed, token_text
from gptscope.errors import ModelError
from gptscope.glyphs import visible
from gptscope.model.files import counted
from gptscope.render.fed import fed
from gptscope.view import Column, Facts, Table, View

if TYPE_CHECKING:
    from gptscope.engine.generate import Draw
    from gptscope.engine.sampling import Sampling

WHY = {
    "asked": "as many tokens as were asked for",
    "end token": "the model drew its end token",
    "context full": "the model's context is full",
}


@with_options
def command(
    source: Pass,
    target: Target,
    max_new_tokens: Annotated[int, typer.Option("--max-new-tokens", "-n", help="How many.")] = 100,
    temperature: Temperature = 0.8,
    top_k: TopK = 40,
    top_p: TopP = None,
    greedy: Annotated[bool, typer.Option("--greedy", help="Always take the likeliest.")] = False,
    seed: Annotated[int, typer.Option(help="The same seed draws the same text.")] = 0,
    steps: Annotated[bool, typer.Option("--steps", help="A table of every draw.")] = False,
) -> None:
    """Go on with a text, token by token; without a text, tell a story.

    gptscope generate

    gptscope generate "Lily wanted to play with her" --seed 3

    gptscope generate "Lily wanted to play with her" -n 5 --steps
    """
    from gptscope.engine.generate import draws, prompt_ids
    from gptscope.engine.sampling import Sampling

    how = Sampling(0.0 if greedy else temperature, top_k, top_p)
    run = start(source, may_be_empty=True)
    run = replace(
        run, ids=prompt_ids(run.model, run.ids), prepended=run.prepended or int(not run.ids)
    )
    drawn = draws(run.model, run.ids, max_new_tokens, how, seed, run.edits)
    if steps or target.output or chosen_format(target) != "table":
        with timed(run.verbose) as say:
            made = list(drawn)
            say(f"drew {counted(len(made), 'token')}")
        show(View("generate", parts(made, run, (how, seed)), **run.about), target)
    else:
        with timed(run.verbose) as say:
            say(f"drew {counted(stream(drawn, run), 'token')}")


def stream(drawn: Iterator[Draw], run: Run) -> int:
    """The text as it is drawn on standard output; what was fed and why it ended beside it.

    Gives back how many tokens were drawn.
    """
    from gptscope.tokens import Decoder

    tokenizer = run.model.tokenizer
    if tokenizer is None:
        raise ModelError("this model has no tokenizer to write with", "--format json gives the ids")
    own = run.ids[run.prepended :]
    decoder, stopped, n = Decoder(tokenizer), None, 0
    tell(fed(run.about["model"], run.about["input"]))
    if run.edits:
        tell(visible(f"changed: {', '.join(run.edits.texts)}"))
    emit(visible("".join(map(decoder.feed, own)), keep="\n"))
    try:
        for n, draw in enumerate(drawn, 1):  # noqa: B007 - counted for whoever called
            stopped = draw.stopped
            if stopped != "end token":
                emit(visible(decoder.feed(draw.id), keep="\n"))
    finally:
        emit(visible(decoder.finish(), keep="\n") + "\n")
    tell(f"stopped: {WHY[stopped or 'asked']}")
    return n


def parts(made: list[Draw], run: Run, settings: tuple[Sampling, int]) -> tuple[Any, ...]:
    """The settings and the new text, and a row for every draw."""
    how, seed = settings
    facts = (
        (Column("text"), new_text(run, [draw.id for draw in made])),
        (Column("new tokens", "count"), len(made)),
        (Column("stopped"), WHY[made[-1].stopped or "asked"]),
        (Column("temperature", "number"), how.temperature),
        (Column("top-k", "count"), how.top_k),
        (Column("top-p", "number"), how.top_p),
        (Column("seed", "id"), seed),
    )
    return Facts("", facts), draw_table(made, run)


def draw_table(made: list[Draw], run: Run) -> Table:
    """What could have come at every step, likeliest first, and what came."""
    columns = (
        Column("step", "id"),
        Column("id", "id"),
        Column("token", "token"),
        Column("probability", "probability"),
        Column("chosen"),
    )
    rows = [
        (step, i, token_text(run.model, i), p, "chosen" if i == draw.id else None)
        for step, draw in enumerate(made)
        for i, p in candidates(draw)
    ]
    return Table("", columns, rows)


def candidates(draw: Draw) -> list[tuple[int, float]]:
    """The likeliest tokens of one draw, and the one that was chosen if it is not among them."""
    seen = any(i == draw.id for i, _ in draw.candidates)
    return [*draw.candidates, *([] if seen else [(draw.id, draw.probability)])]


def new_text(run: Run, ids: list[int]) -> str | None:
    """What the new tokens say, an end token left out."""
    tokenizer = run.model.tokenizer
    if tokenizer is None:
        return None
    new = [i for i in ids if i not in run.model.end_ids]
    return tokenizer.decode(new, goes_on=len(run.ids) > run.prepended)
