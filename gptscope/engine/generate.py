"""One token after another, with the reason for stopping."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.cache import Cache
from gptscope.engine.edits import Edits
from gptscope.engine.forward import residual_stream, unembed
from gptscope.engine.ids import checked_ids
from gptscope.engine.sampling import Sampling, create_rng, distribution, ranked, sample
from gptscope.engine.step import untouched
from gptscope.errors import UsageError
from gptscope.model.blocks import kept, outlines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.random import Generator

    from gptscope.engine.edits import Given
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]
CANDIDATES = 5


@dataclass(frozen=True)
class Draw:
    """One step: what could have come, and what came."""

    id: int
    probability: float  # that this token had among those drawn from
    candidates: tuple[tuple[int, float], ...]  # the likeliest, at most five
    stopped: str | None  # why there is no next step: "asked", "end token" or "context full"


@dataclass(frozen=True)
class Generation:
    """The new tokens of one run."""

    prompt: tuple[int, ...]
    draws: tuple[Draw, ...]

    @property
    def ids(self) -> tuple[int, ...]:
        """The new ids, an end token included."""
        return tuple(draw.id for draw in self.draws)

    @property
    def stopped(self) -> str | None:
        """Why it ended."""
        return self.draws[-1].stopped


def generate(  # noqa: PLR0913 - the settings that every library calls by these names
    model: Model,
    ids: Iterable[int] = (),
    max_new_tokens: int = 40,
    *,
    temperature: float = 0.8,
    top_k: int | None = 40,
    top_p: float | None = None,
    seed: int = 0,
    edits: Iterable[Given] = (),
) -> Generation:
    """Continue token ids by up to `max_new_tokens`; without ids, begin at the model's BOS token.

    `edits` change values in every pass, as those of `trace` do.

    Raises:
        UsageError: a setting out of its range, ids that leave no room, or an edit that cannot be
            made.
    """
    how = Sampling(temperature, top_k, top_p)
    prompt, changes = prompt_ids(model, ids), Edits(model, edits)
    return Generation(prompt, tuple(draws(model, prompt, max_new_tokens, how, seed, changes)))


def prompt_ids(model: Model, ids: Iterable[int]) -> tuple[int, ...]:
    """The ids to start from: those given, or the model's BOS token.

    Raises:
        UsageError: there are none, and the model has no BOS token; or they leave no room.
    """
    start = tuple(ids)
    if not start and model.bos_id is None:
        raise UsageError("this model has no BOS token to begin with: give a text")
    start = start or (model.bos_id or 0,)
    if len(checked_ids(model.spec, start)) == model.spec.n_ctx:
        raise UsageError(f"the text fills all {model.spec.n_ctx} places that this model has")
    return start


def draws(
    model: Model,
    prompt: tuple[int, ...],
    max_new_tokens: int,
    how: Sampling,
    seed: int,
    edits: Edits | None = None,
) -> Iterator[Draw]:
    """The steps one by one, as they are made; keys and values of earlier tokens are kept.

    Raises:
        UsageError: a setting out of its range, before the first step.
    """
    if max_new_tokens < 1:
        raise UsageError(f"max-new-tokens {max_new_tokens} must be 1 or more")
    rng = create_rng(seed)
    edits = edits or Edits(model, ())
    for more in range(min(2, max_new_tokens)):  # what fits a longer text as well fits any
        edits.hook(len(prompt) + more, untouched)  # says what does not fit before the first step
    return _draws(Passes(model, edits), prompt, max_new_tokens, how, rng)


def _draws(
    passes: Passes, prompt: tuple[int, ...], max_new_tokens: int, how: Sampling, rng: Generator
) -> Iterator[Draw]:
    model, ids = passes.model, np.array(prompt, np.int64)
    for step in range(max_new_tokens):
        p = distribution(passes.logits_after(ids), how)
        drawn = sample(p, rng)
        likely = tuple((int(i), float(p[i])) for i in ranked(p, CANDIDATES) if p[i] > 0)
        full, last = len(ids) + 1 == model.spec.n_ctx, step + 1 == max_new_tokens
        stopped = why(ended=drawn in model.end_ids, last=last, full=full)
        yield Draw(drawn, float(p[drawn]), likely, stopped)
        if stopped:
            return
        ids = np.append(ids, drawn)


class Passes:
    """Passes over a text that grows; what was computed for earlier tokens is kept if it holds."""

    def __init__(self, model: Model, edits: Edits) -> None:
        """No token was seen yet."""
        self.model, self.edits = replace(model, blocks=kept(model.blocks)), edits
        cached = may_be_cached(model) and edits.by_row
        self.cache = Cache(model.spec, model.dtype) if cached else None
        self.last_alone = edits.by_row or not edits.at_the_end

    def logits_after(self, ids: NDArray[np.int64]) -> Array:
        """The logits after the last of these ids [V]."""
        new = ids[self.cache.length :] if self.cache else ids
        hook = self.edits.hook(len(new), untouched)
        x = residual_stream(self.model, new, hook, self.cache)
        last: Array = unembed(self.model, x[-1:] if self.last_alone else x, hook)[-1]
        return last


def may_be_cached(model: Model) -> bool:
    """Whether what was computed for a token still holds when the text grows.

    It does not where a token sees what comes after it, nor where a longer text turns all keys
    otherwise.
    """
    turnings = (block.attention.turning for block in outlines(model.blocks))
    return model.spec.causal and not any(t is not None and t.stretched for t in turnings)


def why(*, ended: bool, last: bool, full: bool) -> str | None:
    """The reason for stopping, if there is one."""
    if ended:
        return "end token"
    if last:
        return "asked"
    return "context full" if full else None
