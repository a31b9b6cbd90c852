"""The residual stream: how long each token's list is, and what every part added."""

from __future__ import annotations

from typing import TYPE_CHECKING

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

    A length is the square root of the sum of squares.
    """
    run = start(source)
    trace = run.trace("embeddings", "attn_out", "resid_after_attn", "mlp_out", "output")
    show(view(trace, run), target)


def view(trace: Trace, run: Run) -> View:
    """Two grids, steps x tokens: the list after each step, and what the step added."""
    layers = range(run.model.spec.n_layers)
    stream = ["embeddings"]
    stream += [f"layers.{i}.{k}" for i in layers for k in ("resid_after_attn", "output")]
    added = [f"layers.{i}.{k}" for i in layers for k in ("attn_out", "mlp_out")]
    largest = biggest(trace, added)
    words = f"The longest single addition is {largest[0]} at token {largest[1]}"
    return View(
        "residual",
        (
            lengths("Length of the residual stream after each step", stream, trace, run),
            lengths("Length of what each part added", added, trace, run),
            Note(f"{words} {token_glyphs(run.labels[largest[1]])}"),
        ),
        **run.about,
    )


def lengths(title: str, names: list[str], trace: Trace, run: Run) -> Grid:
    """The Euclidean length of each token's list, for each of these values."""
    import numpy as np

    values = np.stack([np.linalg.norm(trace[name], axis=-1) for name in names])
    return Grid(title, tuple(names), run.labels, values, "length", row_kind="text")


def biggest(trace: Trace, names: list[str]) -> tuple[str, int]:
    """The value and the token where a list is longest."""
    import numpy as np

    values = np.stack([np.linalg.norm(trace[name], axis=-1) for name in names])
    row, column = np.unravel_index(values.argmax(), values.shape)
    return names[int(row)], int(column)
