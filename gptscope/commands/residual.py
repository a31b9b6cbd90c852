"""The residual stream: how long each token's list is, and what every part added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.commands.options import Pass, Target, with_options
from gptscope.commands.output import show
from gptscope.commands.session import Run, start
from gptscope.glyphs import token_glyphs
from gptscope.view import Grid, Note, View

if TYPE_CHECKING:
    from gptscope.engine.trace import Trace

USUAL = ("pre_norm", "post_norm")  # keys of engine.forward.WIRINGS


@with_options
def command(source: Pass, target: Target) -> None:
    """How long each token's list is after every step, and what was added.

    gptscope residual "Lily wanted to play with her"

    gptscope residual --model toy "the cat eats the fish"

    A length is the square root of the sum of squares.
    """
    run = start(source)
    norms = ("ln1.out", "ln2.out", "ln1_post.out", "ln2_post.out")
    stream = ("embeddings", "input", "attn_out", "resid_after_attn", "mlp_out", "output")
    trace = run.trace(*stream, *(f"layers.*.{norm}" for norm in norms))
    show(view(trace, run), target)


def view(trace: Trace, run: Run) -> View:
    """Two grids, steps x tokens: the list after each step, and what the step added."""
    from gptscope.analysis.lengths import additions, lengths_of, stream

    layers = range(run.model.spec.n_layers)
    steps = ["embeddings", *(name for i in layers for name in stream(trace, i))]
    parts = [name for i in layers for name in additions(trace, i)]
    added = lengths_of(trace, parts)
    after = "Length of the residual stream after each step"
    grids = (
        grid(after, steps, run, lengths_of(trace, steps)),
        grid("Length of what each part added", parts, run, added),
    )
    notes = (Note(longest(parts, run, added)), *how(trace, parts))
    return View("residual", (*grids, *notes), **run.about)


def how(trace: Trace, parts: list[str]) -> tuple[Note, ...]:
    """How the steps come about, where that is not as in GPT-2 or in the paper of 2017."""
    from gptscope.analysis.lengths import remainder, sums

    plain = all(name.endswith(("attn_out", "mlp_out")) for name in parts)
    if trace.spec.wiring in USUAL and plain:
        return ()
    made = "; ".join(f"{name} = {' + '.join(parts)}" for name, parts in sums(trace, 0).items())
    words = made.replace("layers.0.", "")
    left = f"Largest remainder of these sums in all layers: {remainder(trace):.1e}"
    return Note(f"In every block {words}"), Note(left)


def grid(title: str, names: list[str], run: Run, values: Any) -> Grid:  # noqa: ANN401
    """One length for each of these values and tokens."""
    return Grid(title, tuple(names), run.labels, values, "length", row_kind="text")


def longest(names: list[str], run: Run, values: Any) -> str:  # noqa: ANN401
    """Which part adds most, and where; or where the numbers went wrong."""
    row, column = divmod(int(values.argmax()), len(run.ids))  # NaN counts as the largest
    where = f"{names[row]} at token {column} {token_glyphs(run.labels[column])}"
    wrong = values[row, column] != values[row, column]
    return f"{where} is not a number" if wrong else f"The longest single addition is {where}"
