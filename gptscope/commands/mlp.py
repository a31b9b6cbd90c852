"""The hidden units of a feed-forward layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.commands.options import Layer, Source, Target, TokenAt, Top, with_options
from gptscope.commands.output import show
from gptscope.commands.session import Run, start
from gptscope.errors import check_index
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Facts, Table, View

if TYPE_CHECKING:
    from gptscope.engine.trace import Trace

OVERVIEW = (
    Column("position", "id"),
    Column("token", "token"),
    Column("units on", "count"),
    Column("share on", "probability"),
    Column("strongest unit", "id"),
    Column("its value", "signed"),
)
STRONGEST = (Column("unit", "id"), Column("before", "signed"), Column("after", "signed"))


@with_options
def command(
    source: Source, target: Target, layer: Layer = 0, token: TokenAt = None, top: Top = 8
) -> None:
    """The hidden units of a feed-forward layer: how many are on, and which most.

    gptscope mlp "Lily wanted to play with her"

    gptscope mlp "Lily wanted to play with her" --layer 1 --token 5 --top 20

    A unit is on where its value after the activation is above zero.
    """
    run = start(source)
    layer = check_index("layer", layer, run.model.spec.n_layers)
    at = check_index("token", -1 if token is None else token, len(run.ids))
    trace = run.trace(f"layers.{layer}.mlp_hidden", f"layers.{layer}.mlp_act")
    all_tokens = (overview(trace, run, layer),) if token is None else ()
    parts = (*all_tokens, *strongest(trace, run, (layer, at), top))
    show(View("mlp", parts, **run.about), target)


def overview(trace: Trace, run: Run, layer: int) -> Table:
    """A row for each token."""
    act = trace.layers[layer].mlp_act
    units = act.shape[1]
    on, best = (act > 0).sum(axis=1), act.argmax(axis=1)
    rows = [
        (i, label, int(on[i]), on[i] / units, int(best[i]), act[i, best[i]])
        for i, label in enumerate(run.labels)
    ]
    return Table(f"Layer {layer}: {units} hidden units, all tokens", OVERVIEW, rows)


def strongest(trace: Trace, run: Run, where: tuple[int, int], top: int) -> tuple[Facts, Table]:
    """How many units are on at one token, and the strongest before and after the activation."""
    import numpy as np

    layer, at = where
    before, after = (getattr(trace.layers[layer], key)[at] for key in ("mlp_hidden", "mlp_act"))
    size = np.where(np.isnan(after), np.inf, np.abs(after))  # what went wrong comes first
    order = np.argsort(-size, kind="stable")[:top]
    rows = [(int(i), before[i], after[i]) for i in order]
    title = f"Layer {layer}, token {at} {token_glyphs(run.labels[at])}"
    on = (Column("units on", "count"), int((after > 0).sum()))
    of = (Column("units", "count"), len(after))
    name = run.model.spec.activation
    return Facts(title, (on, of)), Table(f"The strongest, before and after {name}", STRONGEST, rows)
