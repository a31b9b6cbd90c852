"""GPT-Neo (Black et al. 2021): a GPT-2 of which some layers see only a window of earlier tokens.

Its scores are not divided by sqrt(d_h), as in Mesh TensorFlow, in which it was trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.errors import ModelError
from gptscope.model.families.parts import head, head_width, linear, mlp, norm, without
from gptscope.model.spec import Spec
from gptscope.model.weights import Attention, Block, Model

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors

KINDS = ("global", "local")
USUAL = [[list(KINDS), 12]]


def matches(config: Config, names: Container[str]) -> bool:
    """Whether the config or, where it names no family, the tensors say that this is a GPT-Neo."""
    unnamed = not config.has("model_type")
    return config.says("model_type", "gpt_neo") or (
        unnamed and "h.0.attn.attention.q_proj.weight" in names
    )


rename = without("transformer.")


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place."""
    s, d = spec(config), config.whole("hidden_size")
    size = config.whole("window_size", default=256)
    windows = [size if kind == "local" else None for kind in kinds(config, s.n_layers)]
    token_table = tensors.table("wte.weight", s.n_vocab, d)
    output_table, tied = head(config, tensors, token_table, tied=True)
    masks = ("bias", "masked_bias")  # buffers of old exports, not parameters
    tensors.ignore(f"h.{i}.attn.attention.{mask}" for i in range(s.n_layers) for mask in masks)
    return Model(
        spec=s,
        token_table=token_table,
        position_table=tensors.table("wpe.weight", s.n_ctx, d),
        blocks=tensors.blocks(s.n_layers, lambda i: block(tensors, s, f"h.{i}", windows[i])),
        ln_final=norm(tensors, "ln_f", d, shift=True),
        output_table=output_table,
        tied=tied,
    )


def spec(config: Config) -> Spec:
    """Sizes and choices."""
    d, n_heads = config.whole("hidden_size"), config.whole("num_heads")
    return Spec(
        family="gpt_neo",
        n_layers=config.layers("num_layers"),
        n_heads=n_heads,
        d_model=d,
        d_head=head_width(config, d, n_heads),
        d_ff=config.whole("intermediate_size", default=4 * d),
        n_vocab=config.whole("vocab_size", default=50257),
        n_ctx=config.whole("max_position_embeddings", default=2048),
        activation=config.word("activation_function", default="gelu_new"),
        norm_eps=config.number("layer_norm_epsilon", default=1e-5),
    )


def block(tensors: Tensors, s: Spec, name: str, window: int | None) -> Block:
    """One block; only the output matrix of attention has a bias."""
    d, attention = s.d_model, f"{name}.attn.attention"
    q, k, v = (linear(tensors, f"{attention}.{part}_proj", d, d) for part in "qkv")
    out = linear(tensors, f"{attention}.out_proj", d, d, bias=True)
    return Block(
        norm(tensors, f"{name}.ln_1", d, shift=True),
        Attention(q, k, v, out, scale=1.0, window=window),
        norm(tensors, f"{name}.ln_2", d, shift=True),
        mlp(tensors, s, f"{name}.mlp.c_fc", f"{name}.mlp.c_proj"),
    )


def kinds(config: Config, n_layers: int) -> list[str]:
    """Whether each layer is global or local: [[["global", "local"], 6]] are 12 in turn.

    Raises:
        ModelError: this cannot be read, or is said of another number of layers.
    """
    said = config.anything("attention_types", default=USUAL)
    if not isinstance(said, list) or not all(map(is_repeated, said)):
        raise ModelError(f"{config.source}: attention_types is not a list of [kinds, times]")
    n = sum(len(group) * times for group, times in said)
    if n != n_layers:
        raise ModelError(
            f"{config.source}: attention_types are those of {n} layers, not {n_layers}"
        )
    found = [kind for group, times in said for kind in group * times]
    if (config.words("attention_layers", n_layers) or tuple(found)) != tuple(found):
        raise ModelError(f"{config.source}: attention_layers are not what attention_types say")
    return found


def is_repeated(part: Any) -> bool:  # noqa: ANN401
    """Whether this is a list of kinds of layer, and how often it is repeated."""
    match part:
        case [[*group], times]:
            return type(times) is int and times > 0 and all(kind in KINDS for kind in group)
    return False
