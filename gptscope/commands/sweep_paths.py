"""Sweeps along paths: what a part tells another, as a number or as a picture of one end."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gptscope.commands.sweep_asked import Asked, Direction
from gptscope.commands.sweep_cells import (
    PATCHED,
    directions,
    lanes_of,
    looks_of,
    normalised_scores,
)
from gptscope.commands.sweep_map import Map
from gptscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.analysis.sweep import Part
    from gptscope.commands.session import Run

    Ends = tuple[Sequence[Part], Sequence[Part]]


def ends_of(asked: Asked, sends: str, reads: str) -> Ends:
    """The senders and the receivers, those between which a path leads.

    Raises:
        UsageError: one is no part of this model, or no path leads from any to any.
    """
    from gptscope.analysis.sweep import parts

    spec = asked.model.spec
    senders, receivers = parts(sends, spec, "--from"), parts(reads, spec, "--to")
    first = min(sender.when(spec) for sender in senders)
    last = max(receiver.when(spec) for receiver in receivers)
    if first >= last:
        raise UsageError(
            f"no path leads from {sends} to {reads}: a part is read by later ones alone"
        )
    return (
        [sender for sender in senders if sender.when(spec) < last],
        [receiver for receiver in receivers if first < receiver.when(spec)],
    )


def told_instead(asked: Asked, ends: Ends, replacement: str, *, freeze_mlp: bool) -> Map:
    """The change when what each sender tells each receiver is its mean, or nothing."""
    from gptscope.analysis.sweep import NOTED, REPLACEMENTS, Paths, over

    spec, run = asked.model.spec, over(asked.run.ids, *NOTED)
    paths = Paths(spec, run, REPLACEMENTS[replacement].make, (), freeze_mlp)
    pairs = [(s, r) for s in ends[0] for r in ends[1] if paths.leads(s, r)]
    before, *after = asked.measured([run, *paths.lanes(pairs)]).tolist()
    told = asked.what if asked.is_distance else f"Change of {asked.the_what}"
    title = f"{told}, with {named(ends)} {REPLACEMENTS[replacement].done}"
    return drawn(asked, ends, pairs, [x - before for x in after], title)


def told_by_the_other(
    asked: Asked, corrupt: Run, ends: Ends, direction: Direction, *, freeze_mlp: bool
) -> list[Map]:
    """The score when what each sender tells each receiver is what it gives in the other run."""
    from gptscope.analysis.sweep import NOTED, Paths, taken

    maps = []
    for one in directions(direction):
        run, other = lanes_of(asked, corrupt, one, *NOTED, "attn_out")
        paths = Paths(asked.model.spec, run, partial(taken, other=other), (other,), freeze_mlp)
        pairs = [(s, r) for s in ends[0] for r in ends[1] if paths.leads(s, r)]
        scores = normalised_scores(asked, one, [run, other, *paths.lanes(pairs)])
        maps.append(drawn(asked, ends, pairs, scores, f"{PATCHED[one]}: {named(ends)}", one))
    return maps


def named(ends: Ends) -> str:
    """Both ends in words."""
    sends, reads = (
        some[0].name if len(some) == 1 else f"each of {len(some)} {what}"
        for some, what in zip(ends, ("senders", "receivers"), strict=True)
    )
    return f"what {sends} tells {reads}"


def path_name(ends: Ends, sender: Part, receiver: Part) -> str:
    """The end of which there are several; both, where there are several of both or one path."""
    alone = [len(some) == 1 for some in ends]
    if alone == [False, True]:
        return sender.name
    return receiver.name if alone == [True, False] else f"{sender.name} to {receiver.name}"


def short(part: Part) -> str:
    """The name of a part over numbers."""
    return part.name.removeprefix("layers.")


def drawn(
    asked: Asked,
    ends: Ends,
    pairs: Sequence[tuple[Part, Part]],
    numbers: Sequence[float],
    title: str,
    direction: Direction | None = None,
) -> Map:
    """The numbers of all paths: of one end as layers x heads, where it is heads, else by name."""
    import numpy as np

    by_pair = dict(zip(pairs, numbers, strict=True))
    grid = laid_out(ends)
    values = np.array([[by_pair.get(pair, 0.0) for pair in row] for row in grid])
    hidden = np.array([[pair not in by_pair for pair in row] for row in grid])
    many = some_heads(ends)
    if many:
        rows = tuple(f"layer {layer}" for layer in dict.fromkeys(part.layer for part in many))
        columns = tuple(f"head {h}" for h in dict.fromkeys(part.head for part in many))
    else:
        rows, columns = (tuple(short(part) for part in some) for some in ends)
    names = [[path_name(ends, *pair) for pair in row] for row in grid]
    looks = looks_of(asked, direction)
    return Map(title, rows, columns, names, values, looks, hidden if hidden.any() else None)


def laid_out(ends: Ends) -> list[list[tuple[Part, Part]]]:
    """The pairs of both ends in rows: layers, where one end is heads and the other alone."""
    many = some_heads(ends)
    if not many:
        return [[(sender, receiver) for receiver in ends[1]] for sender in ends[0]]
    layers = dict.fromkeys(part.layer for part in many)
    pairs = [(sender, receiver) for sender in ends[0] for receiver in ends[1]]
    here = 0 if many is ends[0] else 1
    return [[pair for pair in pairs if pair[here].layer == layer] for layer in layers]


def some_heads(ends: Ends) -> Sequence[Part]:
    """The end that is heads, where the other is one part alone."""
    for some, other in (ends, ends[::-1]):
        if len(other) == 1 and len(some) > 1 and some[0].kind == "head":
            return some
    return ()
