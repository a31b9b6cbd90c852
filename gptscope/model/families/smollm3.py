"""SmolLM 3 (Bakouch et al. 2025): the Llama design, every fourth layer without positions.

Yang et al. 2025, "RoPE to NoRoPE and Back Again", section 4, for such layers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families import decoder
from gptscope.model.families.parts import windows
from gptscope.model.rotary import turning

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model


def matches(config: Config, names: Container[str]) -> bool:  # noqa: ARG001
    """Whether the config says so; the names of the tensors are those of Llama."""
    return config.says("model_type", "smollm3")


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.assume(max_position_embeddings=32768, num_key_value_heads=4)
    config.ask("max_window_layers")  # which no part of the design reads
    s = decoder.sizes(config, "smollm3")
    turns = turning_layers(config, s.n_layers)
    used = config.flag("use_sliding_window", default=False)
    some = used and config.has("sliding_window")
    turned = turning(config, s.d_head, base=2e6)
    layout = decoder.Layout(
        tensors,
        s,
        turnings=[turned if turn else None for turn in turns],
        windows=windows(config, s.n_layers, lambda i: some and not turns[i], used=used),
        scale=s.d_head**-0.5,
        **decoder.as_llama(config),
    )
    return decoder.build(config, layout, tied=True)


def turning_layers(config: Config, n_layers: int) -> Sequence[bool]:
    """Whether each layer turns its queries and keys; the config's words say the contrary."""
    every = config.whole("no_rope_layer_interval", default=4)
    said = config.flags("no_rope_layers", n_layers)
    return said or [(layer + 1) % every != 0 for layer in range(n_layers)]
