"""Parameters counted from sizes."""

from __future__ import annotations

from typing import Annotated

import typer

from gptscope.commands.options import Target, with_options
from gptscope.commands.output import show
from gptscope.model.params import ParameterCount, n_params
from gptscope.view import Column, Facts, Table, View

COLUMNS = (
    Column("part"),
    Column("formula"),
    Column("parameters", "count"),
    Column("share", "probability"),
)


@with_options
def command(
    target: Target,
    d: Annotated[int, typer.Option("--d", min=1, help="Width: numbers per token.")],
    n_layers: Annotated[int, typer.Option("--L", min=0, help="Blocks.")],
    n_vocab: Annotated[int, typer.Option("--V", min=0, help="Vocabulary.")] = 50257,
    ctx: Annotated[
        int, typer.Option("--ctx", min=0, help="Longest text; 0 where positions have no table.")
    ] = 2048,
    ff: Annotated[
        int | None, typer.Option("--ff", min=1, help="Feed-forward width; 4 d if not given.")
    ] = None,
) -> None:
    """Count the parameters of a GPT from its sizes.

    gptscope params --d 768 --L 12

    gptscope params --d 768 --L 12 --ctx 1024   (the smallest GPT-2: 124,439,808)

    gptscope params --d 12288 --L 96            (GPT-3: 174,604,259,328)
    """
    counted = n_params(d, n_layers, n_vocab, ctx, ff)
    show(view(counted, 12 * n_layers * d * d, ff is None), target)


def view(counted: ParameterCount, rule: int, usual: bool) -> View:
    """The lesson's table, the total, and the rule of thumb 12 L d^2 beside it."""
    network = "L (8 d^2 + 5 d)" if usual else "L (2 d ff + ff + d)"
    parts = (
        ("embeddings", "V d + ctx d", counted.embeddings),
        ("attention", "L (4 d^2 + 4 d)", counted.attention),
        ("network", network, counted.network),
        ("normalisations", "(4 L + 2) d", counted.normalisations),
    )
    rows = [(name, formula, n, n / counted.total) for name, formula, n in parts]
    rows.append(("total", "", counted.total, 1.0))
    thumb = (
        (Column("12 L d^2", "count"), rule),
        (Column("its share of the total", "probability"), rule / counted.total),
    )
    return View("params", (Table("", COLUMNS, rows), Facts("The rule of thumb", thumb)))
