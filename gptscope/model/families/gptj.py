"""GPT-J (Wang and Komatsuzaki 2021): attention and feed-forward layer side by side, on one norm."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.errors import ModelError
from gptscope.model.families.parts import (
    halves,
    head,
    head_width,
    linear,
    mlp,
    must_be_on,
    norm,
    without,
)
from gptscope.model.positions import BASE, turning_speeds
from gptscope.model.spec import Spec
from gptscope.model.weights import Attention, Block, Model, Turning

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a GPT-J."""
    unnamed = not config.has("model_type")
    return config.says("model_type", "gptj") or (unnamed and "h.0.attn.q_proj.weight" in names)


rename = without("transformer.")


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place; the output has a bias."""
    must_be_on(config, "rotary", "scale_attn_weights")
    s = spec(config)
    turning = turned(config, s.d_head)
    token_table = tensors.table("wte.weight", s.n_vocab, s.d_model)
    output_table, tied = head(config, tensors, token_table, tied=False)
    masks = ("bias", "masked_bias")  # buffers of old exports, not parameters
    tensors.ignore(f"h.{i}.attn.{mask}" for i in range(s.n_layers) for mask in masks)
    return Model(
        spec=s,
        token_table=token_table,
        position_table=None,
        blocks=tensors.blocks(s.n_layers, lambda i: block(tensors, s, f"h.{i}", turning)),
        ln_final=norm(tensors, "ln_f", s.d_model, shift=True),
        output_table=output_table,
        tied=tied,
        output_bias=tensors.take("lm_head.bias", s.n_vocab),
    )


def spec(config: Config) -> Spec:
    """Sizes and choices."""
    d, n_heads = config.whole("n_embd"), config.whole("n_head")
    return Spec(
        family="gptj",
        n_layers=config.layers("n_layer"),
        n_heads=n_heads,
        d_model=d,
        d_head=head_width(config, d, n_heads),
        d_ff=config.whole("n_inner", default=4 * d),
        n_vocab=config.whole("vocab_size", default=50400),
        n_ctx=config.whole("n_positions", "n_ctx", default=2048),
        activation=config.word("activation_function", default="gelu_new"),
        norm_eps=config.number("layer_norm_epsilon", default=1e-5),
        wiring="parallel",
        positions="rotary",
        pairs="neighbours",
    )


def turned(config: Config, d_head: int) -> Turning:
    """How the first `rotary_dim` numbers of each head turn.

    Raises:
        ModelError: there are not so many, or they make no pairs.
    """
    dims = config.whole("rotary_dim", default=64)
    if dims % 2 or dims > d_head:
        raise ModelError(f"{config.source}: {dims} of {d_head} numbers of a head cannot turn")
    return Turning(turning_speeds(dims, BASE))


def block(tensors: Tensors, s: Spec, name: str, turning: Turning) -> Block:
    """One block; its rotary pairs lie side by side, and no matrix of attention has a bias."""
    d, dims = s.d_model, 2 * len(turning.speeds)
    q, k, v, out = (
        linear(tensors, f"{name}.attn.{part}_proj", d, d) for part in ("q", "k", "v", "out")
    )
    q, k = (halves(part, s.d_head, dims) for part in (q, k))
    return Block(
        norm(tensors, f"{name}.ln_1", d, shift=True),
        Attention(q, k, v, out, s.d_head**-0.5, turning),
        None,
        mlp(tensors, s, f"{name}.mlp.fc_in", f"{name}.mlp.fc_out"),
    )
