"""Which token reads from which."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptscope.commands.options import Head, Layer, Source, Target, TokenAt, with_options
from gptscope.commands.output import show
from gptscope.commands.session import Run, start
from gptscope.errors import check_index
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Grid, Kind, Note, Table, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.engine.trace import Trace


class Stage(StrEnum):
    """What stands in the cells: three steps from the product of query and key to the weight."""

    scores = "scores"
    scaled = "scaled"
    weights = "weights"


KEYS = {Stage.scores: "scores", Stage.scaled: "scaled_masked", Stage.weights: "weights"}
KINDS: dict[Stage, Kind] = {
    Stage.scores: "signed",
    Stage.scaled: "signed",
    Stage.weights: "probability",
}


@with_options
def command(
    source: Source,
    target: Target,
    layer: Layer = 0,
    head: Head = None,
    token: TokenAt = None,
    stage: Annotated[
        Stage, typer.Option(help="What stands in a grid: scores, scaled or weights.")
    ] = Stage.weights,
) -> None:
    """Which token reads from which, head by head, as a grid of numbers.

    gptscope attention "Lily wanted to play with her" --layer 0 --head 0

    gptscope attention "Lily wanted to play with her" --layer 2 --head 1 --stage scaled

    gptscope attention "Lily wanted to play with her" --layer 2 --token 5
    """
    run = start(source)
    layer = check_index("layer", layer, run.model.spec.n_layers)
    n_heads = run.model.spec.n_heads
    heads = range(n_heads) if head is None else [check_index("head", head, n_heads)]
    trace = run.trace(*(f"layers.{layer}.heads.*.{key}" for key in KEYS.values()))
    if token is None:
        parts = [p for h in heads for p in grid(trace, run, (layer, h), stage)]
    else:
        at = check_index("token", token, len(run.ids))
        parts = [row(trace, run, (layer, h), at) for h in heads]
    show(View("attention", tuple(parts), **run.about), target)


def grid(trace: Trace, run: Run, where: tuple[int, int], stage: Stage) -> list[Any]:
    """One head as a grid [T, T], and where the last token looks, in words."""
    import numpy as np

    layer, head = where
    scope = trace.layers[layer].heads[head]
    values, hidden = getattr(scope, KEYS[stage]), np.isneginf(scope.scaled_masked)
    title = f"Layer {layer}, head {head}: {stage.value}, a row reads from the columns"
    words = looks(run.labels, scope.weights[-1])
    cells = Grid(title, run.labels, run.labels, values, KINDS[stage], hidden=hidden)
    return [cells, Note(words)]


def looks(labels: Sequence[str], weights: Any) -> str:  # noqa: ANN401
    """A sentence on where the last token looks."""
    import numpy as np

    if np.isnan(weights).any():
        return f"What the last token {token_glyphs(labels[-1])} reads is not a number"
    most = np.argsort(-weights, kind="stable")[:3]
    seen = ", ".join(f"{token_glyphs(labels[i])} {weights[i]:.2f}" for i in most)
    return f"The last token {token_glyphs(labels[-1])} looks most at {seen}"


def row(trace: Trace, run: Run, where: tuple[int, int], at: int) -> Table:
    """What one token reads, in every stage."""
    layer, head = where
    scope = trace.layers[layer].heads[head]
    columns = (
        Column("position", "id"),
        Column("token", "token"),
        Column("score", "signed"),
        Column("scaled", "signed"),
        Column("weight", "probability"),
    )
    stages = zip(scope.scores[at], scope.scaled_masked[at], scope.weights[at], strict=True)
    rows = [
        (i, run.labels[i], score, scaled, weight)
        for i, (score, scaled, weight) in enumerate(stages)
        if scaled > -float("inf")
    ]
    title = f"Layer {layer}, head {head}: what token {at} {token_glyphs(run.labels[at])} reads"
    return Table(title, columns, rows)
