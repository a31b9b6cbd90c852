"""Where the residual stream begins: token row, position row, sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptscope.commands.options import Pass, Target, TokenAt, with_options
from gptscope.commands.output import show
from gptscope.commands.places import places
from gptscope.commands.session import Run, start
from gptscope.errors import check_index
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Note, Table, View

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gptscope.engine.trace import Trace

ROWS = {"token_embeddings": "token", "position_embeddings": "position", "embeddings": "sum"}
FIRST = 16  # numbers shown where no --dims is given


@with_options
def command(
    source: Pass,
    target: Target,
    token: TokenAt = None,
    dims: Annotated[
        str | None, typer.Option(help="Exact numbers of these dimensions: 0:16, or 3,17,90.")
    ] = None,
) -> None:
    """What each token and each position bring along, and their sum.

    gptscope embeddings "Lily wanted to play with her"

    gptscope embeddings "Lily wanted to play with her" --token 0 --dims 0:8
    """
    run = start(source)
    trace = run.trace(*ROWS, "embed_norm.out")
    if token is None and dims is None:
        parts = strips(trace, run)
    else:
        at = check_index("token", -1 if token is None else token, len(run.ids))
        parts = exact(trace, run, at, dims)
    show(View("embeddings", parts, **run.about), target)


def strips(trace: Trace, run: Run) -> tuple[Any, ...]:
    """Every token's rows as coloured strips, with their lengths."""
    from gptscope.analysis.lengths import lengths

    columns = (
        Column("position", "id"),
        Column("token", "token"),
        Column("row"),
        Column("length", "length"),
        Column("values", "vector"),
    )
    rows = [
        (i, label, name, lengths(values[i]), values[i])
        for i, label in enumerate(run.labels)
        for name, values in there(trace).items()
    ]
    words = (
        f"Each strip is a list of {run.model.spec.d_model} numbers, from strongly negative to "
        f"strongly positive; {made(run)}. --token and --dims show the numbers."
    )
    return Table("", columns, rows), Note(words)


def there(trace: Trace) -> dict[str, NDArray[Any]]:
    """The rows of all tokens that this model has, by name."""
    found = {
        name: trace.values[key, None] for key, name in ROWS.items() if (key, None) in trace.values
    }
    if ("embed_norm.out", None) in trace.values:  # the sum as the blocks get it
        found["normed"] = found.pop("sum")
    return found


def made(run: Run) -> str:
    """How the last row of a token comes out of the others."""
    from gptscope.engine.lacking import POSITIONS

    model, s = run.model, run.model.spec
    if model.position_table is None:
        kind = POSITIONS.get(s.positions, s.positions)
        said = ["no row of positions is added" + (f": {kind}" if s.positions != "none" else "")]
    else:
        said = ["token + position = sum"]
    if model.embed_norm is not None:
        said.append("normed is that after embed_norm")
    if model.project_in is not None:
        said.append(f"token is {model.token_table.shape[1]} numbers of the table, widened")
    if s.embed_scale != 1:
        said.append(f"token is its row of the table times {s.embed_scale:g}")
    return "; ".join(said)


def exact(trace: Trace, run: Run, at: int, dims: str | None) -> tuple[Any, ...]:
    """The numbers of one token, a row for each dimension."""
    from gptscope.analysis.lengths import lengths

    d = run.model.spec.d_model
    chosen = places("--dims", f":{FIRST}" if dims is None else dims, d, "dimension")
    kept = {name: values[at] for name, values in there(trace).items()}
    columns = (Column("dimension", "id"), *(Column(name, "signed") for name in kept))
    rows = [(i, *(values[i] for values in kept.values())) for i in chosen]
    long = ", ".join(f"{name} {lengths(values):.4f}" for name, values in kept.items())
    title = f"Token {at} {token_glyphs(run.labels[at])}"
    words = f"{len(chosen)} of {d} dimensions (--dims 0:{d} shows all); lengths: {long}"
    return Table(title, columns, rows), Note(words)
