"""The tensors of a model in numbers; what its heads do alone; the rows of its tables."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands.info import ModelArgument
from gptscope.commands.options import ModelName, Target, Verbose, with_options
from gptscope.commands.output import as_asked, chosen_format, show
from gptscope.errors import GptscopeError, UsageError
from gptscope.glyphs import has

if TYPE_CHECKING:
    from gptscope.model.checkpoint import Checkpoint
    from gptscope.view import View


class Order(StrEnum):
    """What tensors are sorted by."""

    name = "name"
    size = "size"
    std = "std"
    max = "max"
    zeros = "zeros"


class By(StrEnum):
    """What has a row of its own."""

    tensor = "tensor"
    part = "part"


class Which(StrEnum):
    """A table of the model."""

    tokens = "tokens"
    positions = "positions"


@dataclass(frozen=True)
class Chosen:
    """Which tensors are shown, and in which order."""

    pattern: str | None
    sort: Order | None
    by: By
    top: int | None


@with_options
def command(
    target: Target,
    model: ModelArgument = None,
    pattern: Annotated[
        str | None,
        typer.Argument(
            help="Only tensors of this name in the file; a star stands for anything.",
            show_default=False,
        ),
    ] = None,
    sort: Annotated[
        Order | None, typer.Option(help="By name, or the largest first; else as in the file.")
    ] = None,
    by: Annotated[By, typer.Option(help="A row for each tensor, or for each in all layers.")] = (
        By.tensor
    ),
    top: Annotated[int | None, typer.Option(min=1, help="Show so many rows.")] = None,
    svd: Annotated[
        bool, typer.Option("--svd", help="Singular values of OV and QK of every head.")
    ] = False,
    layer: Annotated[
        int | None, typer.Option("--layer", "-l", help="With --svd: one block only, from 0.")
    ] = None,
    table: Annotated[
        Which | None, typer.Option(help="How long the rows of this table are.")
    ] = None,
    named: ModelName = "tiny",
    verbose: Verbose = False,
) -> None:
    """The tensors of a model in numbers; singular values of its heads.

    gptscope weights tiny "*h.0*"

    gptscope weights tiny --by part --sort std

    gptscope weights tiny --svd

    gptscope weights tiny --table tokens --top 5

    A single argument with a star is a pattern. Names are those in the file;
    what all begin with may be left out. --by part takes those together that
    differ only in the number of a layer.

    The numbers of a file can be looked at even if no model can be made of it.
    """
    if model is not None and "*" in model and pattern is None:
        model, pattern = None, model
    name = named if model is None else model
    chosen = pattern is not None or sort is not None or by == By.part
    check(svd=svd, table=table is not None, chosen=chosen, layer=layer)
    if svd:
        from gptscope.commands.weights_svd import view_of_heads

        made = view_of_heads(name, layer, top, verbose=verbose)
    elif table is not None:
        from gptscope.commands.weights_rows import view_of_rows

        made = view_of_rows(name, table, top, verbose=verbose)
    else:
        made = view(name, Chosen(pattern, sort, by, top), glyphs_for(target), verbose=verbose)
    show(made, target)


def check(*, svd: bool, table: bool, chosen: bool, layer: int | None) -> None:
    """What is asked for must go together; `chosen` says that tensors were picked or sorted.

    Raises:
        UsageError: it does not.
    """
    if svd and table:
        raise UsageError("give one of --svd and --table, not both")
    if (svd or table) and chosen:
        raise UsageError("--svd and --table look at the model: no PATTERN, --sort or --by part")
    if layer is not None and not svd:
        raise UsageError("--layer goes with --svd", hint='a pattern chooses tensors: "*.h.0.*"')


def view(name: str, chosen: Chosen, glyphs: str, *, verbose: bool) -> View:
    """The tensors of the files, or those that match."""
    from gptscope.analysis.tensors import beginning
    from gptscope.commands.session import timed
    from gptscope.commands.weights_tensors import measured, parts_of, rows_of
    from gptscope.model.files import short
    from gptscope.model.load import label
    from gptscope.view import View

    checkpoint, about = files_of(name)
    groups = rows_of(checkpoint, chosen.pattern, together=chosen.by == By.part)
    with timed(verbose) as say:
        rows = measured(groups)
        say(f"read {len(rows)} rows of {checkpoint.path.name}")
    if chosen.sort is not None:
        rows.sort(key=KEYS[chosen.sort], reverse=chosen.sort != Order.name)
    only = "" if chosen.pattern is None else f" that match {short(chosen.pattern)}"
    title = f"The tensors of {label(name, checkpoint.path)}{only}"
    begun = beginning(checkpoint.arrays)
    parts = parts_of(title, rows, chosen.top, begun=begun, glyphs=glyphs)
    return View("weights", parts, model=about)


KEYS = {
    Order.name: lambda row: row.name,
    Order.size: lambda row: row.held.bytes,
    Order.std: lambda row: row.moments.std,
    Order.max: lambda row: row.moments.largest,
    Order.zeros: lambda row: row.share_of_zeros,
}


def files_of(name: str) -> tuple[Checkpoint, dict[str, object] | None]:
    """The files of this name, and the model, where one can be made of them.

    Raises:
        ModelError: the files cannot be opened.
    """
    from gptscope.commands.session import about_model
    from gptscope.model.checkpoint import open_checkpoint
    from gptscope.model.find import find_weights
    from gptscope.model.load import open_model

    try:
        opened = open_model(name)
    except GptscopeError:
        return open_checkpoint(find_weights(name)), None
    return opened.checkpoint, about_model(opened.model)


def glyphs_for(target: Target) -> str:
    """What histograms are drawn with: bars, or digits where a text for people lacks them."""
    from gptscope.commands.weights_tensors import BARS, DIGITS
    from gptscope.render.screen import Screen, screen_of

    if chosen_format(target) not in ("table", "markdown"):
        return BARS  # data are the same wherever they go
    to_file = target.output is not None or sys.stdout is None
    screen = as_asked(Screen() if to_file else screen_of(sys.stdout), target)
    return BARS if has(screen.charset, BARS) else DIGITS
