"""Qwen 2 and 2.5 (Yang et al. 2024): the Llama design with biases on queries, keys and values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families import decoder
from gptscope.model.families.parts import found, late_windows
from gptscope.model.rotary import turning

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model

UNSEEN = (  # which StableLM, others and Qwen 3 have
    "input_layernorm.bias",
    "self_attn.o_proj.bias",
    "self_attn.q_norm.weight",
)


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a Qwen 2."""
    seen = ("mlp.gate_proj.weight", "self_attn.q_proj.bias")
    return found(config, names, "qwen2", seen, UNSEEN)


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.assume(max_position_embeddings=32768, num_key_value_heads=32, sliding_window=4096)
    s = decoder.sizes(config, "qwen2")
    layout = decoder.Layout(
        tensors,
        s,
        turnings=[turning(config, s.d_head)] * s.n_layers,
        windows=late_windows(config, s.n_layers),
        scale=s.d_head**-0.5,
        qkv_bias=True,
    )
    return decoder.build(config, layout)
