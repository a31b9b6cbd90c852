"""Mistral (Jiang et al. 2023): the Llama design, each token seeing a window of earlier ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families import decoder
from gptscope.model.families.parts import one_window
from gptscope.model.rotary import turning

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model


def matches(config: Config, names: Container[str]) -> bool:  # noqa: ARG001
    """Whether the config says so."""
    return config.says("model_type", "mistral")


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.assume(max_position_embeddings=131072, num_key_value_heads=8, sliding_window=4096)
    s = decoder.sizes(config, "mistral")
    layout = decoder.Layout(
        tensors,
        s,
        turnings=[turning(config, s.d_head)] * s.n_layers,
        windows=one_window(config, s.n_layers),
        scale=s.d_head**-0.5,
    )
    return decoder.build(config, layout)
