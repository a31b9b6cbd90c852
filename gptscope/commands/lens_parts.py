"""What `lens` shows: a grid of states and tokens, or tables of one token."""

from __future__ import annotations

from math import isnan, nan
from typing import Any

from gptscope.commands.answers import POSITION, asked_table
from gptscope.commands.lens_look import Look, Show
from gptscope.view import Column, Grid, Kind, Table

KINDS: dict[Show, Kind] = {
    Show.top: "probability",
    Show.prob: "probability",
    Show.rank: "number",
    Show.entropy: "length",
    Show.kl: "length",
}
TITLES = {
    Show.top: "the likeliest next token and its probability",
    Show.prob: "the probability of {}",
    Show.rank: "the rank of {}, 1 is the likeliest",
    Show.entropy: "the entropy in bits",
    Show.kl: "KL(last row || row) in bits",
}
ROW = Column("after")


def grid(look: Look, what: Show) -> Grid:
    """States of the stream x tokens."""
    lens, run = look.lens, look.run
    whole = [*lens.positions] == [*range(len(run.ids))]
    title = TITLES[what].format(rated(look))
    return Grid(
        f"What each layer would have said after each token: {title}",
        lens.rows,
        tuple(run.labels[i] for i in lens.positions),
        numbers(look, what),
        KINDS[what],
        row_kind="text",
        column_positions=None if whole else lens.positions,
        tokens=words(look) if what == Show.top else None,
        name="layers",
    )


def rated(look: Look) -> str:
    """Which token is rated, in words."""
    return "the token that came next" if look.answer is None else look.named(look.answer)


def numbers(look: Look, what: Show) -> Any:  # noqa: ANN401
    """What stands in the cells [R, P]; a rank among what are no numbers is none."""
    import numpy as np

    lens = look.lens
    rated_at = np.array([look.answer_at(i) is not None for i in range(len(lens.positions))])
    ranked = (lens.rank > 0) & rated_at
    found = {
        Show.top: lens.top_probabilities[..., 0],
        Show.prob: np.where(rated_at, lens.probability, np.nan),
        Show.rank: lens.rank if ranked.all() else np.where(ranked, lens.rank, np.nan),
        Show.entropy: lens.entropy,
        Show.kl: lens.kl,
    }
    return found[what]


def words(look: Look) -> tuple[tuple[str, ...], ...]:
    """The likeliest token of each cell; none where logits are not numbers."""
    lens = look.lens
    return tuple(
        tuple(look.text(int(i)) if r else "" for i, r in zip(ids[:, 0], ranks, strict=True))
        for ids, ranks in zip(lens.top_ids, lens.rank, strict=True)
    )


def tables(look: Look, *, for_people: bool) -> list[Table]:
    """One position: what each state finds likeliest, and how it rates the answer."""
    after = look.after(0)
    title = f"What each layer would have said {after}"
    named = likeliest_in_words(look, title) if for_people else likeliest(look, title)
    answer = look.answer_at(0)
    what = "How sure each layer is" if answer is None else f"How each layer rates {named_as(look)}"
    return [named, ratings(look, f"{what} {after}", rated=answer is not None)]


def named_as(look: Look) -> str:
    """The answer that is rated at the one position."""
    return look.named(look.lens.answers[0])


def asked(look: Look) -> Table:
    """Which token is rated at each position where one is, by the last row; for programs."""
    lens, rows = look.lens, list[tuple[Any, ...]]()
    for i, at in enumerate(lens.positions):
        answer = look.answer_at(i)
        if answer is not None:
            told = lens.logit[-1, i], lens.probability[-1, i], int(lens.rank[-1, i]) or nan
            rows.append((at, look.role(i), look.text(answer), answer, *told))
    return asked_table("Rated after each token", rows, POSITION)


def likeliest_in_words(look: Look, title: str) -> Table:
    """The likeliest tokens of each row side by side, each with its probability."""
    rows: list[tuple[str | None, ...]] = []
    for name, ids, p in cells(look):
        told = [f"{look.named(i)} {x:.3f}" for i, x in zip(ids, p, strict=True)]
        none = ("not a number", *(None for _ in ids[1:]))
        rows.append((name, *(none if isnan(p[0]) else told)))
    ranks = (Column(f"rank {i}") for i in range(1, look.lens.top_ids.shape[2] + 1))
    return Table(title, (ROW, *ranks), rows, name="likeliest")


def likeliest(look: Look, title: str) -> Table:
    """The same as data: a row for each token."""
    columns = (
        ROW,
        Column("rank", "id"),
        Column("id", "id"),
        Column("token", "token"),
        Column("probability", "probability"),
    )
    rows = [
        (name, rank, i, look.text(i), x)
        for name, ids, p in cells(look)
        for rank, (i, x) in enumerate(zip(ids, p, strict=True), 1)
        if not isnan(x)
    ]
    return Table(title, columns, rows, name="likeliest")


def cells(look: Look) -> list[tuple[str, list[int], list[float]]]:
    """For each row its name, the likeliest ids and their probabilities, at the one position."""
    lens = look.lens
    return [
        (name, ids[0].tolist(), p[0].tolist())
        for name, ids, p in zip(lens.rows, lens.top_ids, lens.top_probabilities, strict=True)
    ]


def ratings(look: Look, title: str, *, rated: bool) -> Table:
    """Rank, probability and logit of the answer if there is one, entropy and divergence."""
    lens = look.lens
    columns = (
        ROW,
        Column("rank", "id"),
        Column("probability", "probability"),
        Column("logit", "signed"),
        Column("entropy, bits", "length"),
        Column("KL, bits", "length"),
    )
    rows = []
    for i, name in enumerate(lens.rows):
        told = int(lens.rank[i, 0]) or None, lens.probability[i, 0], lens.logit[i, 0]
        rows.append((name, *(told if rated else [None] * 3), lens.entropy[i, 0], lens.kl[i, 0]))
    return Table(title, columns, rows, name="ratings")
