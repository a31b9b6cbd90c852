"""StarCoder 2 (Lozhkov et al. 2024): rotary positions, shared keys, LayerNorm, no gates; biases."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families import decoder
from gptscope.model.families.parts import found, one_window, usual
from gptscope.model.rotary import turning

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model

# What its training called otherwise, beside the words that count, or computed in another order.
USUAL = {
    "activation_function": "gelu",
    "attention_softmax_in_fp32": True,
    "layer_norm_epsilon": 1e-5,
    "mlp_type": "default",
    "norm_type": "layer_norm",
    "scale_attention_softmax_in_fp32": True,
    "scale_attn_weights": True,
}


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say: a StarCoder 2."""
    return found(config, names, "starcoder2", ("self_attn.q_proj.weight", "mlp.c_fc.weight"))


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.assume(hidden_act="gelu_pytorch_tanh", max_position_embeddings=4096)
    config.assume(num_key_value_heads=2)
    usual(config, USUAL)
    eps = config.number("norm_epsilon", default=1e-5)
    s = decoder.sizes(config, "starcoder2", norm="layer_norm", norm_eps=eps)
    bias = config.flag("use_bias", default=True)
    layout = decoder.Layout(
        tensors,
        s,
        turnings=[turning(config, s.d_head)] * s.n_layers,
        windows=one_window(config, s.n_layers),
        scale=s.d_head**-0.5,
        qkv_bias=bias,
        out_bias=bias,
        mlp_bias=bias,
        norm_shift=True,
        mlp_names=("c_fc", "c_proj"),
    )
    return decoder.build(config, layout, tied=True)
