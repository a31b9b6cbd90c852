"""From logits to the next token: temperature, then top-k, then top-p, then one draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.ops import softmax
from gptscope.errors import ModelError, UsageError

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Sampling:
    """How the next token is chosen; each step renormalises what it keeps.

    Top-k: Fan, Lewis and Dauphin 2018. Top-p: Holtzman et al. 2020.
    """

    temperature: float = 1.0  # 0 takes the likeliest
    top_k: int | None = None  # the k likeliest
    top_p: float | None = None  # the fewest that reach p together

    def __post_init__(self) -> None:
        """Refuse what has no meaning.

        Raises:
            UsageError: temperature below 0 or not finite, k below 1, p outside (0, 1].
        """
        if not 0 <= self.temperature < float("inf"):
            raise UsageError(
                f"temperature {self.temperature} must be 0 (greedy) or more, and finite"
            )
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(f"top-k {self.top_k} must be 1 or more")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageError(f"top-p {self.top_p} must be above 0 and at most 1")


def probabilities(
    logits: Array, temperature: float = 1.0, top_k: int | None = None, top_p: float | None = None
) -> Array:
    """Logits [V] -> probabilities [V]: softmax(logits / temperature), then top-k, then top-p.

    Ties go to the lower id; temperature 0 gives the likeliest token probability 1.

    Raises:
        UsageError: a setting out of its range.
        ModelError: a logit is NaN or +infinity.
    """
    return distribution(logits, Sampling(temperature, top_k, top_p))


def distribution(logits: Array, how: Sampling) -> Array:
    """The probabilities [V] that these settings draw from, in float64.

    Raises:
        UsageError: the logits are not one list.
        ModelError: a logit is NaN or +infinity.
    """
    return list(stages(logits, how).values())[-1]


def stages(logits: Array, how: Sampling) -> dict[str, Array]:
    """The probabilities [V] after each step that was asked for: softmax or greedy, top-k, top-p.

    Raises:
        UsageError: the logits are not one list.
        ModelError: a logit is NaN or +infinity.
    """
    logits = np.asarray(logits)
    if logits.ndim != 1:
        raise UsageError(f"logits are one list [V], not of the shape {list(logits.shape)}")
    if not np.isfinite(logits.max()):  # -inf, for a token that may not come, is no fault
        raise ModelError("the logits hold NaN or infinity, so nothing can be drawn from them")
    if how.temperature == 0:
        one_hot = np.zeros(len(logits))
        one_hot[np.argmax(logits)] = 1.0
        return {"greedy": one_hot}
    exact = logits.astype(np.float64)
    with np.errstate(over="ignore"):  # a tiny temperature: all but the best become -inf
        p = softmax((exact - exact.max()) / how.temperature)
    made = {"softmax": p}
    if how.top_k is not None and how.top_k < len(p):
        p = made["top-k"] = _keep(p, ranked(exact, how.top_k))
    if how.top_p is not None and how.top_p < 1:
        order = ranked(exact)
        reached = np.searchsorted(np.cumsum(p[order]), how.top_p)
        made["top-p"] = _keep(p, order[: reached + 1])  # the token that reaches p stays
    return made


def ranked(scores: Array, count: int | None = None) -> NDArray[np.int64]:
    """Ids from high to low, the lower id first among equals; the first `count` of them."""
    if count is None or count >= len(scores):
        return np.argsort(-scores, kind="stable")
    limit = np.partition(scores, len(scores) - count)[len(scores) - count]
    high = np.flatnonzero(scores >= limit)
    return high[np.argsort(-scores[high], kind="stable")][:count]


def rank(scores: Array, token_id: int) -> int:
    """1 for the likeliest [V]; among equals the lower id comes first, as in `ranked`."""
    above = np.count_nonzero(scores > scores[token_id])
    return int(above + np.count_nonzero(scores[:token_id] == scores[token_id])) + 1


def create_rng(seed: int) -> np.random.Generator:
    """A source of random numbers; the same seed draws the same tokens.

    Raises:
        UsageError: the seed is below 0.
    """
    if seed < 0:
        raise UsageError(f"seed {seed} must be 0 or more")
    return np.random.default_rng(seed)


def sample(p: Array, rng: np.random.Generator) -> int:
    """One id, drawn with the probabilities [V]."""
    totals = np.cumsum(p, dtype=np.float64)
    drawn = np.searchsorted(totals, rng.random() * totals[-1], side="right")
    return int(min(drawn, np.flatnonzero(p)[-1]))  # rounding must not reach past the last


def _keep(p: Array, ids: NDArray[np.int64]) -> Array:
    kept = np.zeros_like(p)
    kept[ids] = p[ids] / p[ids].sum()
    return kept
