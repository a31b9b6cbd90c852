"""Where a head of a known kind would look, as a matrix [T, T], and how much of it one does.

Row i reads, column j is read. The patterns of previous tokens, duplicates and induction are those
of TransformerLens (`head_detector.py`). Its `similarity`, and `stripe` of its demos, are here for
the comparison with it alone: `gptscope heads` shows `scores`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Array = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]


def previous(ids: Sequence[int]) -> Mask:
    """The token before: j = i - 1, [T, T]; `get_previous_token_head_detection_pattern`."""
    return np.eye(len(ids), k=-1, dtype=np.bool_)


def itself(ids: Sequence[int]) -> Mask:
    """The token itself: j = i, [T, T]."""
    return np.eye(len(ids), dtype=np.bool_)


def first(ids: Sequence[int]) -> Mask:
    """The first token, where many heads rest: j = 0, [T, T].

    Xiao et al. 2023, "Efficient Streaming Language Models with Attention Sinks", section 3.1.
    """
    mask = np.zeros((len(ids), len(ids)), np.bool_)
    mask[:, 0] = True
    return mask


def duplicate(ids: Sequence[int]) -> Mask:
    """All earlier places of the same token: j < i, [T, T].

    `get_duplicate_token_head_detection_pattern`; Wang et al. 2022, "Interpretability in the Wild",
    section 3.
    """
    tokens = np.asarray(ids)
    return np.tril(tokens[:, None] == tokens, k=-1)


def induction(ids: Sequence[int]) -> Mask:
    """All tokens that stand after an earlier place of the same token: j <= i, [T, T].

    Where a token stands twice in a row, the second of them is such a token for itself.
    `get_induction_head_detection_pattern`; Olsson et al. 2022, "In-context Learning and Induction
    Heads", section "Definition of Induction Heads".
    """
    return np.pad(duplicate(ids)[:, :-1], ((0, 0), (1, 0)))


PATTERNS: Mapping[str, Callable[[Sequence[int]], Mask]] = {
    "previous": previous,
    "itself": itself,
    "first": first,
    "duplicate": duplicate,
    "induction": induction,
}


def similarity(
    weights: Array,
    pattern: Mask,
    *,
    exclude_bos: bool = False,
    exclude_current_token: bool = False,
) -> Array:
    """sum(weights * pattern) / sum(weights), over all rows, whether they have a target or not.

    [..., T, T] and [T, T] -> [...]. The measure "mul" of TransformerLens' `detect_head`. Its
    options set the first column, or the diagonal, of the weights to 0 in both sums. No command
    shows it: it is for the comparison with TransformerLens.
    """
    kept = np.ones(pattern.shape, np.bool_)
    if exclude_bos:
        kept[:, 0] = False
    if exclude_current_token:
        np.fill_diagonal(kept, val=False)
    left = np.where(kept, weights, 0)
    score: Array = (left * pattern).sum((-2, -1)) / left.sum((-2, -1))
    return score


def stripe(weights: Array, back: int) -> Array:
    """The mean of the weights that are `back` tokens back, over all T - back of them: [...].

    With back = n - 1, on n random tokens and the same again, this is the induction score of
    TransformerLens' demos: `pattern.diagonal(dim1=-2, dim2=-1, offset=1 - n)`. Its first row,
    and the one after it where BOS stands first, have no earlier duplicate, and count all the same.
    No command shows it: it is for the comparison with TransformerLens.
    """
    diagonal = weights.diagonal(-back, axis1=-2, axis2=-1)
    found: Array = diagonal.mean(-1)
    return found
