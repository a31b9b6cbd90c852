"""GPT-2 (Radford et al. 2019) as Hugging Face stores it, and its dialects.

nanoGPT, minGPT and transformer-visualized differ in names, orientation and the words of the config.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gptscope.errors import ModelError
from gptscope.model.spec import Spec
from gptscope.model.weights import Attention, Block, Linear, Mlp, Model, Norm

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Table, Turning

PREFIXES = (
    "_orig_mod.",
    "module.",
    "transformer.",
)  # torch.compile, data parallel, the head's wrapper


def matches(config: Config, names: Container[str]) -> bool:
    """Whether config or, where it names no family, the tensors say that this is a GPT-2."""
    unnamed = config.has("block_size") or not config.has("model_type")
    return config.says("model_type", "gpt2") or (unnamed and "h.0.attn.c_attn.weight" in names)


def rename(name: str) -> str:
    """The name without the wrappers that training and saving put around it."""
    while name.startswith(PREFIXES):
        name = name.partition(".")[2]
    return name


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place; the arrays stay views of the file."""
    s = spec(config)
    return assemble(config, tensors, s, tensors.table("wpe.weight", s.n_ctx, s.d_model))


def assemble(
    config: Config,
    tensors: Tensors,
    s: Spec,
    position_table: Table | None,
    turning: Turning | None = None,
) -> Model:
    """The model of these choices and positions; after a post-norm block there is no last norm."""
    turned = tensors.shape("h.0.attn.c_attn.weight") == (3 * s.d_model, s.d_model)
    layout = Layout(tensors, s, turned, config.flag("bias", default=True), turning)
    scales = score_scales(config, s)
    token_table = tensors.table("wte.weight", s.n_vocab, s.d_model)
    output_table, tied = head(config, tensors, token_table)
    model = Model(
        spec=s,
        token_table=token_table,
        position_table=position_table,
        blocks=tensors.blocks(s.n_layers, lambda i: layout.block(f"h.{i}", scales[i])),
        ln_final=None if s.wiring == "post_norm" else layout.norm("ln_f"),
        output_table=output_table,
        tied=tied,
    )
    masks = ("bias", "masked_bias")  # buffers of old exports, not parameters
    tensors.ignore(f"h.{i}.attn.{mask}" for i in range(s.n_layers) for mask in masks)
    return model


def spec(config: Config) -> Spec:
    """Sizes and choices, as Hugging Face, Karpathy and transformer-visualized spell them."""
    d = config.whole("n_embd", "dModel")
    n_heads = config.whole("n_head", "nHeads")
    if d % n_heads:
        raise ModelError(f"{config.source}: {n_heads} heads do not divide the width {d}")
    if config.whole("dHead", default=d // n_heads) != d // n_heads:
        raise ModelError(f"{config.source}: dHead is not the width over the number of heads")
    if config.flag("add_cross_attention", default=False):
        raise ModelError(f"{config.source}: cross-attention is not supported")
    config.flag("reorder_and_upcast_attn", default=False)  # the same numbers, in another order
    return Spec(
        family="gpt2",
        n_layers=config.layers("n_layer", "nLayers"),
        n_heads=n_heads,
        d_model=d,
        d_head=d // n_heads,
        d_ff=config.whole("n_inner", "dMlp", default=4 * d),
        n_vocab=config.whole("vocab_size", "vocabSize", default=50257),
        n_ctx=config.whole("n_positions", "n_ctx", "block_size", "contextLength", default=1024),
        activation=config.word("activation_function", default=default_activation(config)),
        norm_eps=config.number("layer_norm_epsilon", "layerNormEps", default=1e-5),
    )


def default_activation(config: Config) -> str:
    """nanoGPT, which alone has `bias` in its config, uses the exact GELU; others the tanh form."""
    return "gelu" if config.has("block_size") and config.has("bias") else "gelu_new"


def score_scales(config: Config, s: Spec) -> list[float]:
    """What each layer's scores are multiplied by."""
    scale = s.d_head**-0.5 if config.flag("scale_attn_weights", default=True) else 1.0
    by_layer = config.flag("scale_attn_by_inverse_layer_idx", default=False)
    return [scale / (layer + 1) if by_layer else scale for layer in range(s.n_layers)]


def head(config: Config, tensors: Tensors, token_table: Table) -> tuple[Table, bool]:
    """The output table [V, d], and whether it is the token table once more."""
    tied_by_config = config.flag("tie_word_embeddings", default=not config.has("block_size"))
    if "lm_head.weight" not in tensors and (tied_by_config or config.has("block_size")):
        return token_table, True
    table = tensors.table("lm_head.weight", *token_table.shape)
    tied = np.array_equal(table, token_table)
    if tied_by_config and not tied:
        raise ModelError(
            "lm_head.weight differs from wte.weight, and the config ties them",
            hint="set tie_word_embeddings to false to use lm_head.weight",
        )
    return table, tied


@dataclass(frozen=True, eq=False)
class Layout:
    """How this file stores its matrices: [in, out] (Conv1D) or [out, in] (Linear); with biases?"""

    tensors: Tensors
    spec: Spec
    turned: bool  # [out, in]; a square matrix cannot tell, so c_attn of the first block does
    has_bias: bool
    turning: Turning | None

    def block(self, name: str, scale: float) -> Block:
        """One block; queries, keys and values lie side by side in the file."""
        d, f = self.spec.d_model, self.spec.d_ff
        q, k, v = thirds(self.linear(f"{name}.attn.c_attn", d, 3 * d))
        out = self.linear(f"{name}.attn.c_proj", d, d)
        return Block(
            ln1=self.norm(f"{name}.ln_1"),
            attention=Attention(q, k, v, out, scale, self.turning),
            ln2=self.norm(f"{name}.ln_2"),
            mlp=Mlp(self.linear(f"{name}.mlp.c_fc", d, f), self.linear(f"{name}.mlp.c_proj", f, d)),
        )

    def linear(self, name: str, n_in: int, n_out: int) -> Linear:
        """A matrix as [in, out], and its bias."""
        shape = (n_out, n_in) if self.turned else (n_in, n_out)
        weight = self.tensors.matrix(f"{name}.weight", *shape)
        bias = self.tensors.take(f"{name}.bias", n_out) if self.has_bias else None
        return Linear(weight.T if self.turned else weight, bias)

    def norm(self, name: str) -> Norm:
        """Gain and shift."""
        gain = self.tensors.take(f"{name}.weight", self.spec.d_model)
        shifts = self.has_bias and self.spec.norm == "layer_norm"
        shift = self.tensors.take(f"{name}.bias", self.spec.d_model) if shifts else None
        return Norm(gain, shift)


def thirds(joined: Linear) -> tuple[Linear, Linear, Linear]:
    """[d, 3d] -> three times [d, d]."""
    weights = np.split(joined.stored, 3, axis=1)
    biases = [None] * 3 if joined.bias is None else np.split(joined.bias, 3)
    q, k, v = (Linear(w, b) for w, b in zip(weights, biases, strict=True))
    return q, k, v
