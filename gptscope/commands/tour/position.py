"""Card 3: where a token stands."""

from __future__ import annotations

from typing import NamedTuple

from gptscope.analysis.info import ranges
from gptscope.commands.tour.card import NUMBERS, Card, Walk, columns, numbers
from gptscope.model.blocks import outlines
from gptscope.model.weights import Turning
from gptscope.view import Column, Part, Table

FAR = (1, 10, 100)  # tokens of distance


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
        "number i + {half}, by an angle that grows with the position, so that a score depends on "
        "the distance.",
        "There, rows of sines and cosines are added; turning came later (Su et al. 2021).",
        "q_t = R(t) W_q x_t and k_t = R(t) W_k x_t, with R(t) a turn by t times each pair's speed",
        "trace.layers[{layer}].heads[0].q",
    ),
    "alibi": Words(
        "Nothing is added here: in every head, a score loses the head's slope for every token "
        "between the one that reads and the one that is read. What is near counts more.",
        "There, rows of sines and cosines are added; this came later (ALiBi: Press, Smith and "
        "Lewis 2022), so that texts may be longer than those of the training.",
        "score_ts = q_t k_s' / sqrt(d_h) - slope (t - s)",
        "model.blocks[0].attention.slopes",
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


def card(p: Walk) -> Card:
    """A table that is added, a turn, or nothing."""
    s, t = p.spec, p.n_tokens
    words = WORDS[s.positions]
    if s.positions == "rotary":
        words = of_turns(p, words)
    if s.positions == "none" and not s.causal:
        words = words._replace(what=UNMASKED)
    shape = f"[T, d] = [{t}, {s.d_model}]"
    shapes = {
        "rotary": f"q, k [H, T, d_h] = [{s.n_heads}, {t}, {s.d_head}], turned in pairs",
        "alibi": f"scores [H, T, T] = [{s.n_heads}, {t}, {t}]; a slope for each of H heads",
        "none": f"{shape}, unchanged",
    }
    normed = p.model.position_table is not None and p.model.embed_norm is not None
    of_kind = {"rotary": turned, "alibi": sloped}
    return Card(
        title="Position",
        what=words.what,
        paper=words.paper,
        shapes=shapes.get(s.positions, f"{shape} + {shape}; the longest text is {s.n_ctx:,}"),
        formula=f"Norm({words.formula})" if normed else words.formula,
        python="trace.embeddings" if normed else words.python,
        values=(of_kind.get(s.positions, added)(p),),
    )


def turning_layer(p: Walk) -> int:
    """The first layer whose queries and keys turn."""
    return next(i for i, b in enumerate(outlines(p.model.blocks)) if b.attention.turning)


def of_turns(p: Walk, words: Words) -> Words:
    """The words with what turns in this model: how much of a head, in which layers, stretched."""
    turning, d = turnings(p)[turning_layer(p)], p.spec.d_head
    pairs = len(turning.speeds) if turning else 0
    still = [i for i, one in enumerate(turnings(p)) if one is None]
    half = "d_h/2" if 2 * pairs == d else str(pairs)
    more = "" if 2 * pairs == d else f" Only the first {2 * pairs} of {d} numbers turn."
    if still:
        more += f" In layer{'s' * (len(still) > 1)} {ranges(still)} nothing turns."
    if p.spec.pairs == "neighbours":
        more += " In the file the two lie side by side."
    if turning and turning.factor != 1:
        more += f" Turned lists are longer by {turning.factor:.4g} (Peng et al. 2023)."
    return words._replace(
        what=words.what.format(half=half) + more,
        python=words.python.format(layer=turning_layer(p)),
    )


def turnings(p: Walk) -> list[Turning | None]:
    """How the heads of each layer turn."""
    return [block.attention.turning for block in outlines(p.model.blocks)]


def sloped(p: Walk) -> Part:
    """The slope of each head, and what it takes off."""
    slopes = p.model.blocks[0].attention.slopes or ()
    names = [f"off at distance {k}" for k in FAR]
    heads = (Column("head", "id"), Column("slope", "number"))
    rows = [(h, slope, *(slope * k for k in FAR)) for h, slope in enumerate(slopes)]
    title = "What is taken off from a score"
    return Table(title, (*heads, *(Column(name, "length") for name in names)), rows)


def added(p: Walk) -> Part:
    """The rows of the last token and their sum."""
    last = p.n_tokens - 1
    names = {
        "token_embeddings": "token row",
        "position_embeddings": f"row of position {last}",
        "embeddings": "sum" if p.model.embed_norm is None else "sum, normed",
    }
    rows = [
        (name, *p.trace.values[key, None][last][:NUMBERS])
        for key, name in names.items()
        if (key, None) in p.trace.values
    ]
    return Table(f"The first numbers of {p.last}", (Column("row"), *numbers(p.spec.d_model)), rows)


def turned(p: Walk) -> Part:
    """A query before and after its turn, with the partners that turn together side by side."""
    layer = turning_layer(p)
    head, turning = p.trace.layers[layer].heads[0], turnings(p)[layer]
    speeds = turning.speeds_at(p.n_tokens) if turning else ()
    n, t = len(speeds), p.n_tokens - 1
    pairs = [j for i in range(min(n, NUMBERS // 2)) for j in (i, i + n)]
    angles = [f"{t * speeds[i % n]:.3g}" for i in pairs]
    rows = [
        ("before", *head.q_before_rope[-1][pairs]),
        ("after", *head.q[-1][pairs]),
    ]
    title = f"The query of {p.last}, layer {layer}, head 0: pair 0 turns by {angles[0]} radians" + (
        f", pair 1 by {angles[2]}" if len(pairs) > 2 else ""
    )
    return Table(title, (Column("query"), *columns(pairs)), rows)
