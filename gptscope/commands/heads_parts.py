"""Where heads look, as tables and heat maps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.heads.scores import SCORES, SHARES
from gptscope.analysis.heads.verdict import WORDS
from gptscope.commands.attention_look import spoken
from gptscope.commands.heads_asked import COPYING, FEW, Asked, Score, has_word
from gptscope.commands.heads_choice import by_share, counts
from gptscope.view import Column, Facts, Grid, Kind, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gptscope.commands.heads_found import Found
    from gptscope.model.spec import Spec

    Heads = Sequence[tuple[int, int]]

ON_TEXT = ("this text", "its chance", "its rows")  # columns
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
    where it was measured, of tokens that are among those that a head raises most.
    """
    rows: list[tuple[Any, ...]] = []
    n_named, own = {}, found.weights.name == COPYING
    for name, word in WORDS.items():
        if name == COPYING and not own:
            continue
        every = by_share(found.best(name), asked.every(found.model.spec))
        named = [row for row in every if has_word(found.best(name), row[:2])]
        n_named[word] = len(named)
        for layer, head, *numbers in named[: asked.top or FEW] or every[:1]:
            text = None if name == COPYING else cell(found.on_text(name), layer, head)
            rows.append((name, layer, head, *numbers, text, word if named else None))
    title = f"The strongest heads on random tokens{'; copying by their weights' if own else ''}"
    if not found.ids:
        return Table(title, *without(ON_TEXT, STRONGEST, rows), "strongest"), n_named
    return Table(title, STRONGEST, rows, "strongest"), n_named


def without(
    names: Sequence[str], columns: tuple[Column, ...], rows: list[tuple[Any, ...]]
) -> tuple[tuple[Column, ...], list[tuple[Any, ...]]]:
    """Columns and rows without the columns of these names."""
    left = [i for i, column in enumerate(columns) if column.name not in names]
    return tuple(columns[i] for i in left), [tuple(row[i] for i in left) for row in rows]


def cell(score: Score, layer: int, head: int) -> float | None:
    """The score of a head; None where no row counts."""
    return float(score.values[layer, head]) if counts(score, layer) else None


def overview(title: str, scores: dict[str, Score], heads: Heads, name: str) -> Grid:
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
        name=name,
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
    """The scores of an overview: shares, and the entropy as a share of the largest there can be.

    Those of the weights stand with those on random tokens, or alone where nothing was measured.
    """
    get = found.best if random else found.on_text
    entropy = get("entropy")
    most = np.where(entropy.chance > 0, entropy.chance, np.nan)
    share = Score(entropy.values / most[:, None], entropy.chance / most, entropy.rows)
    scores = {name: get(name) for name in SHARES} | {"entropy": share}
    if random or found.random is None:
        scores[found.weights.name] = found.best(found.weights.name)
    return scores


def heat_map(title: str, score: Score, asked: Asked, spec: Spec, how: tuple[Kind, str]) -> Grid:
    """One score of every head: layers x heads; `how`: the kind of number, and the grid's name."""
    kind, name = how
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
        name=name,
    )


def verdict(found: Found, at: tuple[int, int]) -> Facts:
    """What a head is called."""
    words = [word for name, word in WORDS.items() if has_word(found.best(name), at)]
    said = ", ".join(words) or "none"
    return Facts(f"Head {at[0]}.{at[1]} (layer.head)", ((Column("verdict"), said),), "verdict")


def details(found: Found, heads: Heads) -> tuple[Table, Table]:
    """Every score of some heads, with standard error, chance and how many rows count."""
    others = tuple(name for name in SCORES if name not in SHARES)
    unit = "How widely heads look: entropy in bits, distance in tokens"
    return (
        Table("Where heads look: shares of a row", *detailed(found, heads, SHARES), "shares"),
        Table(unit, *detailed(found, heads, others), "widths"),
    )


def detailed(
    found: Found, heads: Heads, names: Sequence[str]
) -> tuple[tuple[Column, ...], list[tuple[Any, ...]]]:
    """A row for each head and score; without the columns of what was not read."""
    rows: list[tuple[Any, ...]] = []
    for at in heads:
        for name in names:
            text = numbers(found.on_text(name), at)
            drawn = (None,) * 4 if found.random is None else numbers(found.best(name), at)
            rows.append((*at, name, *drawn, *(text[0], *text[2:])))
    return (DETAILS, rows) if found.ids else without(ON_TEXT, DETAILS, rows)


def numbers(score: Score, at: tuple[int, int]) -> tuple[float | int | None, ...]:
    """Value, standard error, chance and rows; None where there is nothing."""
    if not counts(score, at[0]):
        return None, None, None, 0
    error = None if score.error is None else float(score.error[at])
    return float(score.values[at]), error, float(score.chance[at[0]]), int(score.rows[at[0]])
