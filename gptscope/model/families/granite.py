"""Granite 3 (Granite Team 2024): the Llama design, its numbers scaled at four places.

Yang et al. 2022, "Tensor Programs V", section 4, for such scales.
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


def matches(config: Config, names: Container[str]) -> bool:  # noqa: ARG001
    """Whether the config says so; the names of the tensors are those of Llama."""
    return config.says("model_type", "granite")


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    s = decoder.sizes(
        config,
        "granite",
        embed_scale=config.number("embedding_multiplier", default=1),
        residual_scale=config.number("residual_multiplier", default=1),
        logit_scale=1 / config.number("logits_scaling", default=1),
    )
    layout = decoder.Layout(
        tensors,
        s,
        turnings=[turning(config, s.d_head)] * s.n_layers,
        windows=[None] * s.n_layers,
        scale=config.number("attention_multiplier", default=1),
        **decoder.as_llama(config),
    )
    return decoder.build(config, layout)
