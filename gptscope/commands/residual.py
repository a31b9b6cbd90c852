"""The residual stream: how long each token's list is, and what every part added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.commands.options import Source, Target, with_options
from gptscope.commands.output import show
from gptscope.commands.session import Run, start
from gptscope.glyphs import token_glyphs
from gptscope.view import Grid, Note, View

if TYPE_CHECKING:
    from gptscope.engine.trace import Trace


@with_options
def command(source: Source, target: Target) -> None:
    """How long each token's list is after every step, and what was added.

    gptscope residual "Lily wanted to play with her"

    gptscope residual --model toy "the cat eats the fish"

    A length is the square root of the sum of squares.
    """
    run = start(source)
    trace = run.trace("embeddings", "attn_out", "resid_after_attn", "mlp_out", "output")
    show(view(trace, run), target)


def view(trace: Trace, run: Run) -> View:
    """Two grids, steps x tokens: the list after each step, and what the step added."""
    from gptscope.analysis.lengths import lengths_of

    layers = range(run.model.spec.n_layers)
    stream = ["embeddings"]
    stream += [f"layers.{i}.{k}" for i in layers for k in ("resid_after_attn", "output")]
    parts = [f"layers.{i}.{k}" for i in layers for k in ("attn_out", "mlp_out")]
    added = lengths_of(trace, parts)
    return View(
        "residual",
        (
            grid(
                "Length of the residual stream after each step",
                stream,
                run,
                lengths_of(trace, stream),
            ),
            grid("Length of what each part added", parts, run, added),
            Note(longest(parts, run, added)),
        ),
        **run.about,
    )


def grid(title: str, names: list[str], run: Run, values: Any) -> Grid:  # noqa: ANN401
    """One length for each of these values and tokens."""
    return Grid(title, tuple(names), run.labels, values, "length", row_kind="text")


def longest(names: list[str], run: Run, values: Any) -> str:  # noqa: ANN401
    """Which part adds most, and where; or where the numbers went wrong."""
    row, column = divmod(int(values.argmax()), len(run.ids))  # NaN counts as the largest
    where = f"{names[row]} at token {column} {token_glyphs(run.labels[column])}"
    wrong = values[row, column] != values[row, column]
    return f"{where} is not a number" if wrong else f"The longest single addition is {where}"
