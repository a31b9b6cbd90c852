"""Token ids as a pass takes them."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING

import numpy as np

from gptscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from gptscope.model.spec import Spec


def checked_ids(spec: Spec, ids: Iterable[int]) -> NDArray[np.int64]:
    """The ids as an array [T], 1 <= T <= n_ctx.

    Raises:
        UsageError: there are none or too many, or one is outside the vocabulary.
    """
    tokens = in_vocabulary(spec, ids)
    if not len(tokens):
        raise UsageError("the text is empty: there is no token to look at")
    if len(tokens) > spec.n_ctx:
        raise UsageError(
            f"the text is {len(tokens)} tokens long, and this model reads {spec.n_ctx} at most",
            hint=f"give a shorter text, or the first {spec.n_ctx} tokens with --ids",
        )
    return tokens


def in_vocabulary(spec: Spec, ids: Iterable[int]) -> NDArray[np.int64]:
    """The ids as an array [T].

    Raises:
        UsageError: one is not a whole number, or outside the vocabulary.
    """
    try:
        tokens = [index(i) for i in ids]
    except TypeError:
        raise UsageError("a token id must be a whole number") from None
    for i in tokens:
        if not 0 <= i < spec.n_vocab:
            raise UsageError(
                f"token id {i} is outside the vocabulary: ids go from 0 to {spec.n_vocab - 1}"
            )
    return np.array(tokens, np.int64)
