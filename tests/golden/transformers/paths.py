"""Where each family keeps its parts in transformers: paths in the model, and paths in a layer."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any


@dataclass(frozen=True)
class Paths:
    """The defaults are Llama's; None is a part that the family lacks."""

    tokens: str = "model.embed_tokens"
    positions: str | None = None
    embed_norm: str | None = None
    layers: str = "model.layers"
    final: str | None = "model.norm"
    ln1: str = "input_layernorm"
    ln2: str | None = "post_attention_layernorm"
    ln1_post: str | None = None
    ln2_post: str | None = None
    attention: str = "self_attn"
    qkv: tuple[str, ...] = ("q_proj", "k_proj", "v_proj")  # one path where they are fused
    by_head: bool = False  # fused head by head, not part by part
    norms: tuple[str, str] | None = None  # of queries and keys
    out: str = "o_proj"
    gate: str | None = "mlp.gate_proj"
    up: str = "mlp.up_proj"
    down: str = "mlp.down_proj"
    wiring: str = "pre"  # "post", "parallel", or "after": only what a part adds is normalised
    rotary: bool = True
    side_by_side: bool = False  # columns 0 and 1 turn together, not 0 and d_h / 2


LLAMA = Paths()
GEMMA2 = replace(
    LLAMA,
    ln2="pre_feedforward_layernorm",
    ln1_post="post_attention_layernorm",
    ln2_post="post_feedforward_layernorm",
)
GPT2 = Paths(
    tokens="transformer.wte",
    positions="transformer.wpe",
    layers="transformer.h",
    final="transformer.ln_f",
    ln1="ln_1",
    ln2="ln_2",
    attention="attn",
    qkv=("c_attn",),
    out="c_proj",
    gate=None,
    up="mlp.c_fc",
    down="mlp.c_proj",
    rotary=False,
)
NEOX = Paths(
    tokens="gpt_neox.embed_in",
    layers="gpt_neox.layers",
    final="gpt_neox.final_layer_norm",
    attention="attention",
    qkv=("query_key_value",),
    by_head=True,
    out="dense",
    gate=None,
    up="mlp.dense_h_to_4h",
    down="mlp.dense_4h_to_h",
)
PATHS: Mapping[str, Paths] = {
    "gpt2": GPT2,
    "openai-gpt": replace(
        GPT2,
        tokens="transformer.tokens_embed",
        positions="transformer.positions_embed",
        final=None,
        wiring="post",
    ),
    "gpt_neo": replace(
        GPT2, attention="attn.attention", qkv=("q_proj", "k_proj", "v_proj"), out="out_proj"
    ),
    "gptj": replace(
        GPT2,
        positions=None,
        ln2=None,
        qkv=("q_proj", "k_proj", "v_proj"),
        out="out_proj",
        up="mlp.fc_in",
        down="mlp.fc_out",
        wiring="parallel",
        rotary=True,
        side_by_side=True,
    ),
    "gpt_neox": NEOX,
    "opt": replace(
        LLAMA,
        tokens="model.decoder.embed_tokens",
        positions="model.decoder.embed_positions",
        layers="model.decoder.layers",
        final="model.decoder.final_layer_norm",
        ln1="self_attn_layer_norm",
        ln2="final_layer_norm",
        out="out_proj",
        gate=None,
        up="fc1",
        down="fc2",
        rotary=False,
    ),
    "bloom": replace(
        NEOX,
        tokens="transformer.word_embeddings",
        embed_norm="transformer.word_embeddings_layernorm",
        layers="transformer.h",
        final="transformer.ln_f",
        attention="self_attention",
        rotary=False,
    ),
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "qwen3": replace(LLAMA, norms=("q_norm", "k_norm")),
    "gemma": LLAMA,
    "gemma2": GEMMA2,
    "gemma3_text": replace(GEMMA2, norms=("q_norm", "k_norm")),
    "phi": replace(
        LLAMA,
        final="model.final_layernorm",
        ln2=None,
        out="dense",
        gate=None,
        up="mlp.fc1",
        down="mlp.fc2",
        wiring="parallel",
        norms=("q_layernorm", "k_layernorm"),
    ),
    "phi3": replace(LLAMA, qkv=("qkv_proj",), gate="mlp.gate_up_proj", up="mlp.gate_up_proj"),
    "olmo2": replace(
        LLAMA,
        ln1="post_attention_layernorm",
        ln2="post_feedforward_layernorm",
        norms=("q_norm", "k_norm"),
        wiring="after",
    ),
    "stablelm": replace(LLAMA, norms=("q_layernorm", "k_layernorm")),
    "starcoder2": replace(LLAMA, gate=None, up="mlp.c_fc", down="mlp.c_proj"),
    "granite": LLAMA,
    "smollm3": LLAMA,
}


def paths(config: Any) -> Paths:
    """The family's paths, and what this config changes in them."""
    found = PATHS[config.model_type]
    if getattr(config, "use_parallel_residual", False):
        two = config.model_type == "gpt_neox"
        found = replace(found, wiring="parallel", ln2=found.ln2 if two else None)
    if not getattr(config, "qk_layernorm", True):
        found = replace(found, norms=None)
    if not getattr(config, "do_layer_norm_before", True):
        found = replace(found, wiring="post", final=None)
    if getattr(config, "_remove_final_layer_norm", False):
        found = replace(found, final=None)
    if getattr(config, "word_embed_proj_dim", None) not in {None, config.hidden_size}:
        found = replace(found, tokens="model.decoder.project_in")
    return found
