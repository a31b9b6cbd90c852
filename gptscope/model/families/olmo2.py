"""OLMo 2 (OLMo Team 2024): norms only of what the parts add, and of all queries and keys at once.

"2 OLMo 2 Furious", section 3.
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


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is an OLMo 2."""
    seen = ("post_feedforward_layernorm.weight", "self_attn.q_norm.weight")
    return found(config, names, "olmo2", seen, ("input_layernorm.weight",))


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.assume(rms_norm_eps=1e-5)
    s = decoder.sizes(config, "olmo2", wiring="norm_of_parts")
    layout = decoder.Layout(
        tensors,
        s,
        turnings=[turning(config, s.d_head)] * s.n_layers,
        windows=[None] * s.n_layers,
        scale=s.d_head**-0.5,
        names=("post_attention_layernorm", "post_feedforward_layernorm"),
        head_norms="all",
        **decoder.attention_bias(config),
    )
    return decoder.build(config, layout)
