"""How surprised a model is by every token of a text, of any length: windows that overlap."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gptscope.analysis.information import entropies
from gptscope.engine.forward import residual_stream, unembed
from gptscope.engine.hook_points import HOOK_POINTS
from gptscope.engine.ids import checked_ids, in_vocabulary
from gptscope.engine.step import looks_at, untouched
from gptscope.errors import UsageError
from gptscope.model.blocks import outlines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from gptscope.engine.step import Hook
    from gptscope.model.weights import Model

    Array = NDArray[np.floating[Any]]
    Hooks = Callable[[int], Hook]  # of a pass over so many tokens

AT_ONCE = 1 << 21  # logits that are looked at in float64
LONGEST_WINDOW = 4096  # tokens, where nobody asks for more: a window takes memory as it is long
BIT = math.log(2)  # nats


@dataclass(frozen=True, eq=False)
class Surprise:
    """What a model made of each token that something stands before, in the order of the text.

    Where logits are not numbers, nats and entropy are NaN, the rank is 0 and the best id -1.
    """

    at: NDArray[np.int64]  # position
    nats: NDArray[np.float64]  # -ln p of the token, given those before it
    rank: NDArray[np.int64]  # 1 for the likeliest; among equals the lower id comes first
    best: NDArray[np.int64]  # the id of the likeliest
    best_nats: NDArray[np.float64]
    entropy: NDArray[np.float64]  # of the prediction, in nats: the surprise that it expects

    def __len__(self) -> int:
        """How many tokens."""
        return len(self.at)

    @property
    def bits(self) -> NDArray[np.float64]:
        """-log2 p of each token."""
        return self.nats / BIT

    @property
    def n_wrong(self) -> int:
        """How many tokens are rated by logits that are not numbers."""
        return int((self.rank == 0).sum())

    @property
    def total(self) -> float:
        """Bits of all tokens together."""
        return math.fsum(self.nats) / BIT

    @property
    def mean(self) -> float:
        """Nats per token; NaN where there is none."""
        return math.fsum(self.nats) / len(self) if len(self) else math.nan

    @property
    def perplexity(self) -> float:
        """exp(nats per token). Jelinek et al. 1977."""
        return float(np.exp(self.mean))


class Window(NamedTuple):
    """A part of the ids that goes through the model at once, and the tokens it says something of.

    The model is fed what stands before the text, then ids[start:stop]; ids[first:end] are rated,
    the last of which it need not have been fed.
    """

    start: int
    stop: int
    first: int
    end: int


def windows(n: int, prefix: int, size: int, overlap: int) -> list[Window]:
    """Windows of at most `size` tokens over n, the first `prefix` of which begin each of them.

    Two in a row share exactly `overlap` tokens, and each rates the token just after it as well.
    So every token but the first is rated once, after `overlap` + 1 tokens of the text or more, or
    after all that there are.

    Raises:
        UsageError: the size or the overlap leaves nothing to rate.
    """
    room = size - prefix
    if room < 1:
        raise UsageError(f"a window of {size} tokens is too short: {prefix + 1} is the least")
    if not 0 <= overlap < room:
        raise UsageError(
            f"an overlap of {overlap} tokens cannot be met: windows of {size} can overlap by "
            f"0 to {room - 1}"
        )
    found, start, first = list[Window](), prefix, max(prefix, 1)
    while first < n:
        stop = min(start + room, n)
        end = min(stop + 1, n)
        found.append(Window(start, stop, first, end))
        start, first = stop - overlap, end
    return found


def usual_overlap(size: int, prefix: int) -> int:
    """Half a window, as far as one can overlap by that."""
    return max(0, min(size // 2, size - prefix - 1))


def n_fed(window: Window, prefix: int) -> int:
    """How many tokens go through the model."""
    return prefix + window.stop - window.start


def check_edits(plan: Sequence[Window], prefix: int, hooks: Hooks) -> None:
    """Whether the hooks can be made for a pass of every length.

    Raises:
        UsageError: one cannot; the first window of that length is named.
    """
    lengths = {n_fed(window, prefix): i for i, window in reversed(list(enumerate(plan)))}
    for n, i in sorted(lengths.items(), key=lambda one: one[1]):
        try:
            hooks(n)
        except UsageError as error:
            if len(plan) == 1:
                raise
            which = f"window {i + 1} of {len(plan)} has {n} tokens"
            hint = error.hint or "an edit is made in each window, whose positions count from 0"
            raise UsageError(f"{which}: {error.message}", hint) from None


def turned_by_length(model: Model, n: int) -> bool:
    """Whether n tokens at once are turned at other speeds than fewer: numbers depend on n."""
    turnings = (block.attention.turning for block in outlines(model.blocks))
    return any(one is not None and one.speeds_at(n) != one.speeds_at(1) for one in turnings)


def surprise(
    model: Model,
    ids: Sequence[int],
    plan: Sequence[Window],
    prefix: int = 0,
    hooks: Hooks = lambda _n: untouched,
    tick: Callable[[int], Any] = lambda _n: None,
) -> Surprise:
    """What the model makes of the tokens of all windows; `tick` is told how many were rated.

    Raises:
        UsageError: an id is outside the vocabulary, a window longer than the model reads, or an
            edit does not fit one.
    """
    every, made = in_vocabulary(model.spec, ids), [nothing()]
    check_edits(plan, prefix, hooks)
    for window in plan:
        made += rated(model, every, window, prefix, hooks)
        tick(window.end - window.first)
    return Surprise(*(np.concatenate([getattr(m, f.name) for m in made]) for f in fields(Surprise)))


def losses(model: Model, ids: Sequence[int]) -> NDArray[np.float64]:
    """-ln p of every token but the first, given those before it, in one pass: [T - 1], in nats.

    Raises:
        UsageError: no ids, too many, or one outside the vocabulary.
    """
    n = len(checked_ids(model.spec, ids))
    return surprise(model, ids, windows(n, 0, n, 0)).nats


def rated(
    model: Model, ids: NDArray[np.int64], window: Window, prefix: int, hooks: Hooks
) -> Iterator[Surprise]:
    """One pass, some rows of its logits at a time."""
    start, stop, first, end = window
    fed = checked_ids(model.spec, [*ids[:prefix].tolist(), *ids[start:stop].tolist()])
    hook = hooks(len(fed))
    x = residual_stream(model, fed, hook)  # [T] -> [T, d]
    whole = any(looks_at(hook, point.key, None) for point in HOOK_POINTS if point.at_the_end)
    logits = unembed(model, x, hook) if whole else None  # a hook must see all rows at once
    before = prefix - start - 1  # row of the token before position p: p + before
    step = max(1, AT_ONCE // model.spec.n_vocab)
    for low in range(first, end, step):
        high = min(low + step, end)
        part = slice(low + before, high + before)
        rows = unembed(model, x[part], hook) if logits is None else logits[part]
        yield of_rows(rows, ids[low:high], low)


def of_rows(logits: Array, came: NDArray[np.int64], at: int = 0) -> Surprise:
    """What rows of logits [n, V] say of the tokens that came [n], from position `at` on.

    -ln softmax(z)[i] = ln(sum exp z) - z[i], in float64: exact, however unlikely the token is.
    """
    n, rows = len(logits), np.arange(len(logits))
    own = logits[rows, came][:, None]  # [n, 1]
    ahead, equals = np.count_nonzero(logits > own, axis=1), logits == own
    for i in np.flatnonzero(np.count_nonzero(equals, axis=1) > 1):
        ahead[i] += np.count_nonzero(equals[i, : came[i]])
    best = logits.argmax(axis=1)
    with np.errstate(invalid="ignore"):
        z = logits.astype(np.float64)
        z -= z[rows, best][:, None]
        p = np.exp(z)
        total = p.sum(axis=1)
        entropy = entropies(z, p, total)
        top, mine = (logits[rows, i].astype(np.float64) for i in (best, came))
        nats = np.log(total) + (top - mine)
    wrong = np.isnan(total)
    rank, guess = np.where(wrong, 0, ahead + 1), np.where(wrong, -1, best)
    return Surprise(at + np.arange(n), nats, rank, guess, np.log(total), entropy)


def nothing() -> Surprise:
    """Of no token."""
    whole, real = np.zeros(0, np.int64), np.zeros(0)
    return Surprise(whole, real, whole, whole, real, real)
