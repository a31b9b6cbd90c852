"""A model changed in one convention; blocks are changed when they are made, one at a time.

Each function gives None where the change does not apply to the model.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.model.blocks import Blocks, outlines
from gptscope.model.positions import turning_speeds
from gptscope.model.weights import Attention, Linear, Norm, Turning, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gptscope.model.weights import Block, Model


def in_order(model: Model, order: list[int]) -> Model:
    """The same blocks in another order."""
    blocks, shapes = model.blocks, outlines(model.blocks)
    made = Blocks(lambda layer: blocks[order[layer]], [shapes[layer] for layer in order])
    return replace(model, blocks=made)


def by_block(model: Model, change: Callable[[Block], Block]) -> Model:
    """Every block changed."""
    blocks = model.blocks
    return replace(model, blocks=Blocks(lambda i: change(blocks[i]), outlines(blocks)))


def in_attention(model: Model, change: Callable[[Attention], Attention]) -> Model:
    """The attention of every block changed."""
    return by_block(model, lambda block: replace(block, attention=change(block.attention)))


def first(model: Model) -> Block:
    """The shapes and choices of a block."""
    return outlines(model.blocks)[0]


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


def gains(model: Model, more: float) -> Model:
    """All gains of the norms with a number added."""

    def change(norm: Any) -> Any:  # noqa: ANN401
        return replace(norm, gain=norm.gain + norm.gain.dtype.type(more))

    def block(whole: Block) -> Block:
        norms = {f.name: getattr(whole, f.name) for f in fields(whole)}
        return replace(whole, **{k: change(v) for k, v in norms.items() if isinstance(v, Norm)})

    last = None if model.ln_final is None else change(model.ln_final)
    return replace(by_block(model, block), ln_final=last)


def shifted(model: Model, by: int) -> Model:
    """Position i given row i + `by` of the table."""
    table = model.position_table
    assert table is not None  # noqa: S101 - asked before
    at = np.clip(np.arange(model.spec.n_ctx) + by, 0, table.shape[0] - 1)
    return replace(model, position_table=rows(table, at, model.dtype))


def with_base(model: Model, base: float) -> Model | None:
    """Rotary positions with another base and without stretching."""
    turning = first(model).attention.turning
    if turning is None:
        return None
    speeds = turning_speeds(2 * len(turning.speeds), base)
    if np.allclose(speeds, turning.speeds):
        return None
    return in_attention(model, lambda a: replace(a, turning=a.turning and Turning(speeds)))


def with_heads(model: Model, n: float) -> Model | None:
    """The same width in another number of heads."""
    s, attention = model.spec, first(model).attention
    width = s.n_heads * s.d_head
    simple = attention.turning is None and attention.slopes is None and attention.q_norm is None
    if n < 1 or n % 1 or width % n or s.n_kv_heads != s.n_heads or not simple:
        return None
    d_head = width // int(n)
    factor = (s.d_head / d_head) ** 0.5
    spec = replace(s, n_heads=int(n), d_head=d_head, kv_heads=None)
    return in_attention(
        replace(model, spec=spec),
        lambda a: replace(a, scale=1.0 if a.scale == 1 else a.scale * factor),
    )


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


def transposed(model: Model, *names: str) -> Model | None:
    """Square matrices of attention turned."""
    parts = [getattr(first(model).attention, name).weight.shape for name in names]
    if any(a != b for a, b in parts):
        return None

    def change(a: Attention) -> Attention:
        made: dict[str, Any] = {name: getattr(a, name) for name in names}
        turned: dict[str, Any] = {k: Linear(v.weight.T, v.bias) for k, v in made.items()}
        return replace(a, **turned)

    return in_attention(model, change)


def seen_ahead(model: Model) -> Model | None:
    """With a mask, where the config says none."""
    return None if model.spec.causal else replace(model, spec=replace(model.spec, causal=True))


def without_windows(model: Model) -> Model | None:
    """Every token sees all earlier ones."""
    if all(block.attention.window is None for block in outlines(model.blocks)):
        return None
    return in_attention(model, lambda a: replace(a, window=None))


def embed_scale(model: Model) -> Model | None:
    """Rows of the token table times the root of the width, or as they are."""
    s = model.spec
    return replace(
        model, spec=replace(s, embed_scale=s.d_model**0.5 if s.embed_scale == 1 else 1.0)
    )


def tied(model: Model) -> Model | None:
    """The token table as output, where the model has another one."""
    fits = model.output_table.shape == model.token_table.shape
    return None if model.tied or not fits else replace(model, output_table=model.token_table)


def parallel(model: Model) -> Model | None:
    """Attention and feed-forward layer side by side, or one after the other."""
    other = {"pre_norm": "parallel", "parallel": "pre_norm"}.get(model.spec.wiring)
    block = first(model)
    if other is None or block.ln2 is None or block.ln1_post is not None:
        return None
    return replace(model, spec=replace(model.spec, wiring=other))


def other_norm(model: Model) -> Model | None:
    """RMS norms in place of layer norms, or the reverse."""
    other = {"layer_norm": "rms_norm", "rms_norm": "layer_norm"}[model.spec.norm]
    return replace(model, spec=replace(model.spec, norm=other))


def uncapped(model: Model) -> Model | None:
    """Without soft caps."""
    s = model.spec
    if s.score_cap is None and s.logit_cap is None:
        return None
    return replace(model, spec=replace(s, score_cap=None, logit_cap=None))
