"""Where heads look, as tables and heat maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.heads.scores import SCORES, SHARES
from gptscope.analysis.heads.verdict import WORDS
from gptscope.commands.attention_look import spoken
from gptscope.commands.heads_asked import (
    COPYING,
    FEW,
    SHOWN,
    Asked,
    Found,
    Score,
    Weights,
    has_word,
)
from gptscope.view import Column, Grid, Kind, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[np.floating[Any]]
    Heads = Sequence[tuple[int, int]]

FARTHEST = "farthest above chance"
STRONGEST = (
    Column("score"),
    Column("layer", "id"),
    Column("head", "id"),
    Column("share", "probability"),
    Column("standard error", "length"),
    Column("chance", "length"),
    Column("this text", "length"),
    Column("verdict"),
)
DETAILS = (
    Column("layer", "id"),
    Column("head", "id"),
    Column("score"),
    Column("random tokens", "length"),
    Column("standard error", "length"),
    Column("chance", "length"),
    Column("rows", "count"),
    Column("this text", "length"),
    Column("its chance", "length"),
    Column("its rows", "count"),
)


def strongest(found: Found, asked: Asked) -> tuple[Table, dict[str, int]]:
    """The heads that have earned a word, the strongest first; and how many have.

    Of a score that has none, the strongest head. Shares are those on random tokens; of copying,
    the share of tokens that raise themselves, or of positive eigenvalues.
    """
    rows: list[tuple[Any, ...]] = []
    n_named = {}
    for name, word in WORDS.items():
        score = found.best(name)
        every = by_share(score, asked.every(found.model.spec))
        named = [one for one in every if has_word(score, one[:2])]
        n_named[word] = len(named)
        for layer, head, *numbers in named[: asked.top or FEW] or every[:1]:
            text = None if name == COPYING else cell(found.on_text(name), layer, head)
            rows.append((name, layer, head, *numbers, text, word if named else None))
    return Table(
        "The strongest heads: on random tokens, copying by their weights", STRONGEST, rows
    ), n_named


def by_share(score: Score, heads: Heads) -> list[tuple[int, int, float, float | None, float]]:
    """Layer, head, share, standard error and chance, the largest share first."""
    error = score.error
    found = [
        (
            *at,
            float(score.values[at]),
            None if error is None else float(error[at]),
            float(score.chance[at[0]]),
        )
        for at in heads
        if counts(score, at[0])
    ]
    return sorted(found, key=lambda row: -np.nan_to_num(row[2], nan=-1))


def counts(score: Score, layer: int) -> bool:
    """Whether there was anything to measure in a layer."""
    return score.rows is None or bool(score.rows[layer])


def cell(score: Score, layer: int, head: int) -> float | None:
    """The score of a head; None where no row counts."""
    return float(score.values[layer, head]) if counts(score, layer) else None


def in_order(found: Found | Weights, asked: Asked) -> tuple[Heads, str]:
    """The heads to be shown, and how they were chosen, if they are not all."""
    every, top = asked.every(found.model.spec), asked.top or SHOWN
    by = asked.sort
    if by is None and len(every) > top:
        names = SHARES if isinstance(found, Found) else (COPYING,)
        gains = [found.best(name) for name in names]
        above = np.max([np.nan_to_num(one.values - one.chance[:, None]) for one in gains], axis=0)
        by = FARTHEST
    elif by is not None:
        above = np.nan_to_num(found.best(by).values, nan=-np.inf)
    if by is None:
        return every, ""
    every.sort(key=lambda at: -above[at])
    how = by if by == FARTHEST else f"largest {by}"
    cut = f"; --top {len(every)} shows all" if len(every) > top else ""
    return every[:top], f"{min(top, len(every))} of {len(every)} heads, the {how} first{cut}."


def overview(title: str, scores: dict[str, Score], heads: Heads) -> Grid:
    """A row for each head and a column for each score, and what chance gives in the last rows."""
    values = [[one.values[at] for one in scores.values()] for at in heads]
    empty = [[not counts(one, at[0]) for one in scores.values()] for at in heads]
    labels = [f"{layer}.{head}" for layer, head in heads]
    for label, layer in levels(scores, sorted({layer for layer, _ in heads})):
        labels.append(label)
        values.append([one.chance[layer] for one in scores.values()])
        empty.append([not counts(one, layer) for one in scores.values()])
    return Grid(
        title,
        tuple(labels),
        tuple(scores),
        np.array(values, np.float64),
        row_kind="text",
        column_kind="text",
        hidden=np.array(empty),
    )


def levels(scores: dict[str, Score], layers: Sequence[int]) -> Iterator[tuple[str, int]]:
    """A name for each level of chance that these layers have, and one of its layers.

    Layers that see as far have the same.
    """
    groups: dict[tuple[str, ...], list[int]] = {}
    for layer in layers:
        key = tuple(f"{one.chance[layer]:.9g}" for one in scores.values())
        groups.setdefault(key, []).append(layer)
    for same in groups.values():
        yield ("chance" if len(groups) == 1 else f"chance in {spoken(same)}"), same[0]


def of_overview(found: Found, *, random: bool) -> dict[str, Score]:
    """The scores of an overview: shares, and the entropy as a share of the largest there can be."""
    get = found.best if random else found.on_text
    entropy = get("entropy")
    most = np.where(entropy.chance > 0, entropy.chance, np.nan)
    share = Score(entropy.values / most[:, None], entropy.chance / most, entropy.rows)
    scores = {name: get(name) for name in SHARES} | {"entropy": share}
    if random or found.random is None:
        scores[COPYING] = found.best(COPYING)
    return scores


def heat_map(title: str, score: Score, asked: Asked, found: Found, kind: Kind) -> Grid:
    """One score of every head: layers x heads."""
    spec = found.model.spec
    layers, heads = asked.layers(spec), asked.heads(spec)
    empty = [[not counts(score, layer)] * len(heads) for layer in layers]
    return Grid(
        f"{title}: a row for each layer, a column for each head",
        tuple(map(str, layers)),
        tuple(map(str, heads)),
        score.values[np.ix_(list(layers), list(heads))],
        kind,
        row_kind="text",
        column_kind="text",
        hidden=np.array(empty),
    )


def details(found: Found, heads: Heads) -> tuple[Table, Table]:
    """Every score of some heads, with standard error, chance and how many rows count."""
    widths = tuple(name for name in SCORES if name not in SHARES)
    return (
        detailed("Where heads look: shares of a row", SHARES, found, heads),
        detailed(
            "How widely heads look: entropy in bits, distance in tokens", widths, found, heads
        ),
    )


def detailed(title: str, names: Sequence[str], found: Found, heads: Heads) -> Table:
    """A row for each head and score."""
    rows = []
    for at in heads:
        for name in names:
            text = numbers(found.on_text(name), at)
            drawn = (None,) * 4 if found.random is None else numbers(found.best(name), at)
            rows.append((*at, name, *drawn, *(text[0], *text[2:])))
    return Table(title, DETAILS, rows)


def numbers(score: Score, at: tuple[int, int]) -> tuple[float | int | None, ...]:
    """Value, standard error, chance and rows; None where there is nothing."""
    if not counts(score, at[0]):
        return None, None, None, 0
    error = None if score.error is None else float(score.error[at])
    return float(score.values[at]), error, float(score.chance[at[0]]), int(score.rows[at[0]])
