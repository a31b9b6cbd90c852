"""What must be said beside the scores of heads."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gptscope.analysis.heads.copying import TOP
from gptscope.analysis.heads.scores import SHARES
from gptscope.analysis.heads.verdict import ERRORS, SHARE, TIMES
from gptscope.model.blocks import outlines

if TYPE_CHECKING:
    from gptscope.commands.heads_asked import Draw, Score
    from gptscope.commands.heads_found import Found, Weights
    from gptscope.model.weights import Model

VERDICT = (
    f"A verdict stands where the share is at least {SHARE:g}, at least {TIMES} times chance, and "
    f"at least {ERRORS} standard errors above it"
)
NO_TEXT = "There is no text: all is measured on random tokens and on the weights"
TWICE = "No token of this text comes twice, so there is nothing to measure on it"
ALONE = "This text is one token, which can look at itself alone: there is nothing to measure on it"
NOTHING = "What heads see is too short: there is nothing to measure on"
RULE = f"{VERDICT}; else the strongest head is shown without one."
RULE_OF_COPIES = f"{VERDICT}; the share is that of tokens among {TOP}."
MEANING = (
    "Each number is the mean of what a row puts there, over the rows that see such a token and "
    "another one. Chance is a head that spreads evenly over what it sees. Shares can overlap: for "
    "token 1, the first token is the one before."
)
ENTROPY = "Rows of the grids are layer.head. Entropy is a share of the largest that there can be."
NO_ROOM = "There is no room for random tokens, so that there is no verdict on where heads look."
UNASKED = "Without random tokens there is no verdict on where heads look."
PAIRS = (
    "Composition: the norm of the product of what one head writes and what a later one reads by "
    "(Q, K) or moves (V), over their norms (Elhage et al. 2021). Chance: the root mean square if "
    "one of the two is turned at random, 1/sqrt(width)."
)


def passes(draw: Draw) -> str:
    """Which random tokens were read."""
    bos = "BOS first" if draw.bos else "without BOS"
    return f"{draw.n} random tokens and the same again, {bos}; {draw.seeds} seeds"


def random(draw: Draw, score: Score) -> str:
    """Which random tokens were read, and how sure a score on them is."""
    error = "" if score.error is None else f"; standard errors up to {score.error.max():.2g}"
    return f"Random tokens: {passes(draw)}{error}."


def rows(found: Found) -> str:
    """How many rows of the text the scores are means over; nothing where none does."""
    if not found.on_text("entropy").rows.any():
        return ""
    each = [f"{name} {found.on_text(name).rows.max():,}" for name in SHARES]
    return f"Rows of this text that count: {', '.join(each)}."


def nothing(found: Found, *names: str) -> str:
    """Why these scores cannot be measured on the text."""
    if len(found.ids) == 1:
        return ALONE
    of_repeats = {*names} <= {"duplicate", "induction"}
    return TWICE if of_repeats and len({*found.ids}) == len(found.ids) else f"{NOTHING} this text"


def more_named(counts: dict[str, int], shown: int) -> str:
    """How many of each kind are not shown."""
    cut = [f"{shown} of {n} heads for {word}" for word, n in counts.items() if n > shown]
    most = max(counts.values(), default=0)
    return f"Shown are {', '.join(cut)}; --top {most} shows all." if cut else ""


def of_weights(weights: Weights, *, both: bool) -> list[str]:
    """What the copying scores mean, the better one or both."""
    made = copying(weights)
    return [text for text in (made, eigen(weights) if both or not made else "") if text]


def copying(weights: Weights) -> str:
    """What it means how often a token raises itself; nothing where that was not measured."""
    found = weights.copying
    if found is None:
        return ""
    return (
        f"Copying (among {TOP}): of {found.n:,} random tokens, how many are among the {TOP} of all "
        f"{found.n_vocab:,} that they raise most if the head reads them, from their embedding "
        "through OV to the logits; ties do not count. Wang et al. 2022 take names in prompts, as "
        "they are after block 0; what block 0 does is left out here."
    )


def eigen(weights: Weights) -> str:
    """What the eigenvalues mean, and how far those of random heads go."""
    spread = weights.eigen.spread
    chance = f" Random heads have 0 on the whole, with a standard deviation of {spread:.2g}."
    return (
        "Eigen: sum of the eigenvalues of the map from all tokens to all logits over the sum of "
        "their sizes (Elhage et al. 2021): 1 if every one is positive, -1 if negative, 0 of a head "
        f"that writes nothing.{chance if math.isfinite(spread) else ''} It earns no verdict."
    )


def left_out(model: Model) -> str:
    """What the products of weights leave out."""
    attention = [block.attention for block in outlines(model.blocks)]
    out = ["scales and shifts of norms (gains are in)", "biases"]
    if model.spec.positions != "none":
        out.append("positions")
    if any(one.q_norm is not None for one in attention):
        out.append("norms of queries and keys")
    if model.spec.wiring in ("post_norm", "norm_in_stream"):
        out.append("norms in the stream")
    return f"Of the weights alone: {', '.join(out)} are left out."
