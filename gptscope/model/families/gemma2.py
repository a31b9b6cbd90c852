"""Gemma 2 (Gemma Team 2024): norms around each part, capped scores and logits, every other window.

"Gemma 2: Improving Open Language Models at a Practical Size", section 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families import decoder, gemma
from gptscope.model.families.parts import found, windows
from gptscope.model.rotary import turning

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model

NORMS = {
    "names": ("input_layernorm", "pre_feedforward_layernorm"),
    "posts": ("post_attention_layernorm", "post_feedforward_layernorm"),
}


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a Gemma 2."""
    seen = ("pre_feedforward_layernorm.weight", "post_feedforward_layernorm.weight")
    return found(config, names, "gemma2", seen, ("self_attn.q_norm.weight",))


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.assume(num_key_value_heads=4, max_position_embeddings=8192, sliding_window=4096)
    config.assume(attn_logit_softcapping=50.0, final_logit_softcapping=30.0)
    config.ask("sliding_window_size")  # the window once more, which no code reads
    s = gemma.sizes(
        config,
        "gemma2",
        score_cap=config.limit("attn_logit_softcapping"),
        logit_cap=config.limit("final_logit_softcapping"),
    )
    layout = gemma.layout(
        config,
        tensors,
        s,
        turnings=[turning(config, s.d_head)] * s.n_layers,
        windows=windows(config, s.n_layers, lambda layer: layer % 2 == 0),
        scale=config.number("query_pre_attn_scalar", default=256) ** -0.5,
        **NORMS,
    )
    return decoder.build(config, layout, tied=True)
