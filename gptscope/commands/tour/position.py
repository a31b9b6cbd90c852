"""Card 3: where a token stands."""

from __future__ import annotations

from typing import NamedTuple

from gptscope.commands.tour.card import NUMBERS, Card, Pass, columns, numbers
from gptscope.view import Column, Part, Table


class Words(NamedTuple):
    """How a model knows the order of its tokens."""

    what: str
    paper: str
    formula: str
    python: str


ADDED = "trace.token_embeddings + model.position_table[:len(ids)]"
WAVES = "PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same"
WORDS = {
    "learned": Words(
        "Attention alone does not know order, so every position has a learned row of its own, "
        "which is added to the row of the token.",
        "There, the rows are computed from sines and cosines; learned ones were tried as well, "
        "with nearly the same result (section 3.5).",
        "x_t = E[id_t] + P[t]",
        ADDED,
    ),
    "sinusoidal": Words(
        "Attention alone does not know order, so every position has a row of sines and cosines, "
        "slow and fast waves, which is added to the row of the token. It has no parameters.",
        "The same there (section 3.5); GPT-2 learns its rows instead.",
        f"x_t = E[id_t] + PE(t); {WAVES}",
        ADDED,
    ),
    "rotary": Words(
        "Nothing is added here: in every head, queries and keys are turned, number i together with "
        "number i + d_h/2, by an angle that grows with the position, so that a score depends on "
        "the distance.",
        "There, rows of sines and cosines are added; turning came later (Su et al. 2021).",
        "q_t = R(t) W_q x_t and k_t = R(t) W_k x_t, with R(t) a turn by t times each pair's speed",
        "trace.layers[0].heads[0].q",
    ),
    "none": Words(
        "Nothing is added here: this model has no positions at all. What order it knows comes from "
        "the mask alone, since later tokens see more than earlier ones.",
        "There, rows of sines and cosines are added; without them the mask can still do the work "
        "(Haviv et al. 2022).",
        "x_t = E[id_t]",
        "trace.embeddings",
    ),
}
UNMASKED = "Nothing is added here, and nothing is masked: this model cannot tell orders apart."


def card(p: Pass) -> Card:
    """A table that is added, a turn, or nothing."""
    s, t = p.spec, p.n_tokens
    words = WORDS[s.positions]
    if s.positions == "none" and not s.causal:
        words = words._replace(what=UNMASKED)
    shape = f"[T, d] = [{t}, {s.d_model}]"
    shapes = {
        "rotary": f"q, k [H, T, d_h] = [{s.n_heads}, {t}, {s.d_head}], turned in pairs",
        "none": f"{shape}, unchanged",
    }
    return Card(
        title="Position",
        what=words.what,
        paper=words.paper,
        shapes=shapes.get(s.positions, f"{shape} + {shape}; the longest text is {s.n_ctx:,}"),
        formula=words.formula,
        python=words.python,
        values=(turned(p) if s.positions == "rotary" else added(p),),
    )


def added(p: Pass) -> Part:
    """The rows of the last token and their sum."""
    last = p.n_tokens - 1
    names = {
        "token_embeddings": "token row",
        "position_embeddings": f"row of position {last}",
        "embeddings": "sum",
    }
    rows = [
        (name, *p.trace.values[key, None][last][:NUMBERS])
        for key, name in names.items()
        if (key, None) in p.trace.values
    ]
    return Table(f"The first numbers of {p.last}", (Column("row"), *numbers(p.spec.d_model)), rows)


def turned(p: Pass) -> Part:
    """A query before and after its turn, with the partners that turn together side by side."""
    head, turning = p.trace.layers[0].heads[0], p.model.blocks[0].attention.turning
    speeds = turning.speeds_at(p.n_tokens) if turning else ()
    n, t = len(speeds), p.n_tokens - 1
    pairs = [j for i in range(min(n, NUMBERS // 2)) for j in (i, i + n)]
    angles = [f"{t * speeds[i % n]:.3g}" for i in pairs]
    rows = [
        ("before", *head.q_before_rope[-1][pairs]),
        ("after", *head.q[-1][pairs]),
    ]
    title = f"The query of {p.last}, layer 0, head 0: pair 0 turns by {angles[0]} radians" + (
        f", pair 1 by {angles[2]}" if len(pairs) > 2 else ""
    )
    return Table(title, (Column("query"), *columns(pairs)), rows)
