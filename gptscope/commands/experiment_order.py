"""Attention alone does not know the order of the tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands.options import Layer, Source, Target, with_options
from gptscope.commands.output import show
from gptscope.commands.session import Run, start
from gptscope.errors import UsageError, check_index
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Note, Table, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.analysis.order import Case

CASES = (
    Column("positions"),
    Column("mask"),
    Column("largest difference", "number"),
    Column("largest output", "number"),
    Column("outputs"),
)
TOKENS = (
    Column("position", "id"),
    Column("token", "token"),
    Column("permuted", "token"),
    Column("moved from", "id"),
)
WHY = (
    "A head weighs tokens by what they are, not by where they stand. Without positions and mask, "
    "permuting the tokens only permutes its outputs; what is left is rounding. Positions mark "
    "every token with its place. A mask alone tells the order as well: the first token sees only "
    "itself, the last sees all. So a model can learn the order without any positions: Haviv, Ram, "
    "Press, Izsak and Levy 2022, Transformer Language Models without Positional Encodings Still "
    "Learn Positional Information."
)


@with_options
def command(
    source: Source,
    target: Target,
    layer: Layer = 0,
    head: Annotated[
        int, typer.Option("--head", "-H", help="Which head, from 0; -1 is the last.")
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="How the tokens are permuted.")] = 0,
) -> None:
    """Attention alone does not know the order of the tokens.

    gptscope experiment order "Lily wanted to play with her"

    gptscope experiment order "the cat eats the fish" --model toy --head 1

    One head of the model is given the embeddings of the tokens, in their order
    and permuted, with and without positions, with and without the mask.
    """
    show(view(start(source), layer, head, seed), target)


def view(run: Run, layer: int, head: int, seed: int) -> View:
    """The cases, what they mean, and how the tokens were permuted.

    Raises:
        UsageError: there is no such head, or nothing that could be permuted.
    """
    from gptscope.analysis.order import derangement, order_cases
    from gptscope.engine.ids import checked_ids

    spec = run.model.spec
    layer = check_index("layer", layer, spec.n_layers)
    head = check_index("head", head, spec.n_heads)
    ids = checked_ids(spec, run.ids)
    check_tokens(run)
    order = derangement(len(ids), seed)
    cases = order_cases(run.model, ids, order, layer, head)
    title = f"Layer {layer}, head {head}, on the embeddings alone: outputs for permuted tokens"
    parts = (
        Table(title, CASES, rows(cases)),
        Note(WHY + of_heads(run) + lacking(run, cases)),
        Table("How the tokens were permuted", TOKENS, moves(run.labels, order.tolist())),
    )
    return View("experiment order", parts, **run.about)


def check_tokens(run: Run) -> None:
    """Refuse a text that no permutation changes.

    Raises:
        UsageError: its tokens are all the same, or it has only one.
    """
    if len(set(run.ids)) == 1:
        one, n = f"'{token_glyphs(run.labels[0])}'", len(run.ids)
        many = f"all {n} tokens are {one}" if n > 1 else f"{one} is one token"
        raise UsageError(f"{many}: there is nothing to permute", "give two different ones or more")


def rows(cases: Sequence[Case]) -> list[tuple[str, str, float, float, str]]:
    """A row for each case: how far the outputs are from permuted ones, beside their size."""
    return [
        (
            "yes" if case.positions else "no",
            "yes" if case.mask else "no",
            case.difference,
            case.scale,
            outcome(case),
        )
        for case in cases
    ]


def outcome(case: Case) -> str:
    """What became of the outputs, in words."""
    if case.difference != case.difference:
        return "not a number"
    return "permuted the same way" if case.same else "different"


def of_heads(run: Run) -> str:
    """How positions come into the heads, where no table is added."""
    from gptscope.engine.lacking import POSITIONS

    kind = run.model.spec.positions
    if run.model.position_table is not None or kind == "none":
        return ""
    return f" In this model positions are those of the heads: {POSITIONS.get(kind, kind)}."


def lacking(run: Run, cases: Sequence[Case]) -> str:
    """What the model itself does not have, of positions and mask."""
    lacks = [] if any(case.positions for case in cases) else ["positions"]
    lacks += [] if run.model.spec.causal else ["mask"]
    return f" This model itself has no {' and no '.join(lacks)}." if lacks else ""


def moves(labels: Sequence[str], order: Sequence[int]) -> list[tuple[int, str, str, int]]:
    """Every place with its token before and after, and where the new one stood."""
    pairs = enumerate(zip(labels, order, strict=True))
    return [(at, label, labels[origin], origin) for at, (label, origin) in pairs]
