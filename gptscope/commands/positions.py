"""What the model knows of places: the table, its waves, how alike its rows are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptscope.commands.options import ModelName, Target, Verbose, with_options
from gptscope.commands.output import show
from gptscope.commands.places import places
from gptscope.commands.positions_in_heads import check_no_table, in_heads, of_layers, opened
from gptscope.commands.positions_in_heads import overview as without_table
from gptscope.commands.session import about_model
from gptscope.errors import UsageError
from gptscope.view import Column, Facts, Grid, Note, Part, Table, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gptscope.model.spec import Spec
    from gptscope.model.weights import Model

FIRST = 16  # rows of the table that are shown
MOST = 10  # positions in a grid of similarities, which fit on 80 columns
NEAR = 8  # up to here every distance is shown, then its doubles


@with_options
def command(
    target: Target,
    model: ModelName = "tiny",
    first: Annotated[
        int | None,
        typer.Option(min=1, help=f"Show so many positions, from 0; {FIRST} if not given."),
    ] = None,
    at: Annotated[str | None, typer.Option(help="Show these positions: 0,1,2,64.")] = None,
    dims: Annotated[
        str | None, typer.Option(help="Exact numbers of these dimensions: 0:8, or 3,17,90.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """What the model knows of places: the table, its waves, how alike they are.

    gptscope positions --model toy

    gptscope positions --model toy --dims 0:8

    gptscope positions --model tiny --at 0,1,2,64

    The table is learned, or computed from sines and cosines of many wavelengths:

    Vaswani et al. 2017, "Attention Is All You Need", section 3.5.

    Of a model that turns its queries and keys (rotary): how fast each pair turns.

    Of one that takes off with the distance (ALiBi): the slope of each head.

    How alike is the cosine of two rows: 1 same direction, 0 right angle.
    """
    if first is not None and at is not None:
        raise UsageError("give one of --first and --at, not both")
    found = opened(model, verbose=verbose)
    loaded = found.model
    if loaded.position_table is None and in_heads(loaded):
        check_no_table(
            loaded.name, instead(loaded.spec), {"--first": first, "--at": at, "--dims": dims}
        )
        show(View("positions", without_table(found), model=about_model(loaded)), target)
        return
    table = table_of(loaded)
    chosen = None if at is None else places("--at", at, len(table), "position")
    if first is not None:
        chosen = list(range(min(first, len(table))))
    if dims is None:
        parts = overview(loaded, table, chosen)
    else:
        parts = exact(loaded, table, chosen or first_of(table), dims)
    show(View("positions", parts, model=about_model(loaded)), target)


def table_of(model: Model) -> NDArray[Any]:
    """The table of positions [ctx, d].

    Raises:
        UsageError: the model has none; the sentence says how it knows the order.
    """
    from gptscope.model.weights import rows

    if model.position_table is None:
        raise UsageError(
            f"{model.name} has no table of positions: {instead(model.spec)}",
            hint="gptscope positions --model tiny shows a learned one, --model toy a computed one",
        )
    return rows(model.position_table, slice(None), model.dtype)


def instead(spec: Spec) -> str:
    """How a model without a table knows the order."""
    if spec.positions == "rotary":
        return "it turns its queries and keys by their places (rotary)"
    if spec.positions == "alibi":
        return "its heads take off from their scores with the distance (ALiBi)"
    if spec.causal:
        return "it knows the order from the mask alone, as a token sees only what came before"
    return "it does not know the order of the tokens at all"


def overview(model: Model, table: NDArray[Any], chosen: list[int] | None) -> tuple[Part, ...]:
    """The table, its waves if it has them, and how alike its rows are."""
    computed = model.spec.positions == "sinusoidal"
    return (
        facts(model, table),
        *strips(table, chosen),
        *(waves(*table.shape) if computed else ()),
        *alike(table, chosen),
        *distances(table, computed=computed),
        *of_layers(model),
    )


def facts(model: Model, table: NDArray[Any]) -> Facts:
    """Which table it is."""
    kind = model.spec.positions
    pairs = (
        (Column("kind"), f"{kind}, computed" if kind == "sinusoidal" else kind),
        (Column("positions", "count"), len(table)),
        (Column("width d", "count"), table.shape[1]),
    )
    return Facts(f"Positions of {model.name}", pairs)


def strips(table: NDArray[Any], chosen: list[int] | None) -> tuple[Part, ...]:
    """A strip and a length for each position."""
    from gptscope.analysis.lengths import lengths

    shown = first_of(table) if chosen is None else chosen
    columns = (Column("position", "id"), Column("length", "length"), Column("values", "vector"))
    rows = [(p, lengths(table[p]), table[p]) for p in shown]
    words = f"{left_out(shown, len(table))}--dims 0:8 shows the numbers of these dimensions."
    return Table("The table", columns, rows), Note(words)


def first_of(table: NDArray[Any]) -> list[int]:
    """The positions of the table that are shown where none were chosen."""
    return list(range(min(FIRST, len(table))))


def left_out(shown: Sequence[int], n: int) -> str:
    """How many positions are shown, and how to see others; nothing if all are."""
    count = len(set(shown))
    if count == n:
        return ""
    return f"{count} of {n} positions; --first {n} shows all, --at 0,{n - 1} only these. "


def exact(model: Model, table: NDArray[Any], shown: list[int], dims: str) -> tuple[Part, ...]:
    """The numbers of some positions in some dimensions."""
    n, d = table.shape
    columns = places("--dims", dims, d, "dimension")
    title = f"Positions of {model.name}: a row for each, a column for each dimension"
    heads = tuple(map(str, columns))
    values = table[shown][:, columns]
    words = f"{left_out(shown, n)}{len(set(columns))} of {d} dimensions (--dims 0:{d} shows all)."
    cells = Grid(title, names(shown), heads, values, "signed", row_kind="text", column_kind="text")
    return cells, Note(words)


def names(positions: Sequence[int]) -> tuple[str, ...]:
    """Labels of rows and columns."""
    return tuple(map(str, positions))


def waves(n: int, d: int) -> tuple[Part, ...]:
    """The wavelength of every pair of dimensions."""
    from gptscope.analysis.positions import wavelengths

    lengths = wavelengths(d)
    columns = (
        Column("pair", "id"),
        Column("dims"),
        Column("wavelength", "number"),
        Column("waves in the table", "number"),
    )
    pairs = [", ".join(str(j) for j in (2 * i, 2 * i + 1) if j < d) for i in range(len(lengths))]
    rows = [(i, pairs[i], wave, n / wave) for i, wave in enumerate(lengths)]
    words = (
        f"Dimensions 2i and 2i+1 are a sine and a cosine that come round after 2 pi 10000^(2i/{d}) "
        f"positions: the first after 2 pi = {lengths[0]:.4f}, the last after 2 pi "
        f"10000^({2 * len(lengths) - 2}/{d}) = {lengths[-1]:.1f}; more dimensions would bring it "
        f"nearer to 10000 * 2 pi = {10_000 * lengths[0]:.1f}. A pair with less than one wave never "
        "comes near its beginning again."
    )
    return Table("The waves", columns, rows), Note(words)


def alike(table: NDArray[Any], chosen: list[int] | None) -> tuple[Part, ...]:
    """The cosine similarity of positions to each other."""
    from gptscope.analysis.positions import cosine_similarity

    shown = spaced(len(table)) if chosen is None else chosen
    values = cosine_similarity(table[shown])
    title = "How alike positions are: the cosine of their rows"
    sides = names(shown)
    cells = Grid(title, sides, sides, values, "signed", row_kind="text", column_kind="text")
    words = left_out(shown, len(table)).rstrip()
    return (cells, Note(words)) if words else (cells,)


def spaced(n: int) -> list[int]:
    """At most `MOST` positions, evenly spaced from 0 by a power of two."""
    step = 1
    while -(-n // step) > MOST:
        step *= 2
    return list(range(0, n, step))


def distances(table: NDArray[Any], *, computed: bool) -> tuple[Part, ...]:
    """How alike two positions are that lie so far apart: the mean and the two ends."""
    from gptscope.analysis.positions import similarity_by_distance

    n, d = table.shape
    doubles = [2**i for i in range(n.bit_length()) if 2**i > NEAR]
    apart = [k for k in (*range(1, NEAR + 1), *doubles) if k < n]
    if not apart:
        return ()
    found = similarity_by_distance(table, apart)
    columns = (
        Column("distance", "count"),
        *(Column(name, "signed") for name in ("mean", "least", "most")),
    )
    rows = [(k, x.mean(), x.min(), x.max()) for k, x in zip(apart, found, strict=True)]
    best, mean = max(((row[0], row[1]) for row in rows), key=lambda pair: pair[1])
    who = "neighbours" if best == 1 else f"positions {best} apart"
    words = f"Of these, {who} are most alike (mean {mean:.3f})."
    if not abs(mean) <= 1:  # NaN
        words = "The table holds NaN or infinity."
    elif computed and d % 2 == 0:
        words += (
            " Least and most are the same but for rounding: how alike two positions of a computed "
            "table are depends only on how far apart they are."
        )
    return Table("How alike positions are that lie so far apart", columns, rows), Note(words)
