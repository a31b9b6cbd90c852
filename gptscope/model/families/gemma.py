"""Gemma (Gemma Team 2024): wide heads, large embeddings, gains stored less 1."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gptscope.model.families import decoder
from gptscope.model.rotary import turning

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.spec import Spec
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model


def matches(config: Config, names: Container[str]) -> bool:  # noqa: ARG001
    """Whether the config says so; the names of the tensors are those of Llama."""
    return config.says("model_type", "gemma")


rename = decoder.rename
TANH = "gelu_pytorch_tanh"


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.assume(num_key_value_heads=16, max_position_embeddings=8192)
    s = sizes(config, "gemma", activation=activation(config))
    found = layout(
        config,
        tensors,
        s,
        turnings=[turning(config, s.d_head)] * s.n_layers,
        windows=[None] * s.n_layers,
        scale=s.d_head**-0.5,
    )
    return decoder.build(config, found, tied=True)


def activation(config: Config) -> str:
    """The tanh form, which the first configs called by the name of the exact one."""
    word = config.word("hidden_activation", "hidden_act", default=TANH)
    return TANH if word == "gelu" else word


def sizes(config: Config, family: str, **choices: Any) -> Spec:  # noqa: ANN401
    """Sizes and choices; rows of the token table times sqrt(d). Gemma Team 2024, section 2."""
    config.assume(head_dim=256, hidden_activation=TANH)
    s = decoder.sizes(config, family, **choices)
    return replace(s, embed_scale=s.d_model**0.5)


def layout(
    config: Config,
    tensors: Tensors,
    s: Spec,
    **choices: Any,  # noqa: ANN401
) -> decoder.Layout:
    """The layout; gains are stored less 1, but whole in a GGUF."""
    less_one = config.flag("norm_gain_offset", default=True)
    offset = 1.0 if less_one else 0.0
    return decoder.Layout(
        tensors, s, norm_offset=offset, **decoder.attention_bias(config), **choices
    )
