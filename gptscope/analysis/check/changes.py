"""A model changed in one convention; blocks are changed when they are made, one at a time.

Each function gives None where the change does not apply to the model.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.model.blocks import Blocks, outlines
from gptscope.model.weights import Norm, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from gptscope.model.weights import Attention, Block, Model


def in_order(model: Model, order: list[int]) -> Model:
    """The same blocks in another order."""
    blocks, shapes = model.blocks, outlines(model.blocks)
    made = Blocks(lambda layer: blocks[order[layer]], [shapes[layer] for layer in order])
    return replace(model, blocks=made)


def by_block(model: Model, change: Callable[[Block], Block]) -> Model:
    """Every block changed when it is made; the outlines stay, so that nothing is read for them."""
    blocks = model.blocks
    return replace(model, blocks=Blocks(lambda i: change(blocks[i]), outlines(blocks)))


def in_attention(model: Model, change: Callable[[Attention], Attention]) -> Model:
    """The attention of every block changed."""
    return by_block(model, lambda block: replace(block, attention=change(block.attention)))


def first(model: Model) -> Block:
    """The shapes and choices of a block."""
    return outlines(model.blocks)[0]


def gains(model: Model, more: float) -> Model:
    """All gains of the norms with a number added."""

    def change(norm: Any) -> Any:  # noqa: ANN401
        return replace(norm, gain=norm.gain + norm.gain.dtype.type(more))

    def block(whole: Block) -> Block:
        norms = {f.name: getattr(whole, f.name) for f in fields(whole)}
        return replace(whole, **{k: change(v) for k, v in norms.items() if isinstance(v, Norm)})

    last = None if model.ln_final is None else change(model.ln_final)
    return replace(by_block(model, block), ln_final=last)


def shifted(model: Model, by: int) -> Model | None:
    """Position i given row i + `by` of the table."""
    table = model.position_table
    if table is None:
        return None
    at = np.clip(np.arange(model.spec.n_ctx) + by, 0, table.shape[0] - 1)
    return replace(model, position_table=rows(table, at, model.dtype))


def gates(model: Model) -> Model | None:
    """The gates taken for the units that they multiply."""
    if first(model).mlp.gate is None:
        return None

    def change(b: Block) -> Block:
        gate = b.mlp.gate or b.mlp.up
        return replace(b, mlp=replace(b.mlp, up=gate, gate=b.mlp.up))

    return by_block(model, change)


def norms(model: Model) -> Model | None:
    """The first norm of a block in place of the second."""
    if first(model).ln2 is None:
        return None
    return by_block(model, lambda b: replace(b, ln1=b.ln2 or b.ln1, ln2=b.ln1))


def seen_ahead(model: Model) -> Model | None:
    """With a mask, where the config says none."""
    return None if model.spec.causal else replace(model, spec=replace(model.spec, causal=True))


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
