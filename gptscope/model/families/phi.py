"""Phi-1, 1.5 and 2 (Gunasekar et al. 2023): both parts read one norm, and heads turn in part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families import decoder
from gptscope.model.families.parts import found, norm
from gptscope.model.rotary import turning
from gptscope.model.weights import Attention, Block

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model, Norm


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a Phi."""
    return found(config, names, "phi", ("self_attn.dense.weight", "mlp.fc1.weight"))


rename = decoder.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place; the output has a bias."""
    s = decoder.sizes(
        config,
        "phi",
        activation=config.word("hidden_act", default="gelu_new"),
        norm="layer_norm",
        norm_eps=config.number("layer_norm_eps", default=1e-5),
        wiring="parallel",
    )
    layout = Layout(
        tensors,
        s,
        turnings=[turning(config, s.d_head, share=0.5)] * s.n_layers,
        windows=[None] * s.n_layers,
        scale=s.d_head**-0.5,
        qkv_bias=True,
        out_bias=True,
        norm_shift=True,
        mlp_bias=True,
        mlp_names=("fc1", "fc2"),
        head_norms="each" if config.flag("qk_layernorm", default=False) else "",
    )
    bias = tensors.take("lm_head.bias", s.n_vocab)
    return decoder.build(config, layout, last="final_layernorm", output_bias=bias)


class Layout(decoder.Layout):
    """The shared layout with one norm, and another name for the output matrix."""

    def block(self, layer: int) -> Block:
        """One block."""
        name = f"layers.{layer}"
        attention = self.attention(f"{name}.self_attn", layer)
        ln1 = self.norm(f"{name}.input_layernorm")
        return Block(ln1, attention, None, self.mlp(f"{name}.mlp"))

    def attention(self, name: str, layer: int) -> Attention:
        """Attention; in some, all heads share one norm of queries and one of keys."""
        s = self.spec
        return Attention(
            *self.qkv(name),
            self.linear(f"{name}.dense", s.n_heads * s.d_head, s.d_model, bias=True),
            self.scale,
            self.turnings[layer],
            self.head_norm(f"{name}.q_layernorm", s.n_heads),
            self.head_norm(f"{name}.k_layernorm", s.n_kv_heads),
        )

    def head_norm(self, name: str, n_heads: int) -> Norm | None:  # noqa: ARG002
        """The norm of queries or keys, where there is one."""
        return norm(self.tensors, name, self.spec.d_head, shift=True) if self.head_norms else None
