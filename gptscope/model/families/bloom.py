"""BLOOM (BigScience 2022): no positions but ALiBi's, and a norm on the token embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families.parts import (
    apart_by_head,
    head,
    head_width,
    linear,
    mlp,
    norm,
    without,
)
from gptscope.model.spec import Spec
from gptscope.model.weights import Attention, Block, Model

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors

# How training computed the same numbers, and where ALiBi counts from, which softmax does not see.
IGNORED = (
    "attention_softmax_in_fp32",
    "bias_dropout_fusion",
    "masked_softmax_fusion",
    "offset_alibi",
    "skip_bias_add",
    "skip_bias_add_qkv",
    "slow_but_exact",
)


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a BLOOM."""
    unnamed = not config.has("model_type")
    return config.says("model_type", "bloom") or (
        unnamed and "word_embeddings_layernorm.weight" in names
    )


rename = without("transformer.")


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.ask(*IGNORED)
    s = spec(config)
    token_table = tensors.table("word_embeddings.weight", s.n_vocab, s.d_model)
    output_table, tied = head(config, tensors, token_table, tied=True)
    return Model(
        spec=s,
        token_table=token_table,
        position_table=None,
        blocks=tensors.blocks(s.n_layers, lambda i: block(tensors, s, f"h.{i}")),
        ln_final=norm(tensors, "ln_f", s.d_model, shift=True),
        output_table=output_table,
        tied=tied,
        embed_norm=norm(tensors, "word_embeddings_layernorm", s.d_model, shift=True),
    )


def spec(config: Config) -> Spec:
    """Sizes and choices; nothing but training bounds the length of a text."""
    d, n_heads = (
        config.whole("n_embed", "hidden_size"),
        config.whole("n_head", "num_attention_heads"),
    )
    after = config.flag("apply_residual_connection_post_layernorm", default=False)
    return Spec(
        family="bloom",
        n_layers=config.layers("n_layer", "num_hidden_layers", default=2),
        n_heads=n_heads,
        d_model=d,
        d_head=head_width(config, d, n_heads),
        d_ff=config.whole("n_inner", default=4 * d),
        n_vocab=config.whole("vocab_size", default=250880),
        n_ctx=config.whole("seq_length", default=2048),
        activation="gelu_bloom",
        norm_eps=config.number("layer_norm_epsilon", default=1e-5),
        wiring="norm_in_stream" if after else "pre_norm",
        positions="alibi",
    )


def block(tensors: Tensors, s: Spec, name: str) -> Block:
    """One block; queries, keys and values lie head by head."""
    d, attention = s.d_model, f"{name}.self_attention"
    joined = linear(tensors, f"{attention}.query_key_value", d, 3 * d, bias=True)
    out = linear(tensors, f"{attention}.dense", d, d, bias=True)
    return Block(
        norm(tensors, f"{name}.input_layernorm", d, shift=True),
        Attention(*apart_by_head(joined, s.d_head), out, s.d_head**-0.5, slopes=slopes(s.n_heads)),
        norm(tensors, f"{name}.post_attention_layernorm", d, shift=True),
        mlp(tensors, s, f"{name}.mlp.dense_h_to_4h", f"{name}.mlp.dense_4h_to_h"),
    )


def slopes(n_heads: int) -> tuple[float, ...]:
    """2^(-8/n), 2^(-16/n), ... for n heads, a power of two; others borrow every second of 2n.

    Press, Smith and Lewis 2022, "Train Short, Test Long", section 3 and their published code.
    """
    n = 1 << (n_heads.bit_length() - 1)  # the largest power of two among them
    first = [2.0 ** (-8 * (i + 1) / n) for i in range(n)]
    between = [2.0 ** (-4 * (i + 1) / n) for i in range(0, 2 * n, 2)]
    return tuple(first + between[: n_heads - n])
