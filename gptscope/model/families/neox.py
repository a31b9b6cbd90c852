"""GPT-NeoX (Black et al. 2022) and Pythia (Biderman et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.model.families import decoder
from gptscope.model.families.parts import apart_by_head, head, linear, mlp, norm, without
from gptscope.model.positions import BASE
from gptscope.model.rotary import turning
from gptscope.model.weights import Attention, Block, Model

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.spec import Spec
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Turning

inner = without("gpt_neox.")
BUFFERS = ("bias", "masked_bias", "rotary_emb.inv_freq")  # of old exports, not parameters


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a NeoX."""
    unnamed = not config.has("model_type")
    return config.says("model_type", "gpt_neox") or (unnamed and "embed_in.weight" in names)


def rename(name: str) -> str:
    """The output matrix as others call it."""
    return inner(name).replace("embed_out.", "lm_head.")


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    s, bias = spec(config), config.flag("attention_bias", default=True)
    turned = turning(
        config,
        s.d_head,
        base=config.number("rotary_emb_base", default=BASE),
        share=config.number("rotary_pct", default=0.25),
    )
    token_table = tensors.table("embed_in.weight", s.n_vocab, s.d_model)
    output_table, tied = head(config, tensors, token_table, tied=False)
    tensors.ignore(f"layers.{i}.attention.{name}" for i in range(s.n_layers) for name in BUFFERS)
    return Model(
        spec=s,
        token_table=token_table,
        position_table=None,
        blocks=tensors.blocks(
            s.n_layers, lambda i: block(tensors, s, f"layers.{i}", turned, bias=bias)
        ),
        ln_final=norm(tensors, "final_layer_norm", s.d_model, shift=True),
        output_table=output_table,
        tied=tied,
    )


def spec(config: Config) -> Spec:
    """Sizes and choices."""
    side_by_side = config.flag("use_parallel_residual", default=True)
    return decoder.sizes(
        config,
        "gpt_neox",
        activation=config.word("hidden_act", default="gelu"),
        norm="layer_norm",
        norm_eps=config.number("layer_norm_eps", default=1e-5),
        wiring="parallel" if side_by_side else "pre_norm",
    )


def block(tensors: Tensors, s: Spec, name: str, turned: Turning, *, bias: bool) -> Block:
    """One block; queries, keys and values lie head by head."""
    d, attention = s.d_model, f"{name}.attention"
    joined = linear(tensors, f"{attention}.query_key_value", d, 3 * d, bias=bias)
    out = linear(tensors, f"{attention}.dense", d, d, bias=bias)
    return Block(
        norm(tensors, f"{name}.input_layernorm", d, shift=True),
        Attention(*apart_by_head(joined, s.d_head), out, s.d_head**-0.5, turned),
        norm(tensors, f"{name}.post_attention_layernorm", d, shift=True),
        mlp(tensors, s, f"{name}.mlp.dense_h_to_4h", f"{name}.mlp.dense_4h_to_h"),
    )
