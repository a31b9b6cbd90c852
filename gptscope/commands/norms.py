"""Every list before and after each normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands.options import Pass, Target, TokenAt, with_options
from gptscope.commands.output import show
from gptscope.commands.session import Run, start
from gptscope.errors import check_index
from gptscope.view import Column, Note, Table, View

if TYPE_CHECKING:
    from gptscope.engine.trace import Trace

WEIGHTS = (
    Column("norm"),
    Column("which"),
    Column("mean", "signed"),
    Column("std", "length"),
    Column("values", "vector"),
)
WIRED = {  # by keys of engine.forward.WIRINGS
    "norm_of_parts": (
        "ln1 and ln2 norm what attention and feed-forward layer give, before it is added"
    ),
    "parallel": "Attention reads ln1, the feed-forward layer ln2, both of the same list",
    "norm_in_stream": "The stream goes on from what ln1 and ln2 give, not from what enters them",
}


@with_options
def command(
    source: Pass,
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
    trace = run.trace("embed_norm.*", "layers.*.ln*", "ln_final.*")
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
    notes = (Note(text) for text in (words(run), *places_of(run), *of_heads(run)))
    return View("norms", (*tables, *notes, weights(run, found)), **run.about)


def columns(run: Run) -> tuple[Column, ...]:
    """Mean and spread before, between and after."""
    from gptscope.analysis.norms import SPREAD

    spread, _ = SPREAD[run.model.spec.norm]
    numbers: list[Column] = []
    for stage in ("in", "normalized", "out"):
        numbers += [Column(f"mean {stage}", "signed"), Column(f"{spread} {stage}", "length")]
    return Column("position", "id"), Column("token", "token"), *numbers


def words(run: Run) -> str:
    """What the columns mean."""
    d, eps = run.model.spec.d_model, run.model.spec.norm_eps
    how, shifted = "less their mean, over their standard deviation (std, of the population)", ""
    gives = "so mean 0 and std 1"
    if run.model.spec.norm == "rms_norm":
        how, gives = "over their root mean square (rms)", "so rms 1, and the mean what it is"
    if run.model.norm("layers.0.ln1").shift is not None:
        shifted = ", plus the shift"
    return (
        f"in: the {d} numbers of a token as they come; normalized: {how}, {gives}, but for eps = "
        f"{eps:g} under the root; out: times the gain{shifted}"
    )


def places_of(run: Run) -> list[str]:
    """Where the norms of a block stand, if not before the parts alone or after their sums."""
    block = run.model.blocks[0]
    after = "what attention and feed-forward layer give, before it is added"
    shared = block.ln2 is None
    said = [None if shared else WIRED.get(run.model.spec.wiring)]
    said += [f"ln1_post and ln2_post norm {after}"] if block.ln1_post is not None else []
    said += ["There is no ln2: attention and feed-forward layer both read ln1"] if shared else []
    first = run.model.embed_norm is not None
    said += ["embed_norm norms the embeddings, before the first block"] if first else []
    return [text for text in said if text]


def of_heads(run: Run) -> list[str]:
    """The norms of queries and keys, which are no lists of the stream."""
    from gptscope.model.blocks import outlines

    attention = outlines(run.model.blocks)[0].attention
    normed = {"queries": attention.q_norm, "keys": attention.k_norm}
    having = {name: norm for name, norm in normed.items() if norm is not None}
    if not having:
        return []
    each = all(norm.gain.shape[-1] == run.model.spec.d_head for norm in having.values())
    how = "each head by itself" if each else "all heads as one list"
    after = "q" if attention.turning is None else "q_before_rope"
    names = " and ".join(having).capitalize()
    text = f"{names} have a norm as well, {how} (Henry et al. 2020). gptscope trace has queries "
    return [f"{text}before it, as q_before_norm, and after it, as {after}"]


def names(trace: Trace, layer: int | None) -> list[str]:
    """The norms in the order of the pass."""
    found = dict.fromkeys(name.rpartition(".")[0] for name in trace.names())
    return [name for name in found if layer is None or name.startswith(f"layers.{layer}.")]


def weights(run: Run, found: list[str]) -> Table:
    """Gain and shift of each norm, as strips."""
    rows = []
    for name in found:
        norm = run.model.norm(name)
        rows.append((name, "gain", norm.gain.mean(), norm.gain.std(), norm.gain))
        if norm.shift is not None:
            rows.append((name, "shift", norm.shift.mean(), norm.shift.std(), norm.shift))
    what = " and shift" if any(which == "shift" for _, which, *_ in rows) else ""
    return Table(f"Gain{what}, learned, the same for every token", WEIGHTS, rows)
