"""Qwen 3 (Yang et al. 2025): queries and keys of each head are normalised; no biases."""

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


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a Qwen 3."""
    seen = ("input_layernorm.weight", "mlp.gate_proj.weight", "self_attn.q_norm.weight")
    return found(config, names, "qwen3", seen, ("post_feedforward_layernorm.weight",))


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.assume(head_dim=128, max_position_embeddings=32768)
    config.assume(num_key_value_heads=32, sliding_window=4096)
    s = decoder.sizes(config, "qwen3")
    layout = decoder.Layout(
        tensors,
        s,
        turnings=[turning(config, s.d_head)] * s.n_layers,
        windows=late_windows(config, s.n_layers),
        scale=s.d_head**-0.5,
        head_norms="each",
        **decoder.attention_bias(config),
    )
    return decoder.build(config, layout)
