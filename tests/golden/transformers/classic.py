"""Families with LayerNorm: GPT, GPT-2, Neo, J, NeoX, OPT, BLOOM, Phi, StableLM, StarCoder 2."""

from typing import Any

Config = dict[str, Any]

GPT2: Config = {
    "model_type": "gpt2",
    "n_positions": 96,
    "n_embd": 20,
    "n_layer": 2,
    "n_head": 4,
    "n_inner": 36,
    "layer_norm_epsilon": 1e-3,
}
GPT: Config = {
    "model_type": "openai-gpt",
    "n_positions": 90,
    "n_embd": 15,
    "n_layer": 2,
    "n_head": 3,
    "layer_norm_epsilon": 1e-3,
}
NEO: Config = {
    "model_type": "gpt_neo",
    "max_position_embeddings": 88,
    "hidden_size": 18,
    "num_layers": 2,
    "num_heads": 3,
    "attention_types": [[["global", "local"], 1]],
    "window_size": 16,
    "layer_norm_epsilon": 1e-3,
}
J: Config = {
    "model_type": "gptj",
    "n_positions": 96,
    "n_embd": 30,
    "n_layer": 2,
    "n_head": 3,
    "rotary_dim": 6,
    "n_inner": 44,
    "layer_norm_epsilon": 1e-3,
}
NEOX: Config = {
    "model_type": "gpt_neox",
    "hidden_size": 48,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "max_position_embeddings": 96,
    "layer_norm_eps": 1e-3,
    "rope_parameters": {"rope_type": "default", "rope_theta": 700.0, "partial_rotary_factor": 0.25},
}
OPT: Config = {
    "model_type": "opt",
    "hidden_size": 20,
    "num_hidden_layers": 2,
    "ffn_dim": 34,
    "num_attention_heads": 4,
    "max_position_embeddings": 85,
    "word_embed_proj_dim": 20,
}
BLOOM: Config = {
    "model_type": "bloom",
    "hidden_size": 24,
    "n_layer": 2,
    "n_head": 4,
    "layer_norm_epsilon": 1e-3,
}
PHI: Config = {
    "model_type": "phi",
    "hidden_size": 36,
    "intermediate_size": 46,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "max_position_embeddings": 96,
    "layer_norm_eps": 1e-3,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.5},
}
STABLELM: Config = {
    "model_type": "stablelm",
    "hidden_size": 48,
    "intermediate_size": 38,
    "num_hidden_layers": 2,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
    "layer_norm_eps": 1e-3,
    "rope_parameters": {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.25},
}
STARCODER2: Config = {
    "model_type": "starcoder2",
    "hidden_size": 32,
    "intermediate_size": 42,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
    "norm_epsilon": 1e-3,
    "sliding_window": 16,
    "rope_parameters": {"rope_type": "default", "rope_theta": 800.0},
}

CONFIGS: dict[str, Config] = {
    "gpt2": GPT2,
    "gpt2-untied": GPT2
    | {"scale_attn_by_inverse_layer_idx": True, "tie_word_embeddings": False, "n_inner": None},
    "openai-gpt": GPT,
    "openai-gpt-silu": GPT | {"afn": "silu", "tie_word_embeddings": False},
    "gpt_neo": NEO,
    "gpt_neo-intermediate": NEO
    | {
        "intermediate_size": 44,
        "num_layers": 3,
        "attention_types": [[["local"], 2], [["global"], 1]],
    },
    "gptj": J,
    "gptj-whole": J | {"rotary_dim": 10, "n_inner": None, "activation_function": "gelu"},
    "gpt_neox": NEOX,
    "gpt_neox-sequential": NEOX | {"use_parallel_residual": False, "hidden_act": "gelu_fast"},
    "gpt_neox-unbiased": NEOX
    | {
        "attention_bias": False,
        "tie_word_embeddings": True,
        "rope_parameters": {
            "rope_type": "linear",
            "factor": 2.5,
            "rope_theta": 700.0,
            "partial_rotary_factor": 1.0,
        },
    },
    "opt": OPT,
    "opt-350m": OPT | {"do_layer_norm_before": False, "word_embed_proj_dim": 12},
    "opt-plain": OPT
    | {
        "enable_bias": False,
        "layer_norm_elementwise_affine": False,
        "activation_function": "gelu",
        "word_embed_proj_dim": 14,
        "tie_word_embeddings": False,
    },
    "opt-no-last-norm": OPT | {"_remove_final_layer_norm": True},
    "bloom": BLOOM,
    "bloom-6-heads": BLOOM | {"n_head": 6},
    "bloom-after-norm": BLOOM | {"n_head": 3, "apply_residual_connection_post_layernorm": True},
    "phi": PHI,
    "phi-qk-norm": PHI | {"qk_layernorm": True, "num_key_value_heads": 1, "hidden_act": "gelu"},
    "stablelm": STABLELM,
    "stablelm-bias": STABLELM | {"use_qkv_bias": True, "num_key_value_heads": 6},
    "stablelm-parallel": STABLELM | {"use_parallel_residual": True},
    "stablelm-qk-norm": STABLELM | {"qk_layernorm": True, "use_parallel_residual": True},
    "starcoder2": STARCODER2,
    "starcoder2-unbiased": STARCODER2
    | {"use_bias": False, "sliding_window": None, "tie_word_embeddings": False},
}
