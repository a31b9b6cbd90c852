"""Llama 1 to 3 (Touvron et al. 2023; Grattafiori et al. 2024), and all that took its design.

SmolLM2, TinyLlama, Vicuna, Yi and others say `llama` in their configs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families import decoder
from gptscope.model.rotary import turning

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model

IGNORED = ("pretraining_tp",)  # how the products of training were cut


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a Llama."""
    unnamed = not config.has("model_type")
    return config.says("model_type", "llama") or (
        unnamed and "layers.0.mlp.gate_proj.weight" in names
    )


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.ask(*IGNORED)
    s = decoder.sizes(config, "llama")
    bias = config.flag("attention_bias", default=False)
    layout = decoder.Layout(
        tensors,
        s,
        turnings=[turning(config, s.d_head)] * s.n_layers,
        windows=[None] * s.n_layers,
        scale=s.d_head**-0.5,
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=config.flag("mlp_bias", default=False),
        interleaved=config.flag("rope_interleaved", default=False),
    )
    return decoder.build(config, layout)
