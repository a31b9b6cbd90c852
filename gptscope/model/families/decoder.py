"""The layout that most families share since Llama: its names, and the choices that differ.

A family makes a `Layout` of its choices; `build` takes every tensor to its place.
"""

from __future__ import annotations

from dataclasses import dataclass
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

    def block(self, layer: int) -> Block:
        """One block."""
        name = f"layers.{layer}"
        ln1, ln2 = (self.norm(f"{name}.{which}") for which in self.names)
        return Block(ln1, self.attention(f"{name}.self_attn", layer), ln2, self.mlp(f"{name}.mlp"))

    def attention(self, name: str, layer: int) -> Attention:
        """Attention, its heads side by side."""
        q, k, v = self.qkv(name)
        turning, s = self.turnings[layer], self.spec
        if self.interleaved and turning is not None:
            q, k = (halves(part, s.d_head, 2 * len(turning.speeds)) for part in (q, k))
        return Attention(
            q,
            k,
            v,
            self.linear(f"{name}.o_proj", s.n_heads * s.d_head, s.d_model, bias=self.out_bias),
            self.scale,
            turning,
            window=self.windows[layer],
        )

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
        """A feed-forward layer with gates."""
        s, bias = self.spec, self.mlp_bias
        gate, up = (
            self.linear(f"{name}.{part}_proj", s.d_model, s.d_ff, bias=bias)
            for part in ("gate", "up")
        )
        return Mlp(up, self.linear(f"{name}.down_proj", s.d_ff, s.d_model, bias=bias), gate)

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
        ModelError: the heads do not divide the width, or cannot share their keys.
    """
    d, n_heads = config.whole("hidden_size"), config.whole("num_attention_heads")
    kv_heads = config.whole("num_key_value_heads", default=n_heads)
    if not config.has("head_dim") and d % n_heads:
        raise ModelError(f"{config.source}: {n_heads} heads do not divide the width {d}")
    if n_heads % kv_heads:
        shared = f"{n_heads} heads cannot share {kv_heads} heads of keys and values evenly"
        raise ModelError(f"{config.source}: {shared}")
    found: dict[str, Any] = {
        "n_layers": config.whole("num_hidden_layers"),
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
    buffers = ("rotary_emb.inv_freq", "self_attn.rotary_emb.inv_freq")  # of old exports
    tensors.ignore(f"layers.{i}.{name}" for i in range(s.n_layers) for name in buffers)
    return Model(
        spec=s,
        token_table=token_table,
        position_table=None,
        blocks=tensors.blocks(s.n_layers, layout.block),
        ln_final=layout.norm(last),
        output_table=output_table,
        tied=tied,
        **more,
    )
