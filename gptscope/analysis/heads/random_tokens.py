"""Random tokens, and the same again: what follows a token is known only from its first place."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.model.weights import Model

LENGTH = 50  # tokens of the half that is repeated, if nothing else is asked for
LEAST = 2  # with one token alone, it would follow itself


def longest(model: Model, *, bos: bool) -> int:
    """How many tokens fit twice into the context, after BOS if that stands first."""
    return (model.spec.n_ctx - bos) // 2


def n_plain(model: Model, most: int) -> int:
    """How many tokens are not special; `most` if there are as many or more."""
    return len(drawn(model, most, np.random.default_rng(0)))


def repeated(model: Model, n: int, seed: int, *, bos: bool) -> list[int]:
    """`n` different random tokens and the same once more, BOS first if so asked: 2n (+ 1) ids.

    Special tokens are left out. Where the vocabulary has fewer others than n, all of them are
    there, in random order.
    """
    half = drawn(model, n, np.random.default_rng(seed))
    return [*([model.bos_id] if bos and model.bos_id is not None else []), *half, *half]


def drawn(model: Model, n: int, rng: np.random.Generator) -> list[int]:
    """`n` different tokens that are not special, or all of them if there are fewer."""
    return list(islice(shuffled(model, rng), n))


def shuffled(model: Model, rng: np.random.Generator) -> Iterator[int]:
    """All tokens that are not special, in random order, looked up as they are asked for."""
    return (i for i in rng.permutation(model.spec.n_vocab).tolist() if is_plain(model, i))


def is_plain(model: Model, token_id: int) -> bool:
    """Whether a token stands for some text: no BOS, end or other special one, nor padding."""
    if token_id in (model.bos_id, *model.end_ids):
        return False
    if model.tokenizer is None:
        return True
    (token,) = model.tokenizer.tokens([token_id])
    return not token.special and bool(model.tokenizer.bytes_of(token_id))
