"""The tokens nearest to a token in the model's embedding."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptscope.commands.options import ModelName, Target, Verbose, with_options
from gptscope.commands.output import show
from gptscope.errors import UsageError
from gptscope.view import Column, Grid, Kind, Note, Part, Table, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gptscope.analysis.neighbours import Near
    from gptscope.commands.neighbours_asked import Asked
    from gptscope.model.weights import Model
    from gptscope.model.weights import Table as Tensor

    Array = NDArray[Any]

OF_ONE, OF_SEVERAL = 10, 5  # neighbours shown of each
SHARED = 0.1  # a mean cosine with the mean row that is worth a word


class By(StrEnum):
    """What makes two tokens near."""

    cosine = "cosine"
    dot = "dot"


class Which(StrEnum):
    """A table that has a row for each token."""

    embedding = "embedding"
    unembedding = "unembedding"


COLUMNS = (
    Column("rank", "id"),
    Column("id", "id"),
    Column("token", "token"),
    Column("cosine", "signed"),
    Column("dot product", "signed"),
)
NAMES = {By.cosine: "cosine", By.dot: "dot product"}


@dataclass(frozen=True)
class Look:
    """How neighbours are looked for."""

    by: By
    top: int | None
    table: Which
    centre: bool


@with_options
def command(
    target: Target,
    tokens: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TOKEN...",
            help='Tokens, as " mom" or "<id 643>"; or sums of them, as king - man + woman. '
            "One that begins with - goes after --.",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        By, typer.Option(help="Nearest by the angle between rows, or by their dot product.")
    ] = By.cosine,
    top: Annotated[
        int | None,
        typer.Option(
            min=1,
            help=f"How many neighbours of each; {OF_ONE} of one, {OF_SEVERAL} of several.",
            show_default=False,
        ),
    ] = None,
    table: Annotated[
        Which, typer.Option(help="The rows that tokens enter with, or those that they are said by.")
    ] = Which.embedding,
    centre: Annotated[
        bool, typer.Option("--centre", help="Take the mean of all rows off every row first.")
    ] = False,
    model: ModelName = "tiny",
    verbose: Verbose = False,
) -> None:
    """The tokens nearest to a token in the model's embedding.

    gptscope neighbours " mom"

    gptscope neighbours " mom" " dad" " girl" --centre

    gptscope neighbours king - man + woman --centre

    Several tokens are compared with each other first. In a sum, + and - stand
    between spaces. Its words are taken with a space before them where all are
    such tokens; in double quotes, as '"king" - "man"', they stay as they are.
    No text is run.
    """
    from gptscope.commands.session import opened

    if not tokens:
        raise UsageError("there is no token", hint='give one in quotes: " mom"')
    loaded = opened(model, verbose=verbose)
    show(view(loaded, tokens, Look(by, top, table, centre)), target)


def view(model: Model, texts: Sequence[str], look: Look) -> View:
    """The grid of the tokens, where there are several, and the neighbours of each."""
    import numpy as np

    from gptscope.analysis.neighbours import near, space
    from gptscope.commands.neighbours_asked import direction, every_asked
    from gptscope.commands.session import about_model

    every = every_asked(model, texts)
    seen = space(table_of(model, look.table), centred=look.centre)
    directions = np.stack([direction(seen, one) for one in every])
    found = near(seen, np.vstack([directions, seen.mean]))  # the mean is the last
    look = replace(look, top=look.top or (OF_ONE if len(every) == 1 else OF_SEVERAL))
    parts: list[Part] = [similarity(every, directions, look)] if len(every) > 1 else []
    parts += [nearest_to(model, one, (found, i), look) for i, one in enumerate(every)]
    parts += [Note(text) for text in notes(model, found, every, look)]
    return View("neighbours", tuple(parts), model=about_model(model))


def similarity(every: Sequence[Asked], directions: Array, look: Look) -> Grid:
    """How near the tokens that were asked for are to each other."""
    from gptscope.analysis.positions import cosine_similarity

    dots = look.by == By.dot
    values = directions @ directions.T if dots else cosine_similarity(directions)
    title = f"The {NAMES[look.by]} of every two"
    sums = any(one.is_sum for one in every)
    labels = tuple(one.shown if sums else one.label for one in every)
    kind: Kind = "text" if sums else "token"
    return Grid(title, labels, labels, values, "signed", kind, kind, name="similarity")


def nearest_to(model: Model, one: Asked, found: tuple[Near, int], look: Look) -> Table:
    """The neighbours of one token or sum."""
    from gptscope.analysis.neighbours import nearest
    from gptscope.commands.session import token_text

    near, i = found
    values = near.cosines[i] if look.by == By.cosine else near.dots[i]
    order = nearest(values, look.top or OF_ONE, one.weights)
    rows = [
        (rank, j, token_text(model, j), near.cosines[i, j], near.dots[i, j])
        for rank, j in enumerate(order, 1)
    ]
    which = "" if one.is_sum else f" (id {next(iter(one.weights))})"
    title = f"Nearest to {one.shown}{which} by {NAMES[look.by]}"
    return Table(title, COLUMNS, rows, name=f"nearest_{i + 1}")


def notes(model: Model, found: Near, every: Sequence[Asked], look: Look) -> Iterator[str]:
    """What the rows are, what is left out, and what they share; the mean row is the last one."""
    import numpy as np

    n, d = table_of(model, look.table).shape
    other = next(which for which in Which if which != look.table)
    tied = f", which is the {other} as well" if model.tied else ""
    yield f"The {look.table} of {model.name} has {n:,} rows of {d} numbers{tied}"
    if any(one.is_sum for one in every):
        yield "The tokens named are left out; in a sum, rows are added with the lengths they have"
    else:
        yield "A token itself is left out"
    if found.left_out:
        rows = "1 row is" if found.left_out == 1 else f"{found.left_out:,} rows are"
        yield f"{rows} left out as well: without a direction (zeros, or no numbers) nothing is near"
    if look.centre:
        yield "The mean of all rows is taken off every row"
        return
    shared = float(np.nanmean(found.cosines[-1]))
    if shared >= SHARED:
        what = f"The cosine of a row with the mean of all rows is {shared:.2f} on average"
        yield f"{what}: that is a direction which all share, and --centre takes it off"


def table_of(model: Model, which: Which) -> Tensor:
    """The table [V, d] that is looked at."""
    return model.token_table if which == Which.embedding else model.output_table
