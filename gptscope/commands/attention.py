"""Which token reads from which."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands import completion
from gptscope.commands.attention_look import (
    KEYS,
    NUMBERS,
    SMALL,
    Look,
    Scale,
    Stage,
    window_of,
)
from gptscope.commands.attention_notes import notes
from gptscope.commands.attention_parts import added, numbers, row, sheet, top_in_rows, top_in_words
from gptscope.commands.options import Head, Pass, Target, TokenAt, with_options
from gptscope.commands.output import chosen_format, for_programs, show
from gptscope.commands.places import places
from gptscope.commands.session import start
from gptscope.errors import UsageError, check_index
from gptscope.view import Note, View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gptscope.commands.attention_look import Where
    from gptscope.commands.session import Run
    from gptscope.view import Part


SEEN = ("weights", "scaled_masked")  # words need the weights, and the mask says what is hidden
HOW_MORE = {  # by whether every layer is shown
    False: "--numbers shows them with their numbers, --head H one of them; --all every layer",
    True: "--layer L --head H shows one of them with its numbers",
}

APART: Mapping[tuple[str, str], str] = {
    ("--all", "--layer"): "--all shows every layer",
    ("--all", "--head"): "--all shows every head",
    ("--sum", "--token"): "--token is the sum of one row",
    ("--sum", "--top"): "--sum shows one list, not what each token reads",
    ("--sum", "--rows"): "--sum names its rows; --cols chooses what they read",
    ("--token", "--rows"): "--token is one row; --cols chooses what it reads",
    ("--numbers", "--token"): "--numbers is for grids",
    ("--numbers", "--sum"): "--numbers is for grids",
    ("--numbers", "--top"): "--numbers is for grids",
    ("--scale", "--token"): "--scale is for grids",
    ("--scale", "--sum"): "--scale is for grids",
    ("--scale", "--top"): "--scale is for grids",
    ("--scale", "--stage"): "--scale is for weights",
    ("--no-first", "--stage"): "--no-first is for weights, whose rows sum to 1",
    ("--sum", "--stage"): "--sum adds weights",
    ("--top", "--stage"): "--top is for weights",
    ("--last", "--rows"): "--last is short for --rows and --cols",
    ("--last", "--cols"): "--last is short for --rows and --cols",
}


@with_options
def command(
    source: Pass,
    target: Target,
    layer: Annotated[
        int | None,
        typer.Option(
            "--layer",
            "-l",
            help="Which block, from 0; -1 is the last.",
            show_default="0",
            autocompletion=completion.layers,
        ),
    ] = None,
    head: Head = None,
    token: TokenAt = None,
    stage: Annotated[
        Stage, typer.Option(help="What stands in a grid: scores, scaled or weights.")
    ] = Stage.weights,
    every: Annotated[bool, typer.Option("--all", help="Every layer and head, small.")] = False,
    with_numbers: Annotated[
        bool, typer.Option("--numbers", help="Every head of the layer with its numbers.")
    ] = False,
    scale: Annotated[
        Scale, typer.Option(help="Weights as they are, in powers of ten, or ranked in each row.")
    ] = Scale.linear,
    no_first: Annotated[
        bool, typer.Option("--no-first", help="Hide the first token; the others sum to 1 again.")
    ] = False,
    add: Annotated[
        str | None, typer.Option("--sum", help="Add what these tokens read: 3,5 or 0:4.")
    ] = None,
    top: Annotated[
        int | None, typer.Option("--top", min=1, help="How many each token reads most, in words.")
    ] = None,
    rows: Annotated[str | None, typer.Option(help="Only these rows: 0:10, or 3,4,9.")] = None,
    cols: Annotated[
        str | None,
        typer.Option(help="Only these columns: 5:20; all that the rows see if not given."),
    ] = None,
    last: Annotated[
        int | None, typer.Option(min=1, help="Only the last rows and columns, so many.")
    ] = None,
) -> None:
    """Which token reads from which, head by head, as a grid of numbers.

    gptscope attention "Lily wanted to play with her" --layer 0 --head 0

    gptscope attention "Lily wanted to play with her" --all --no-first

    gptscope attention "Lily wanted to play with her" --layer 2 --head 1 --stage scaled

    gptscope attention "Lily wanted to play with her" --layer 2 --token 5

    gptscope attention "Lily wanted to play with her" --layer 2 --head 1 --top 3
    """
    given = {
        "--all": every,
        "--layer": layer is not None,
        "--head": head is not None,
        "--token": token is not None,
        "--stage": stage != Stage.weights,
        "--numbers": with_numbers,
        "--scale": scale != Scale.linear,
        "--no-first": no_first,
        "--sum": add is not None,
        "--top": top is not None,
        "--rows": rows is not None,
        "--cols": cols is not None,
        "--last": last is not None,
    }
    check_together(given)
    for_people = not for_programs(target)
    run = start(source)
    heads = heads_of(run, layer, head, every=every)
    if no_first and len(run.ids) == 1:
        raise UsageError("there is only one token: without it, nothing is left to read")
    one_list = token is not None or add is not None
    small = len(heads) > 1 and not with_numbers and top is None
    most = None if one_list or not on_screen(target) else SMALL if small else NUMBERS
    window = window_of(run, (rows, cols, last), most)
    keys = {*KEYS.values()} if token is not None else {*SEEN, KEYS[stage]}
    layers = {f"layers.{i}.heads.*.{key}" for i, _ in heads for key in keys}
    look = Look(run, run.trace(*layers), window, stage, scale, no_first)
    if top is not None or one_list:
        parts = tables(look, heads, (token, add, top), for_people=for_people)
    elif small:
        parts = [*sheet(look, heads), *notes(look, heads), Note(HOW_MORE[every])]
    else:
        parts = [*(p for where in heads for p in numbers(look, where)), *notes(look, heads)]
    show(View("attention", tuple(parts), **run.about), target)


def check_together(given: Mapping[str, bool]) -> None:
    """Refuse options of which one would be ignored.

    Raises:
        UsageError: two do not go together; the hint says why.
    """
    for (one, other), why in APART.items():
        if given[one] and given[other]:
            raise UsageError(f"{one} and {other} do not go together", hint=why)


def on_screen(target: Target) -> bool:
    """Whether the answer has an edge: a terminal or a picture, where a long text shows its end."""
    fmt = chosen_format(target)
    to_terminal = target.output is None and sys.stdout is not None and sys.stdout.isatty()
    return fmt == "svg" or (fmt == "table" and to_terminal)


def heads_of(run: Run, layer: int | None, head: int | None, *, every: bool) -> list[Where]:
    """Layer and head of each that is to be seen.

    Raises:
        UsageError: one is out of range.
    """
    n_layers, n_heads = run.model.spec.n_layers, run.model.spec.n_heads
    layers = range(n_layers) if every else [check_index("layer", layer or 0, n_layers)]
    heads = range(n_heads) if head is None else [check_index("head", head, n_heads)]
    return [(i, h) for i in layers for h in heads]


def tables(
    look: Look,
    heads: Sequence[Where],
    asked: tuple[int | None, str | None, int | None],
    *,
    for_people: bool,
) -> list[Part]:
    """What --token, --sum and --top ask for, head by head."""
    (token, add, top), n = asked, len(look.labels)
    if add is not None:
        chosen = places("--sum", add, n, "token")
        return [*(added(look, w, chosen) for w in heads), *notes(look, heads, chosen)]
    one = None if token is None else [check_index("token", token, n)]
    if top is None and one:
        return [*(row(look, w, one[0]) for w in heads), *notes(look, heads, one)]
    if not look.window.asked:
        look = replace(look, window=replace(look.window, columns=range(n)))
    listed = top_in_words if for_people else top_in_rows
    most = (listed(look, w, one or look.window.rows, top or 1) for w in heads)
    return [*most, *notes(look, heads, one)]
