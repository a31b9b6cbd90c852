"""StableLM 2 and StableLM-3B-4E1T (Tow et al. 2023): Llama with LayerNorm, heads turned in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gptscope.model.families import decoder
from gptscope.model.families.parts import found
from gptscope.model.rotary import turning
from gptscope.model.weights import Block, Norm

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.spec import Spec
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a StableLM."""
    first = config.says("model_type", "stablelm_epoch")  # before transformers knew it
    seen = ("input_layernorm.bias", "mlp.gate_proj.weight")
    return first or found(config, names, "stablelm", seen)


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    config.assume(max_position_embeddings=4096)
    s = spec(config)
    share = config.number("rope_pct", default=0.25)  # as its first code called it
    layout = Layout(
        tensors,
        s,
        turnings=[turning(config, s.d_head, share=share)] * s.n_layers,
        windows=[None] * s.n_layers,
        scale=s.d_head**-0.5,
        qkv_bias=config.flag("use_qkv_bias", default=False),
        norm_shift=True,
        head_norms="each" if config.flag("qk_layernorm", default=False) else "",
    )
    return decoder.build(config, layout)


def spec(config: Config) -> Spec:
    """Sizes and choices."""
    side_by_side = config.flag("use_parallel_residual", default=False)
    return decoder.sizes(
        config,
        "stablelm",
        norm="layer_norm",
        norm_eps=config.number("layer_norm_eps", "norm_eps", default=1e-5),
        wiring="parallel" if side_by_side else "pre_norm",
    )


class Layout(decoder.Layout):
    """The shared layout; some have a norm for each head, or only one for both parts of a block."""

    def block(self, layer: int) -> Block:
        """One block; where both parts stand side by side, they read one norm."""
        if self.spec.wiring == "pre_norm":
            return super().block(layer)
        name = f"layers.{layer}"
        return Block(
            self.norm(f"{name}.{self.names[0]}"),
            self.attention(f"{name}.self_attn", layer),
            None,
            self.mlp(f"{name}.mlp"),
        )

    def head_norm(self, name: str, n_heads: int) -> Norm | None:
        """The norms of all heads in one, their gains [H, 1, d_h]."""
        if not self.head_norms:
            return None
        stored = name.replace("_norm", "_layernorm")
        if f"{stored}.weight" in self.tensors:  # in one, as a GGUF has them
            whole = self.tensors.take(f"{stored}.weight", n_heads, self.spec.d_head)
            return Norm(whole[:, None], None)
        gains = [
            self.tensors.take(f"{stored}.norms.{head}.weight", self.spec.d_head)
            for head in range(n_heads)
        ]
        return Norm(np.stack(gains)[:, None], None)
