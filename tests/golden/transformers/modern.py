"""Families with RMS norm: Llama, Mistral, Qwen, Gemma, Phi 3, OLMo 2, Granite, SmolLM 3."""

from typing import Any

Config = dict[str, Any]

COMMON: Config = {
    "hidden_size": 32,
    "intermediate_size": 42,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 96,
    "rms_norm_eps": 1e-3,
    "rope_parameters": {"rope_type": "default", "rope_theta": 500.0},
}
LLAMA = COMMON | {"model_type": "llama"}
GROUPED = LLAMA | {"hidden_size": 36, "num_attention_heads": 6, "head_dim": 10}
GEMMA = COMMON | {"model_type": "gemma", "head_dim": 10, "num_key_value_heads": 1}
GEMMA2 = COMMON | {
    "model_type": "gemma2",
    "head_dim": 10,
    "query_pre_attn_scalar": 7,
    "sliding_window": 16,
    "attn_logit_softcapping": 3.0,
    "final_logit_softcapping": 0.5,
}
GEMMA3 = COMMON | {
    "model_type": "gemma3_text",
    "num_hidden_layers": 3,
    "head_dim": 10,
    "query_pre_attn_scalar": 7,
    "sliding_window": 16,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
    "rope_parameters": {
        "sliding_attention": {"rope_type": "default", "rope_theta": 60.0},
        "full_attention": {"rope_type": "default", "rope_theta": 4000.0},
    },
}
PHI3 = COMMON | {"model_type": "phi3", "original_max_position_embeddings": 96}
SHORT, LONG = [1.0, 1.05, 1.2, 1.4], [1.1, 1.6, 2.3, 4.0]
QWEN2 = COMMON | {"model_type": "qwen2", "num_hidden_layers": 3}
SMOLLM3 = COMMON | {
    "model_type": "smollm3",
    "num_hidden_layers": 3,
    "no_rope_layers": [1, 0, 1],
}


def turned(base: Config, kind: str, **more: object) -> Config:
    """The config with another kind of rotary speeds."""
    return base | {"rope_parameters": {"rope_type": kind, "rope_theta": 500.0} | more}


CONFIGS: dict[str, Config] = {
    "llama": LLAMA,
    "llama-heads": LLAMA | {"num_attention_heads": 2, "tie_word_embeddings": True},
    "llama-grouped": GROUPED | {"attention_bias": True, "mlp_bias": True},
    "llama-one-group": GROUPED | {"num_key_value_heads": 1, "hidden_act": "gelu"},
    "llama-linear": turned(LLAMA, "linear", factor=2.5),
    "llama-dynamic": turned(LLAMA, "dynamic", factor=2.5) | {"max_position_embeddings": 48},
    "llama-dynamic-short": turned(LLAMA, "dynamic", factor=2.5),
    "llama-yarn": turned(GROUPED, "yarn", factor=4.0, original_max_position_embeddings=24),
    "llama-yarn-attention": turned(
        GROUPED,
        "yarn",
        factor=4.0,
        original_max_position_embeddings=24,
        attention_factor=0.8,
        beta_fast=6.0,
        beta_slow=0.5,
        truncate=False,
    ),
    "llama-yarn-mscale": turned(
        GROUPED,
        "yarn",
        factor=8.0,
        original_max_position_embeddings=24,
        beta_fast=4.0,
        mscale=0.7,
        mscale_all_dim=1.3,
    ),
    "llama-llama3": turned(
        GROUPED,
        "llama3",
        factor=8.0,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
        original_max_position_embeddings=32,
    ),
    "llama-longrope": turned(
        LLAMA,
        "longrope",
        factor=4.0,
        original_max_position_embeddings=24,
        short_factor=SHORT,
        long_factor=LONG,
    ),
    "mistral": COMMON | {"model_type": "mistral", "sliding_window": 16},
    "mistral-whole": COMMON | {"model_type": "mistral", "sliding_window": None, "head_dim": 6},
    "qwen2-window": QWEN2
    | {"use_sliding_window": True, "sliding_window": 16, "max_window_layers": 2},
    "qwen2-no-window": QWEN2 | {"tie_word_embeddings": True, "max_window_layers": 1},
    "qwen2-types": turned(QWEN2, "yarn", factor=4.0, original_max_position_embeddings=24)
    | {
        "use_sliding_window": True,
        "sliding_window": 16,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
    },
    "qwen3": COMMON | {"model_type": "qwen3", "head_dim": 10},
    "qwen3-bias": COMMON
    | {
        "model_type": "qwen3",
        "head_dim": 6,
        "attention_bias": True,
        "tie_word_embeddings": True,
        "use_sliding_window": True,
        "sliding_window": 16,
        "max_window_layers": 1,
    },
    "gemma": GEMMA,
    "gemma2": GEMMA2,
    "gemma2-uncapped": GEMMA2 | {"attn_logit_softcapping": None, "final_logit_softcapping": None},
    "gemma3": GEMMA3,
    "gemma3-linear": GEMMA3
    | {
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 60.0},
            "full_attention": {"rope_type": "linear", "rope_theta": 4000.0, "factor": 8.0},
        },
        "final_logit_softcapping": 0.5,
    },
    "phi3": PHI3 | {"sliding_window": 16},
    "phi3-short": turned(PHI3, "longrope", short_factor=SHORT, long_factor=LONG)
    | {"max_position_embeddings": 384},
    "phi3-long": turned(PHI3, "longrope", short_factor=SHORT, long_factor=LONG)
    | {"original_max_position_embeddings": 48},
    "phi3-partial": turned(
        PHI3, "longrope", short_factor=SHORT[:3], long_factor=LONG[:3], partial_rotary_factor=0.75
    )
    | {"original_max_position_embeddings": 48, "tie_word_embeddings": True},
    "olmo2": COMMON | {"model_type": "olmo2"},
    "olmo2-bias": COMMON
    | {"model_type": "olmo2", "attention_bias": True, "num_key_value_heads": 4},
    "granite": COMMON
    | {
        "model_type": "granite",
        "embedding_multiplier": 3.0,
        "residual_multiplier": 0.22,
        "attention_multiplier": 0.3,
        "logits_scaling": 1.7,
    },
    "granite-bias": COMMON
    | {
        "model_type": "granite",
        "attention_bias": True,
        "mlp_bias": True,
        "tie_word_embeddings": True,
        "residual_multiplier": 0.5,
        "attention_multiplier": 0.2,
    },
    "smollm3": SMOLLM3,
    "smollm3-interval": {key: value for key, value in SMOLLM3.items() if key != "no_rope_layers"}
    | {"no_rope_layer_interval": 2},
    "smollm3-window": SMOLLM3
    | {
        "use_sliding_window": True,
        "sliding_window": 16,
        "attention_bias": True,
        "mlp_bias": True,
        "tie_word_embeddings": False,
    },
}
