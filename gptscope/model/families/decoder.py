"""The layout that most families share since Llama: its names, and the choices that differ.

A family makes a `Layout` of its choices; `build` takes every tensor to its place.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gptscope.errors import ModelError
from gptscope.model.families.parts import halves, head, linear, norm, without
from gptscope.model.rotary import longest
from gptscope.model.spec import Spec
from gptscope.model.weights import Attention, Block, Linear, Mlp, Model, Norm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Turning

rename = without("model.")
SIZES = (
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "num_hidden_layers",
    "vocab_size",
)


@dataclass(frozen=True, eq=False)
class Layout:
    """What a family of this layout chooses; sequences have an entry for each layer."""

    tensors: Tensors
    spec: Spec
    turnings: Sequence[Turning | None]
    windows: Sequence[int | None]
    scale: float
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    norm_shift: bool = False
    norm_offset: float = 0.0  # what the file leaves out of every gain
    interleaved: bool = False  # rotary pairs side by side, as (0, 1), (2, 3)
    names: tuple[str, str] = ("input_layernorm", "post_attention_layernorm")  # ln1 and ln2
    posts: tuple[str, str] | None = None  # ln1_post and ln2_post
    mlp_names: tuple[str, ...] = ("up_proj", "down_proj", "gate_proj")  # two: without gates
    head_norms: str = ""  # of queries and keys: "each" head by itself, or "all" at once

    def block(self, layer: int) -> Block:
        """One block."""
        name = f"layers.{layer}"
        ln1, ln2, *posts = (self.norm(f"{name}.{n}") for n in self.names + (self.posts or ()))
        attention = self.attention(f"{name}.self_attn", layer)
        return Block(ln1, attention, ln2, self.mlp(f"{name}.mlp"), *posts)

    def attention(self, name: str, layer: int) -> Attention:
        """Attention, its heads side by side."""
        q, k, v = self.qkv(name)
        turning, s = self.turnings[layer], self.spec
        if self.interleaved:
            n_turned = s.d_head if turning is None else 2 * len(turning.speeds)
            q, k = (halves(part, s.d_head, n_turned) for part in (q, k))
        return Attention(
            q,
            k,
            v,
            self.linear(f"{name}.o_proj", s.n_heads * s.d_head, s.d_model, bias=self.out_bias),
            self.scale,
            turning,
            self.head_norm(f"{name}.q_norm", s.n_heads),
            self.head_norm(f"{name}.k_norm", s.n_kv_heads),
            window=self.windows[layer],
        )

    def head_norm(self, name: str, n_heads: int) -> Norm | None:
        """The norm of queries or keys, if the family has one."""
        if not self.head_norms:
            return None
        width = self.spec.d_head * (n_heads if self.head_norms == "all" else 1)
        return norm(self.tensors, name, width, offset=self.norm_offset)

    def qkv(self, name: str) -> tuple[Linear, Linear, Linear]:
        """Queries, keys and values."""
        s = self.spec
        heads = {"q": s.n_heads, "k": s.n_kv_heads, "v": s.n_kv_heads}
        q, k, v = (
            self.linear(f"{name}.{part}_proj", s.d_model, n * s.d_head, bias=self.qkv_bias)
            for part, n in heads.items()
        )
        return q, k, v

    def mlp(self, name: str) -> Mlp:
        """A feed-forward layer, most often with gates."""
        d, f = self.spec.d_model, self.spec.d_ff
        sizes = ((d, f), (f, d), (d, f))
        return Mlp(
            *(
                self.linear(f"{name}.{part}", *size, bias=self.mlp_bias)
                for part, size in zip(self.mlp_names, sizes, strict=False)
            )
        )

    def linear(self, name: str, n_in: int, n_out: int, *, bias: bool) -> Linear:
        """A matrix and its bias."""
        return linear(self.tensors, name, n_in, n_out, bias=bias)

    def norm(self, name: str) -> Norm:
        """A norm of the stream."""
        d, shift = self.spec.d_model, self.norm_shift
        return norm(self.tensors, name, d, shift=shift, offset=self.norm_offset)


def sizes(config: Config, family: str, **choices: Any) -> Spec:  # noqa: ANN401
    """Sizes and choices, in the words that this layout's configs share.

    Raises:
        ModelError: a size is not said, or the heads do not divide the width, or share their keys.
    """
    missing = [key for key in SIZES if not config.has(key)]
    if missing:
        raise ModelError(f"{config.source} does not say {', '.join(missing)}")
    d, n_heads = config.whole("hidden_size"), config.whole("num_attention_heads")
    kv_heads = config.whole("num_key_value_heads", default=n_heads)
    if not config.has("head_dim") and d % n_heads:
        raise ModelError(f"{config.source}: {n_heads} heads do not divide the width {d}")
    if n_heads % kv_heads:
        shared = f"{n_heads} heads cannot share {kv_heads} heads of keys and values evenly"
        raise ModelError(f"{config.source}: {shared}")
    found: dict[str, Any] = {
        "n_layers": config.layers("num_hidden_layers"),
        "d_head": config.whole("head_dim", default=d // n_heads),
        "d_ff": config.whole("intermediate_size"),
        "n_vocab": config.whole("vocab_size"),
        "n_ctx": longest(config),
        "activation": config.word("hidden_activation", "hidden_act", default="silu"),
        "norm": "rms_norm",
        "norm_eps": config.number("rms_norm_eps", default=1e-6),
        "positions": "rotary",
    }
    return Spec(family=family, n_heads=n_heads, kv_heads=kv_heads, d_model=d, **(found | choices))


def attention_bias(config: Config) -> dict[str, Any]:
    """Biases of all four matrices of attention, or of none, as the config says."""
    bias = config.flag("attention_bias", default=False)
    return {"qkv_bias": bias, "out_bias": bias}


def as_llama(config: Config) -> dict[str, Any]:
    """Biases, and the order of rotary pairs, as configs of Llama say them."""
    return attention_bias(config) | {
        "mlp_bias": config.flag("mlp_bias", default=False),
        "interleaved": config.flag("rope_interleaved", default=False),
    }


def build(
    config: Config,
    layout: Layout,
    *,
    tied: bool = False,
    last: str = "norm",
    **more: Any,  # noqa: ANN401
) -> Model:
    """The model of this layout; `tied` is the family's default, `last` the last norm's name."""
    tensors, s = layout.tensors, layout.spec
    token_table = tensors.table("embed_tokens.weight", s.n_vocab, s.d_model)
    output_table, tied = head(config, tensors, token_table, tied=tied)
    buffer = "rotary_emb.inv_freq"  # of old exports
    tensors.ignore([buffer, *(f"layers.{i}.self_attn.{buffer}" for i in range(s.n_layers))])
    return Model(
        spec=replace(s, pairs="neighbours") if layout.interleaved else s,
        token_table=token_table,
        position_table=None,
        blocks=tensors.blocks(s.n_layers, layout.block),
        ln_final=layout.norm(last),
        output_table=output_table,
        tied=tied,
        **more,
    )
