"""Llama 1 to 3 (Touvron et al. 2023; Grattafiori et al. 2024), and all that took its design.

SmolLM2, TinyLlama, Vicuna, Yi and others say `llama` in their configs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families import decoder
from gptscope.model.families.parts import found
from gptscope.model.rotary import turning

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model

IGNORED = ("is_llama_config", "max_sequence_length")  # of SmolLM 2, and of the first Llamas

UNSEEN = (  # which Qwen, Gemma and StableLM have
    "input_layernorm.bias",
    "pre_feedforward_layernorm.weight",
    "self_attn.q_norm.weight",
    "self_attn.q_proj.bias",
)


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a Llama."""
    seen = ("input_layernorm.weight", "mlp.gate_proj.weight", "post_attention_layernorm.weight")
    return found(config, names, "llama", seen, UNSEEN)


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.ask(*IGNORED)
    s = decoder.sizes(config, "llama")
    layout = decoder.Layout(
        tensors,
        s,
        turnings=[turning(config, s.d_head)] * s.n_layers,
        windows=[None] * s.n_layers,
        scale=s.d_head**-0.5,
        **decoder.as_llama(config),
    )
    return decoder.build(config, layout)
