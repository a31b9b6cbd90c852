"""A model changed in one convention of its attention: heads, their order, how they turn.

Each function gives None where the change does not apply to the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.check.changes import first, in_attention
from gptscope.model.blocks import Blocks, outlines
from gptscope.model.positions import turning_speeds
from gptscope.model.weights import Attention, Linear, Turning

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gptscope.model.weights import Block, Model


def scale(model: Model) -> Model | None:
    """Scores over the root of the head width, or as they are."""
    usual = model.spec.d_head**-0.5
    own = first(model).attention.scale
    other = 1.0 if np.isclose(own, usual) else usual
    return in_attention(model, lambda a: replace(a, scale=other))


def scale_by_layer(model: Model) -> Model | None:
    """Scores of layer l divided by l + 1 as well."""
    blocks = model.blocks

    def make(layer: int) -> Block:
        block = blocks[layer]
        own = block.attention
        return replace(block, attention=replace(own, scale=own.scale / (layer + 1)))

    return replace(model, blocks=Blocks(make, outlines(blocks)))


def with_base(model: Model, base: float) -> Model | None:
    """Rotary positions with another base and without stretching."""
    turning = first(model).attention.turning
    if turning is None:
        return None
    speeds = turning_speeds(2 * len(turning.speeds), base)
    if np.allclose(speeds, turning.speeds):
        return None
    return in_attention(model, lambda a: replace(a, turning=a.turning and Turning(speeds)))


def base_of(turning: Turning) -> float | None:
    """The rotary base behind these speeds; None where they are stretched, or of one pair."""
    n = len(turning.speeds)
    if n < 2 or turning.stretched is not None:
        return None
    base = float(turning.speeds[1]) ** -n
    return base if np.allclose(turning_speeds(2 * n, base), turning.speeds) else None


def with_heads(model: Model, factor: float) -> Model | None:
    """The same widths of queries, keys and values in another number of heads.

    None for heads that are not alike: with slopes, norms of their own or stretched positions.
    """
    s, a = model.spec, first(model).attention
    n, groups, d_head = s.n_heads * factor, s.n_kv_heads * factor, s.d_head / factor
    alike = a.slopes is None and a.q_norm is None and a.k_norm is None
    if not alike or min(n, groups, d_head) < 1 or n % 1 or groups % 1 or d_head % 1:
        return None
    turning = None if a.turning is None else turned(a.turning, factor)
    if a.turning is not None and turning is None:
        return None
    spec = replace(s, n_heads=int(n), d_head=int(d_head), kv_heads=int(groups))
    more = factor**0.5
    return in_attention(
        replace(model, spec=spec),
        lambda a: replace(a, scale=1.0 if a.scale == 1 else a.scale * more, turning=turning),
    )


def turned(turning: Turning, factor: float) -> Turning | None:
    """The same base and share of a head, in heads of another width."""
    base, dims = base_of(turning), 2 * len(turning.speeds) / factor
    if base is None or dims % 2:
        return None
    return replace(turning, speeds=turning_speeds(int(dims), base))


def columns(part: Linear, order: NDArray[np.int64]) -> Linear:
    """The columns of a matrix, and of its bias, in another order."""
    return Linear(part.weight[:, order], None if part.bias is None else part.bias[order])


def pairs(model: Model, *, back: bool) -> Model | None:
    """Rotary pairs that lie side by side in the file where halves were taken, or the reverse."""
    turning, d_head = first(model).attention.turning, model.spec.d_head
    if turning is None:
        return None
    n = 2 * len(turning.speeds)
    halves = np.concatenate([np.arange(n).reshape(-1, 2).T.ravel(), np.arange(n, d_head)])
    order = np.argsort(halves) if back else halves

    def change(a: Attention) -> Attention:
        q, k = (
            columns(part, np.arange(part.weight.shape[1]).reshape(-1, d_head)[:, order].ravel())
            for part in (a.q, a.k)
        )
        return replace(a, q=q, k=k)

    return in_attention(model, change)


def fused(model: Model, *, back: bool) -> Model | None:
    """Queries, keys and values fused head by head where thirds were taken, or the reverse."""
    s = model.spec
    if s.n_kv_heads != s.n_heads or s.n_heads == 1:
        return None
    width = s.n_heads * s.d_head
    by_head = np.arange(3 * width).reshape(s.n_heads, 3, s.d_head).swapaxes(0, 1).ravel()
    order = np.argsort(by_head) if back else by_head

    def change(a: Attention) -> Attention:
        parts = (a.q, a.k, a.v)
        biases = [part.bias for part in parts if part.bias is not None]
        bias = np.concatenate(biases) if biases else None
        whole = Linear(np.concatenate([part.weight for part in parts], axis=1), bias)
        q, k, v = (columns(whole, part) for part in np.split(order, 3))
        return replace(a, q=q, k=k, v=v)

    return in_attention(model, change)


def queries_and_keys(model: Model) -> Model | None:
    """Queries taken for keys."""
    s = model.spec
    if s.n_kv_heads != s.n_heads:
        return None
    return in_attention(model, lambda a: replace(a, q=a.k, k=a.q, q_norm=a.k_norm, k_norm=a.q_norm))


def shares_keys(model: Model) -> bool:
    """Whether several heads, but not all, share keys and values."""
    return 1 < model.spec.n_kv_heads < model.spec.n_heads


def dealt(model: Model) -> Model | None:
    """Head h reading keys and values h mod G, and not h // (H / G)."""
    s, norm = model.spec, first(model).attention.k_norm
    if not shares_keys(model) or (norm is not None and norm.gain.shape[-1] != s.d_head):
        return None
    groups = np.arange(s.n_heads) % s.n_kv_heads
    single = replace(model, spec=replace(s, kv_heads=None))
    return in_attention(
        single,
        lambda a: replace(
            a, k=in_groups(a.k, groups, s.d_head), v=in_groups(a.v, groups, s.d_head)
        ),
    )


def reversed_groups(model: Model, *names: str) -> Model | None:
    """Keys or values, or both, of the last group given to the first heads, and so on."""
    s = model.spec
    if not shares_keys(model):
        return None
    groups = np.arange(s.n_kv_heads)[::-1]

    def change(a: Attention) -> Attention:
        made: dict[str, Any] = {k: in_groups(getattr(a, k), groups, s.d_head) for k in names}
        return replace(a, **made)

    return in_attention(model, change)


def in_groups(part: Linear, groups: NDArray[np.int64], d_head: int) -> Linear:
    """The columns of whole groups, in this order."""
    order = np.arange(part.weight.shape[1]).reshape(-1, d_head)[groups]
    return columns(part, order.ravel())


def transposed(model: Model, *names: str) -> Model | None:
    """Those matrices of attention that are square turned; where several are named, two at least."""
    shapes = {name: getattr(first(model).attention, name).weight.shape for name in names}
    square = [name for name, (a, b) in shapes.items() if a == b]
    if len(square) < min(2, len(names)):
        return None

    def change(a: Attention) -> Attention:
        made: dict[str, Any] = {name: getattr(a, name) for name in square}
        turned: dict[str, Any] = {k: Linear(v.weight.T, v.bias) for k, v in made.items()}
        return replace(a, **turned)

    return in_attention(model, change)


def without_windows(model: Model) -> Model | None:
    """Every token sees all earlier ones."""
    if all(block.attention.window is None for block in outlines(model.blocks)):
        return None
    return in_attention(model, lambda a: replace(a, window=None))
