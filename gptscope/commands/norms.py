"""Every list before and after each normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands.options import Source, Target, TokenAt, with_options
from gptscope.commands.output import show
from gptscope.commands.session import Run, start
from gptscope.errors import check_index
from gptscope.view import Column, Note, Table, View

if TYPE_CHECKING:
    from gptscope.engine.trace import Trace

COLUMNS = (
    Column("norm"),
    Column("position", "id"),
    Column("token", "token"),
    Column("mean in", "signed"),
    Column("std in", "length"),
    Column("mean out", "signed"),
    Column("std out", "length"),
)


@with_options
def command(
    source: Source,
    target: Target,
    layer: Annotated[
        int | None, typer.Option("--layer", "-l", help="One block only, from 0.")
    ] = None,
    token: TokenAt = None,
) -> None:
    """Mean and standard deviation of every list before and after each norm.

    gptscope norms "Lily wanted to play with her"

    gptscope norms "Lily wanted to play with her" --layer 1 --token -1
    """
    run = start(source)
    if layer is not None:
        layer = check_index("layer", layer, run.model.spec.n_layers)
    at = None if token is None else check_index("token", token, len(run.ids))
    trace = run.trace("layers.*.ln*", "ln_final.*")
    show(view(trace, run, layer, at), target)


def view(trace: Trace, run: Run, layer: int | None, token: int | None) -> View:
    """A row for each norm and token."""
    import numpy as np

    positions = range(len(run.ids)) if token is None else [token]
    rows = []
    for name in names(trace, layer):
        mean, variance, out = (trace[f"{name}.{key}"] for key in ("mean", "variance", "out"))
        numbers = np.stack([mean, np.sqrt(variance), out.mean(-1), out.std(-1)], axis=-1)
        rows += [(name, i, run.labels[i], *numbers[i]) for i in positions]
    words = (
        f"std is the population standard deviation over the {run.model.spec.d_model} numbers of a "
        "token; what comes out has mean 0 and std 1 before gain and shift, which are included here"
    )
    return View("norms", (Table("", COLUMNS, rows), Note(words)), **run.about)


def names(trace: Trace, layer: int | None) -> list[str]:
    """The norms in the order of the pass."""
    found = dict.fromkeys(name.rpartition(".")[0] for name in trace.names())
    return [name for name in found if layer is None or name.startswith(f"layers.{layer}.")]
