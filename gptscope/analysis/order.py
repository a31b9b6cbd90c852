"""The order experiment: what a head gives when the tokens are permuted.

A head that sees neither positions nor a mask gives the same lists, permuted as the tokens are.
Haviv, Ram, Press, Izsak and Levy 2022, "Transformer Language Models without Positional Encodings
Still Learn Positional Information", for what the mask alone tells.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.forward import residual_stream

if TYPE_CHECKING:
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]
Ids = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """How far a head's outputs are from being permuted as the tokens are."""

    positions: bool
    mask: bool
    difference: float  # the largest, of any number of any token
    scale: float  # the largest number without its sign
    same: bool  # the difference is no more than rounding


def order_cases(model: Model, ids: Ids, order: Ids, layer: int, head: int) -> tuple[Case, ...]:
    """The four cases: with and without the mask, with and without positions where there are any."""
    known = (False, True) if has_positions(model, layer) else (False,)
    return tuple(
        order_case(alone(model, layer, positions=positions, mask=mask), ids, order, head)
        for mask, positions in product((False, True), known)
    )


def order_case(model: Model, ids: Ids, order: Ids, head: int) -> Case:
    """A head of the first block on ids [T] and on ids[order]: max |out(ids[order]) - out[order]|.

    Outputs that agree to half of the digits agree: sums in another order differ in the last few.
    """
    before, after = (head_outputs(model, tokens, head) for tokens in (ids, ids[order]))
    difference = float(np.abs(after - before[order]).max())
    scale = float(np.abs(before).max())
    same = difference <= float(np.finfo(before.dtype).eps) ** 0.5 * scale
    return Case(has_positions(model, 0), model.spec.causal, difference, scale, same)


def head_outputs(model: Model, ids: Ids, head: int) -> Array:
    """What a head of the first block gives for ids [T]: [T, d_h]."""
    found: dict[str, Array] = {}

    def note(key: str, value: Array, layer: int | None = None) -> Array:  # noqa: ARG001
        if key == "out":
            found[key] = value[head]  # [H, T, d_h] -> [T, d_h]
        return value

    residual_stream(model, ids, note)
    return found["out"]


def alone(model: Model, layer: int, *, positions: bool, mask: bool) -> Model:
    """One block on the embeddings alone, with or without what tells the places apart."""
    block = model.blocks[layer]
    attention = block.attention
    if not positions:
        attention = replace(attention, turning=None, slopes=None)
    if not mask:
        attention = replace(attention, window=None)
    block = replace(block, attention=attention)
    return replace(
        model,
        spec=replace(model.spec, n_layers=1, causal=mask),
        position_table=model.position_table if positions else None,
        blocks=(block,),
    )


def has_positions(model: Model, layer: int) -> bool:
    """Whether places are told apart: by a table that is added, by turns, or by distances."""
    attention = model.blocks[layer].attention
    in_heads = attention.turning is not None or attention.slopes is not None
    return model.position_table is not None or in_heads


def derangement(n: int, seed: int) -> Ids:
    """An order of n > 1 things that moves every one: a single cycle, drawn evenly.

    It changes every text whose tokens are not all the same, since a cycle that put each token where
    an equal one stood would pass through all of them.
    """
    round_trip = np.random.default_rng(seed).permutation(n)
    order = np.empty(n, np.int64)
    order[round_trip] = np.roll(round_trip, 1)
    return order
