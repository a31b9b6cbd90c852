"""What each architecture of GGUF is called at Hugging Face, and its tensors and settings.

The names of llama.cpp are in gguf-py/gguf/constants.py and tensor_mapping.py, its settings in
conversion/*.py, where a converter writes each of them from a config.json of Hugging Face.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gptscope.errors import ModelError
from gptscope.model.files import short

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gptscope.model.formats.gguf_header import Header

BLOCK = re.compile(r"blk\.(\d{1,6})\.(.+)")
ROPE_FREQS = "rope_freqs.weight"
FACTORS_LONG, FACTORS_SHORT = "rope_factors_long.weight", "rope_factors_short.weight"
SETTINGS = {ROPE_FREQS, FACTORS_LONG, FACTORS_SHORT}  # tensors that a config says at Hugging Face

NAMES = {  # of a tensor without .weight or .bias; those with {} in each block
    "token_embd": "model.embed_tokens",
    "output_norm": "model.norm",
    "output": "lm_head",
    "attn_norm": "model.layers.{}.input_layernorm",
    "attn_q": "model.layers.{}.self_attn.q_proj",
    "attn_k": "model.layers.{}.self_attn.k_proj",
    "attn_v": "model.layers.{}.self_attn.v_proj",
    "attn_qkv": "model.layers.{}.self_attn.qkv_proj",
    "attn_q_norm": "model.layers.{}.self_attn.q_norm",
    "attn_k_norm": "model.layers.{}.self_attn.k_norm",
    "attn_output": "model.layers.{}.self_attn.o_proj",
    "ffn_norm": "model.layers.{}.post_attention_layernorm",
    "ffn_gate": "model.layers.{}.mlp.gate_proj",
    "ffn_up": "model.layers.{}.mlp.up_proj",
    "ffn_down": "model.layers.{}.mlp.down_proj",
}
AROUND = {  # norms before and after each part
    "post_attention_norm": "model.layers.{}.post_attention_layernorm",
    "ffn_norm": "model.layers.{}.pre_feedforward_layernorm",
    "post_ffw_norm": "model.layers.{}.post_feedforward_layernorm",
}
HEAD_NORMS = {
    "attn_q_norm": "model.layers.{}.self_attn.q_layernorm",
    "attn_k_norm": "model.layers.{}.self_attn.k_layernorm",
}
PHI = {
    "output_norm": "model.final_layernorm",
    "attn_output": "model.layers.{}.self_attn.dense",
    "ffn_up": "model.layers.{}.mlp.fc1",
    "ffn_down": "model.layers.{}.mlp.fc2",
}
STARCODER = {"ffn_up": "model.layers.{}.mlp.c_fc", "ffn_down": "model.layers.{}.mlp.c_proj"}
NEOX = {
    "token_embd": "gpt_neox.embed_in",
    "output_norm": "gpt_neox.final_layer_norm",
    "output": "embed_out",
    "attn_norm": "gpt_neox.layers.{}.input_layernorm",
    "attn_qkv": "gpt_neox.layers.{}.attention.query_key_value",
    "attn_output": "gpt_neox.layers.{}.attention.dense",
    "ffn_norm": "gpt_neox.layers.{}.post_attention_layernorm",
    "ffn_up": "gpt_neox.layers.{}.mlp.dense_h_to_4h",
    "ffn_down": "gpt_neox.layers.{}.mlp.dense_4h_to_h",
}
BLOOM = {
    "token_embd": "transformer.word_embeddings",
    "token_embd_norm": "transformer.word_embeddings_layernorm",
    "output_norm": "transformer.ln_f",
    "attn_norm": "transformer.h.{}.input_layernorm",
    "attn_qkv": "transformer.h.{}.self_attention.query_key_value",
    "attn_output": "transformer.h.{}.self_attention.dense",
    "ffn_norm": "transformer.h.{}.post_attention_layernorm",
    "ffn_up": "transformer.h.{}.mlp.dense_h_to_4h",
    "ffn_down": "transformer.h.{}.mlp.dense_4h_to_h",
}
GPT2 = {
    "token_embd": "transformer.wte",
    "position_embd": "transformer.wpe",
    "output_norm": "transformer.ln_f",
    "attn_norm": "transformer.h.{}.ln_1",
    "attn_qkv": "transformer.h.{}.attn.c_attn",
    "attn_output": "transformer.h.{}.attn.c_proj",
    "ffn_norm": "transformer.h.{}.ln_2",
    "ffn_up": "transformer.h.{}.mlp.c_fc",
    "ffn_down": "transformer.h.{}.mlp.c_proj",
}
KEYS = {  # of a setting behind the name of the architecture
    "context_length": "max_position_embeddings",
    "block_count": "num_hidden_layers",
    "embedding_length": "hidden_size",
    "feed_forward_length": "intermediate_size",
    "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads",
    "attention.key_length": "head_dim",
    "attention.layer_norm_rms_epsilon": "rms_norm_eps",
    "attention.layer_norm_epsilon": "layer_norm_eps",
    "attention.sliding_window": "sliding_window",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "rope.freq_base": "rope_theta",
    "use_parallel_residual": "use_parallel_residual",
    "attention.scale": "attention_multiplier",
    "embedding_scale": "embedding_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
}
NEOX_KEYS = {"rope.freq_base": "rotary_emb_base"}
STARCODER_KEYS = {"attention.layer_norm_epsilon": "norm_epsilon"}
GPT2_KEYS = {
    "context_length": "n_positions",
    "block_count": "n_layer",
    "embedding_length": "n_embd",
    "feed_forward_length": "n_inner",
    "attention.head_count": "n_head",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
}
BLOOM_KEYS = {  # the others follow from these, and "" is not told
    "context_length": "",
    "block_count": "n_layer",
    "embedding_length": "hidden_size",
    "feed_forward_length": "",
    "attention.head_count": "n_head",
    "attention.head_count_kv": "",
    "attention.layer_norm_epsilon": "layer_norm_epsilon",
}
SILU = {"hidden_act": "silu"}
PAIRS = SILU | {"rope_interleaved": True}  # whose q and k the converter has permuted
GEMMA = {"hidden_activation": "gelu_pytorch_tanh", "norm_gain_offset": False}


@dataclass(frozen=True)
class Dialect:
    """One architecture; what it does not say itself is as in Llama."""

    model_type: str
    fixed: Mapping[str, Any] = field(default_factory=lambda: SILU)  # what no setting says
    names: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    rotated: str = ""  # the key for the part of a head that turns, where it may be less than all
    by_head: bool = False  # queries, keys and values of each head are kept together
    full_every: int = 0  # of so many layers, the last sees everything, or has no positions

    def name(self, stored: str) -> str:
        """The name of a tensor at Hugging Face; its own where it has none there."""
        found = BLOCK.fullmatch(stored)
        layer, inner = found.groups() if found else ("", stored)
        part, dot, kind = inner.rpartition(".")
        name = (NAMES | dict(self.names)).get(part)
        if name is None or ("{}" in name) != bool(found):
            return stored
        return name.format(layer) + dot + kind


DIALECTS: Mapping[str, Dialect] = {
    "llama": Dialect("llama", PAIRS),
    "granite": Dialect("granite", PAIRS),
    "smollm3": Dialect("smollm3", PAIRS, full_every=4),
    "qwen2": Dialect("qwen2"),
    "qwen3": Dialect("qwen3"),
    "olmo2": Dialect("olmo2", names=AROUND),
    "phi3": Dialect(
        "phi3",
        names={"ffn_up": "model.layers.{}.mlp.gate_up_proj"},
        rotated="partial_rotary_factor",
    ),
    "stablelm": Dialect("stablelm", names=HEAD_NORMS, rotated="partial_rotary_factor"),
    "gemma": Dialect("gemma", GEMMA),
    "gemma2": Dialect("gemma2", GEMMA, AROUND, full_every=2),
    "gemma3": Dialect("gemma3_text", GEMMA, AROUND, full_every=6),
    "phi2": Dialect("phi", {"hidden_act": "gelu_new"}, PHI, rotated="partial_rotary_factor"),
    "starcoder2": Dialect(
        "starcoder2",
        {"hidden_act": "gelu_pytorch_tanh", "use_bias": True},
        STARCODER,
        STARCODER_KEYS,
    ),
    "gptneox": Dialect(
        "gpt_neox", {"hidden_act": "gelu"}, NEOX, NEOX_KEYS, "rotary_pct", by_head=True
    ),
    "bloom": Dialect("bloom", {}, BLOOM, BLOOM_KEYS, by_head=True),
    "gpt2": Dialect("gpt2", {"activation_function": "gelu_new"}, GPT2, GPT2_KEYS),
}


def dialect_of(path: Path, header: Header) -> Dialect:
    """The dialect of a file.

    Raises:
        ModelError: its architecture is not understood.
    """
    word = header.values.get("general.architecture")
    dialect = DIALECTS.get(word) if isinstance(word, str) else None
    if dialect is None:
        told = "not said" if word is None else short(str(word))
        known = ", ".join(DIALECTS)
        raise ModelError(f"the architecture of {path} is {told}, and those understood are: {known}")
    return dialect
