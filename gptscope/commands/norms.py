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
    from gptscope.model.weights import Norm

SPREAD = {"layer_norm": "std", "rms_norm": "rms"}
WEIGHTS = (
    Column("norm"),
    Column("which"),
    Column("mean", "signed"),
    Column("std", "length"),
    Column("values", "vector"),
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

    gptscope norms --model toy "the cat eats the fish" --layer 1

    gptscope norms "Lily wanted to play with her" --layer 1 --token -1
    """
    run = start(source)
    if layer is not None:
        layer = check_index("layer", layer, run.model.spec.n_layers)
    at = None if token is None else check_index("token", token, len(run.ids))
    trace = run.trace("layers.*.ln*", "ln_final.*")
    show(view(trace, run, layer, at), target)


def view(trace: Trace, run: Run, layer: int | None, token: int | None) -> View:
    """A table for each norm with a row for each token, then gain and shift of each norm."""
    from gptscope.analysis.norms import statistics

    positions = range(len(run.ids)) if token is None else [token]
    found, tables = names(trace, layer), []
    for name in found:
        numbers = statistics(trace, name)
        rows = [(i, run.labels[i], *numbers[i]) for i in positions]
        tables.append(Table(name, columns(run), rows))
    return View("norms", (*tables, Note(words(run)), weights(run, found)), **run.about)


def columns(run: Run) -> tuple[Column, ...]:
    """Mean and spread before, between and after."""
    spread = SPREAD[run.model.spec.norm]
    numbers: list[Column] = []
    for stage in ("in", "normalized", "out"):
        numbers += [Column(f"mean {stage}", "signed"), Column(f"{spread} {stage}", "length")]
    return Column("position", "id"), Column("token", "token"), *numbers


def words(run: Run) -> str:
    """What the columns mean."""
    d = run.model.spec.d_model
    if run.model.spec.norm == "rms_norm":
        return (
            f"in: the {d} numbers of a token as they come; normalized: over their root mean square "
            "(rms), which is then 1 and the mean what it is; out: times the gain"
        )
    return (
        f"in: the {d} numbers of a token as they come; normalized: less their mean, over their "
        "standard deviation (std, of the population), so mean 0 and std 1; out: times the gain, "
        "plus the shift"
    )


def names(trace: Trace, layer: int | None) -> list[str]:
    """The norms in the order of the pass."""
    found = dict.fromkeys(name.rpartition(".")[0] for name in trace.names())
    return [name for name in found if layer is None or name.startswith(f"layers.{layer}.")]


def weights(run: Run, found: list[str]) -> Table:
    """Gain and shift of each norm, as strips."""
    rows = []
    for name in found:
        norm = norm_of(run, name)
        rows.append((name, "gain", norm.gain.mean(), norm.gain.std(), norm.gain))
        if norm.shift is not None:
            rows.append((name, "shift", norm.shift.mean(), norm.shift.std(), norm.shift))
    return Table("Gain and shift, learned, the same for every token", WEIGHTS, rows)


def norm_of(run: Run, name: str) -> Norm:
    """The weights of the norm of this name."""
    _, _, rest = name.partition("layers.")
    if not rest:
        return run.model.ln_final  # type: ignore[return-value] # its values are in the trace
    layer, _, which = rest.partition(".")
    norm: Norm = getattr(run.model.blocks[int(layer)], which)
    return norm
