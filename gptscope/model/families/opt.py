"""OPT (Zhang et al. 2022): GPT-3 once more, with ReLU; one of them has narrower tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gptscope.model.families import parts
from gptscope.model.spec import Spec
from gptscope.model.weights import Attention, Block, Linear, Model, Norm

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors

USUAL = {"learned_embeddings": True}  # in Galactica: positions are learned, as in every OPT
UNUSED = 2  # rows of the table of positions before the first, as fairseq kept them for padding


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is an OPT."""
    unnamed = not config.has("model_type")
    return config.says("model_type", "opt") or (unnamed and "embed_positions.weight" in names)


rename = parts.without("model.", "decoder.")


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    parts.usual(config, USUAL)
    s, width = spec(config), config.whole("hidden_size")
    narrow = config.whole("word_embed_proj_dim", default=width)
    layout = Layout(
        tensors,
        s,
        bias=config.flag("enable_bias", default=True),
        gains=config.flag("layer_norm_elementwise_affine", default=True),
    )
    bare = config.flag("_remove_final_layer_norm", default=False) or s.wiring == "post_norm"
    token_table = tensors.table("embed_tokens.weight", s.n_vocab, narrow)
    output_table, tied = parts.head(config, tensors, token_table, tied=True)
    apart = narrow != width
    return Model(
        spec=s,
        token_table=token_table,
        position_table=tensors.table("embed_positions.weight", s.n_ctx + UNUSED, width)[UNUSED:],
        blocks=tensors.blocks(s.n_layers, lambda i: layout.block(f"layers.{i}")),
        ln_final=None if bare else layout.norm("final_layer_norm"),
        output_table=output_table,
        tied=tied,
        project_in=parts.linear(tensors, "project_in", narrow, width) if apart else None,
        project_out=parts.linear(tensors, "project_out", width, narrow) if apart else None,
    )


def spec(config: Config) -> Spec:
    """Sizes and choices."""
    d, n_heads = config.whole("hidden_size"), config.whole("num_attention_heads")
    before = config.flag("do_layer_norm_before", default=True)
    return Spec(
        family="opt",
        n_layers=config.layers("num_hidden_layers"),
        n_heads=n_heads,
        d_model=d,
        d_head=parts.head_width(config, d, n_heads),
        d_ff=config.whole("ffn_dim"),
        n_vocab=config.whole("vocab_size", default=50272),
        n_ctx=config.whole("max_position_embeddings", default=2048),
        activation=config.word("activation_function", default="relu"),
        wiring="pre_norm" if before else "post_norm",
    )


@dataclass(frozen=True, eq=False)
class Layout:
    """Whether matrices have biases, and norms gains and shifts."""

    tensors: Tensors
    spec: Spec
    bias: bool
    gains: bool

    def block(self, name: str) -> Block:
        """One block."""
        s, names = self.spec, ("q_proj", "k_proj", "v_proj", "out_proj")
        q, k, v, out = (self.square(f"{name}.self_attn.{part}") for part in names)
        return Block(
            self.norm(f"{name}.self_attn_layer_norm"),
            Attention(q, k, v, out, s.d_head**-0.5),
            self.norm(f"{name}.final_layer_norm"),
            parts.mlp(self.tensors, s, f"{name}.fc1", f"{name}.fc2", bias=self.bias),
        )

    def square(self, name: str) -> Linear:
        """One of the four matrices of attention."""
        d = self.spec.d_model
        return parts.linear(self.tensors, name, d, d, bias=self.bias)

    def norm(self, name: str) -> Norm:
        """A norm; one without gains multiplies by 1."""
        d = self.spec.d_model
        if self.gains:
            return parts.norm(self.tensors, name, d, shift=True)
        return Norm(np.broadcast_to(np.ones((), self.tensors.dtype), d), None)
