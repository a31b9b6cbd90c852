"""Gemma 3 (Gemma Team 2025): Gemma 2 with normalised queries and keys in place of the caps.

"Gemma 3 Technical Report", section 2: five layers with windows for each one without, which turns
more slowly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families import decoder, gemma
from gptscope.model.families.gemma2 import NORMS
from gptscope.model.families.parts import found, windows
from gptscope.model.positions import BASE, turning_speeds
from gptscope.model.rotary import turning
from gptscope.model.weights import Turning

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model

SLOW = 1e6  # the base in layers without a window


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a Gemma 3."""
    seen = ("pre_feedforward_layernorm.weight", "self_attn.q_norm.weight")
    return found(config, names, "gemma3_text", seen)


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.assume(num_key_value_heads=4, max_position_embeddings=131072, sliding_window=4096)
    s = gemma.sizes(config, "gemma3_text", logit_cap=config.limit("final_logit_softcapping"))
    every = config.whole("sliding_window_pattern", "_sliding_window_pattern", default=6)
    seen = windows(config, s.n_layers, lambda layer: (layer + 1) % every != 0)
    full = turning(config, s.d_head, base=SLOW, layers="full_attention")
    local = local_turning(config, s.d_head)
    layout = gemma.layout(
        config,
        tensors,
        s,
        turnings=[full if window is None else local for window in seen],
        windows=seen,
        scale=config.number("query_pre_attn_scalar", default=256) ** -0.5,
        head_norms="each",
        **NORMS,
    )
    return decoder.build(config, layout, tied=True)


def local_turning(config: Config, d_head: int) -> Turning:
    """How heads turn in layers with a window; older configs stretch only the others."""
    base = config.number("rope_local_base_freq", default=BASE)
    if config.section("rope_parameters").has("sliding_attention"):
        return turning(config, d_head, base=base, layers="sliding_attention")
    return Turning(turning_speeds(d_head, base))
