"""The Llama of transformer-visualized: tied, its rotary pairs side by side, its config in the file.

What that project trains as a GPT-2 is a dialect in gpt2.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.errors import ModelError
from gptscope.model.families import decoder
from gptscope.model.families.parts import head_width
from gptscope.model.positions import BASE, turning_speeds
from gptscope.model.spec import Spec
from gptscope.model.weights import Turning

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model

WORDS = {
    "wte": "embed_tokens",
    "h": "layers",
    "norm_1": "input_layernorm",
    "attn": "self_attn",
    "wq": "q_proj",
    "wk": "k_proj",
    "wv": "v_proj",
    "wo": "o_proj",
    "norm_2": "post_attention_layernorm",
    "w_gate": "gate_proj",
    "w_up": "up_proj",
    "w_down": "down_proj",
    "norm_f": "norm",
}


def matches(config: Config, names: Container[str]) -> bool:  # noqa: ARG001
    """Whether the config says so."""
    return config.says("arch", "llama")


def rename(name: str) -> str:
    """The name that the shared layout has for it."""
    return ".".join(WORDS.get(word, word) for word in name.split("."))


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.ask("arch")
    s = spec(config)
    speeds = turning_speeds(s.d_head, config.number("ropeBase", default=BASE))
    layout = decoder.Layout(
        tensors,
        s,
        turnings=[Turning(speeds)] * s.n_layers,
        windows=[None] * s.n_layers,
        scale=s.d_head**-0.5,
        interleaved=True,
    )
    return decoder.build(config, layout, tied=True)


def spec(config: Config) -> Spec:
    """Sizes, in that project's words.

    Raises:
        ModelError: the heads do not share the width or their keys evenly, or make no pairs.
    """
    d, n_heads = config.whole("dModel"), config.whole("nHeads")
    d_head, kv_heads = head_width(config, d, n_heads), config.whole("nKvHeads", default=n_heads)
    if config.whole("dHead", default=d_head) != d_head or d_head % 2 or n_heads % kv_heads:
        raise ModelError(
            f"{config.source}: dHead, nHeads and nKvHeads do not fit the width {d} in pairs"
        )
    return Spec(
        family="llama",
        n_layers=config.layers("nLayers"),
        n_heads=n_heads,
        kv_heads=kv_heads,
        d_model=d,
        d_head=d_head,
        d_ff=config.whole("dMlp"),
        n_vocab=config.whole("vocabSize"),
        n_ctx=config.whole("contextLength"),
        activation="silu",
        norm="rms_norm",
        norm_eps=config.number("layerNormEps", default=1e-5),
        positions="rotary",
    )
