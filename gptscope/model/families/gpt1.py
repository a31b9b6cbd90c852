"""GPT (Radford et al. 2018), the first: the norms come after each sum, as in the 2017 paper."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gptscope.errors import ModelError
from gptscope.model.families import gpt2
from gptscope.model.families.parts import head
from gptscope.model.weights import Model

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.spec import Spec
    from gptscope.model.tensors import Tensors

# `gelu` was the tanh form before it became the name of the exact one.
ACTIVATIONS = {"gelu": "gelu_new", "relu": "relu", "silu": "silu", "swish": "silu"}
V, CTX = 40478, 512  # where the config does not say them


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is the first."""
    unnamed = not config.has("model_type")
    return config.says("model_type", "openai-gpt") or (unnamed and "tokens_embed.weight" in names)


rename = gpt2.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place; matrices are stored as [in, out]."""
    s = spec(config)
    layout = gpt2.Layout(tensors, s, turned=False, has_bias=True, turning=None)
    token_table = tensors.table("tokens_embed.weight", s.n_vocab, s.d_model)
    output_table, tied = head(config, tensors, token_table, tied=True)
    masks = ("bias", "masked_bias")  # buffers of old exports, not parameters
    tensors.ignore(f"h.{i}.attn.{mask}" for i in range(s.n_layers) for mask in masks)
    tensors.ignore(["position_ids"])
    return Model(
        spec=s,
        token_table=token_table,
        position_table=tensors.table("positions_embed.weight", s.n_ctx, s.d_model),
        blocks=tensors.blocks(s.n_layers, lambda i: layout.block(f"h.{i}", s.d_head**-0.5)),
        ln_final=None,
        output_table=output_table,
        tied=tied,
    )


def spec(config: Config) -> Spec:
    """GPT-2's words for the sizes, and one of its own for the activation.

    Raises:
        ModelError: the activation is not one of those that this family has.
    """
    afn = config.word("afn", default="gelu")
    if afn not in ACTIVATIONS:
        known = ", ".join(ACTIVATIONS)
        raise ModelError(f"{config.source}: afn is {afn!r}, not one of: {known}")
    return replace(
        gpt2.spec(config),
        family="openai-gpt",
        wiring="post_norm",
        activation=ACTIVATIONS[afn],
        n_vocab=config.whole("vocab_size", default=V),
        n_ctx=config.whole("n_positions", "n_ctx", default=CTX),
    )
