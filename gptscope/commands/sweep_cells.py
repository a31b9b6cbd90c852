"""Sweeps over the values of a kind: each taken away, or patched from another run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.commands.sweep_asked import Asked, Direction
from gptscope.commands.sweep_map import Looks, Map

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gptscope.analysis.sweep import Lane, Site
    from gptscope.commands.session import Run

    Numbers = NDArray[np.float64]


def taken_away(asked: Asked, what: str, replacement: str) -> Map:
    """What each value of a kind does to the answer: the change when it is taken away."""
    from gptscope.analysis.sweep import KINDS, REPLACEMENTS, ablations, over, sites

    kind = KINDS[what]
    where = sites(kind, asked.model.spec, asked.tokens if kind.by == "token" else None)
    run = over(asked.run.ids)
    made = ablations(run, [site for row in where for site in row], replacement)
    before, *after = asked.measured([run, *made]).tolist()
    told = asked.what if asked.is_distance else f"Change of {asked.the_what}"
    title = f"{told}, with {kind.meaning} {REPLACEMENTS[replacement].done}"
    return drawn(asked, where, title, [x - before for x in after], asked.run)


def patched(asked: Asked, corrupt: Run, what: str, direction: Direction) -> list[Map]:
    """What each value of a kind restores, or destroys, when it comes from the other run."""
    from gptscope.analysis.sweep import KINDS, patches, sites

    kind = KINDS[what]
    where = sites(kind, asked.model.spec, None if kind.by == "head" else asked.tokens)
    flat = [site for row in where for site in row]
    maps = []
    for one in directions(direction):
        run, other = lanes_of(asked, corrupt, one, kind.key, "output")
        scores = normalised_scores(asked, one, [run, other, *patches(run, other, flat)])
        labels = asked.run if one == Direction.denoise else corrupt
        title = f"{PATCHED[one]}: {kind.meaning}, {asked.what}"
        maps.append(drawn(asked, where, title, scores, labels, one))
    return maps


PATCHED = {
    Direction.denoise: "Clean values in the corrupt run",
    Direction.noise: "Corrupt values in the clean run",
}


def directions(asked: Direction) -> list[Direction]:
    """One direction, or both."""
    both = [Direction.denoise, Direction.noise]
    return both if asked == Direction.both else [asked]


def lanes_of(asked: Asked, corrupt: Run, direction: Direction, *notes: str) -> tuple[Lane, Lane]:
    """The pass that is patched, and the one that values come from; both note these values."""
    from gptscope.analysis.sweep import over

    clean, other = over(asked.run.ids, *notes), over(corrupt.ids, *notes)
    return (other, clean) if direction == Direction.denoise else (clean, other)


def normalised_scores(asked: Asked, direction: Direction, lanes: Sequence[Lane]) -> Sequence[float]:
    """What each pass after the first two gives: 0 as the corrupt run, 1 as the clean one."""
    from gptscope.analysis.sweep import normalised

    values = asked.measured(lanes)
    patched_run, other = values[:2].tolist()
    denoise = direction == Direction.denoise
    clean, corrupt = (other, patched_run) if denoise else (patched_run, other)
    scores: list[float] = normalised(values[2:], corrupt, clean).tolist()
    return scores


def drawn(
    asked: Asked,
    where: Sequence[Sequence[Site]],
    title: str,
    effects: Sequence[float],
    labels: Run,
    direction: Direction | None = None,
) -> Map:
    """The effects in the order of the values, as a picture of layers and heads or tokens."""
    import numpy as np

    first = where[0][0]
    rows = tuple("end" if site.key != first.key else f"layer {site.layer}" for site, *_ in where)
    tokens = tuple(site.token for site in where[0] if site.token is not None) or None
    if tokens:
        columns = tuple(labels.labels[i] for i in tokens)
    elif first.row is not None:
        columns = tuple(f"head {h}" for h in heads(asked, len(where[0])))
    else:
        columns = ("all tokens",)
    names = [[site.name for site in row] for row in where]
    values = np.array(effects).reshape(len(rows), len(columns))
    looks = looks_of(asked, direction)
    return Map(title, rows, columns, names, values, looks, tokens=tokens)


def looks_of(asked: Asked, direction: Direction | None) -> Looks:
    """How the numbers are shown: changes, distances or scores."""
    if direction is not None:
        unchanged = float(direction == Direction.noise)
        return Looks("score", "signed", unchanged, direction.value)
    return Looks(asked.formula.called, "length") if asked.is_distance else Looks("change")


def heads(asked: Asked, n: int) -> list[str]:
    """The heads that have each row: one, or those that share it."""
    step = asked.model.spec.n_heads // n
    if step == 1:
        return [str(h) for h in range(n)]
    return [f"{h * step}-{h * step + step - 1}" for h in range(n)]
