# Configs as they lie on the hub, every key of them but the sizes: none may be refused. The weights
# are zeros in the shapes of a golden model of the family, whose sizes the config then takes.

import json

import numpy as np
import pytest

import gptscope
from tests.golden.transformers.weights import HERE
from tests.helpers.folders import write_model

SIZES = (
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "no_rope_layers",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "vocab_size",
)
SLIDING, FULL = "sliding_attention", "full_attention"
COMMON = {
    "attention_dropout": 0.0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-5,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.45.0",
    "use_cache": True,
}
LLAMA = COMMON | {
    "architectures": ["LlamaForCausalLM"],
    "attention_bias": False,
    "mlp_bias": False,
    "model_type": "llama",
    "pretraining_tp": 1,
    "tie_word_embeddings": False,
}
MISTRAL = COMMON | {
    "architectures": ["MistralForCausalLM"],
    "model_type": "mistral",
    "tie_word_embeddings": False,
}
QWEN2 = COMMON | {
    "architectures": ["Qwen2ForCausalLM"],
    "max_window_layers": 28,
    "model_type": "qwen2",
    "sliding_window": 131072,
    "use_mrope": False,
    "use_sliding_window": False,
}
PHI3 = COMMON | {
    "_name_or_path": "Phi-3-mini-4k-instruct",
    "architectures": ["Phi3ForCausalLM"],
    "attention_bias": False,
    "auto_map": {
        "AutoConfig": "configuration_phi3.Phi3Config",
        "AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM",
    },
    "embd_pdrop": 0.0,
    "model_type": "phi3",
    "original_max_position_embeddings": 4096,
    "pad_token_id": 32000,
    "resid_pdrop": 0.0,
    "tie_word_embeddings": False,
}
FACTORS = {"long_factor": [1.0, 1.2, 1.5, 2.0], "short_factor": [1.0, 1.1, 1.2, 1.3]}
GEMMA2 = COMMON | {
    "architectures": ["Gemma2ForCausalLM"],
    "attention_bias": False,
    "attn_logit_softcapping": 50.0,
    "cache_implementation": "hybrid",
    "final_logit_softcapping": 30.0,
    "hidden_act": "gelu_pytorch_tanh",
    "hidden_activation": "gelu_pytorch_tanh",
    "model_type": "gemma2",
    "pad_token_id": 0,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
}
GEMMA3 = {key: value for key, value in COMMON.items() if key != "hidden_act"} | {
    "architectures": ["Gemma3ForCausalLM"],
    "attention_bias": False,
    "attn_logit_softcapping": None,
    "cache_implementation": "hybrid",
    "eos_token_id": [1, 106],
    "final_logit_softcapping": None,
    "hidden_activation": "gelu_pytorch_tanh",
    "model_type": "gemma3_text",
    "pad_token_id": 0,
    "query_pre_attn_scalar": 256,
    "rope_local_base_freq": 10000,
    "rope_theta": 1000000,
    "sliding_window": 512,
}
SMOLLM3 = COMMON | {
    "architectures": ["SmolLM3ForCausalLM"],
    "attention_bias": False,
    "layer_types": [FULL] * 3,
    "max_window_layers": 28,
    "mlp_bias": False,
    "model_type": "smollm3",
    "no_rope_layer_interval": 4,
    "pretraining_tp": 2,
    "rope_theta": 5000000.0,
    "sliding_window": None,
    "use_sliding_window": False,
}

STARCODER2 = {key: value for key, value in COMMON.items() if key != "rms_norm_eps"} | {
    "architectures": ["Starcoder2ForCausalLM"],
    "attention_dropout": 0.1,
    "embedding_dropout": 0.1,
    "hidden_act": "gelu_pytorch_tanh",
    "initializer_range": 0.018042,
    "mlp_type": "default",
    "model_type": "starcoder2",
    "norm_epsilon": 1e-5,
    "norm_type": "layer_norm",
    "residual_dropout": 0.1,
    "rope_theta": 999999.4420358813,
    "sliding_window": 4096,
    "use_bias": True,
}
CONFIGS = {  # the golden model of the same family, and the config
    "SmolLM2-135M": (
        "llama",
        LLAMA
        | {
            "is_llama_config": True,
            "rope_interleaved": False,
            "rope_theta": 100000,
            "tie_word_embeddings": True,
            "transformers.js_config": {"kv_cache_dtype": {"fp16": "float16", "q4f16": "float16"}},
        },
    ),
    "TinyLlama-1.1B": ("llama", LLAMA | {"is_causal": True}),
    "tinyllama of unsloth": ("llama", LLAMA | {"unsloth_fixed": True, "unsloth_version": "2025.2"}),
    "Yarn-Llama-2-7b-64k": (
        "llama",
        LLAMA
        | {
            "auto_map": {"AutoModelForCausalLM": "modeling_llama_together_yarn.LlamaForCausalLM"},
            "rope_scaling": {
                "factor": 16.0,
                "finetuned": True,
                "original_max_position_embeddings": 4096,
                "type": "yarn",
            },
        },
    ),
    "vicuna-7b": ("llama", LLAMA | {"max_sequence_length": 2048, "pad_token_id": 0}),
    "Llama-3.2-1B": (
        "llama",
        LLAMA
        | {
            "eos_token_id": [128001, 128008, 128009],
            "max_position_embeddings": 131072,
            "rope_scaling": {
                "factor": 32.0,
                "high_freq_factor": 4.0,
                "low_freq_factor": 1.0,
                "original_max_position_embeddings": 8192,
                "rope_type": "llama3",
            },
            "rope_theta": 500000.0,
            "tie_word_embeddings": True,
        },
    ),
    "Mistral-7B-v0.1": ("mistral", MISTRAL | {"sliding_window": 4096}),
    "Mistral-7B-v0.3": ("mistral", MISTRAL | {"rope_theta": 1000000.0, "sliding_window": None}),
    "Qwen2.5-0.5B": ("qwen2-no-window", QWEN2 | {"tie_word_embeddings": True}),
    "Qwen2.5-7B-long": (
        "qwen2-window",
        QWEN2
        | {
            "rope_scaling": {
                "factor": 4.0,
                "original_max_position_embeddings": 32768,
                "type": "yarn",
            },
            "tie_word_embeddings": False,
        },
    ),
    "Qwen3-0.6B": (
        "qwen3",
        QWEN2
        | {
            "architectures": ["Qwen3ForCausalLM"],
            "attention_bias": False,
            "model_type": "qwen3",
            "sliding_window": None,
            "tie_word_embeddings": True,
        },
    ),
    "gemma-2b": (
        "gemma",
        COMMON
        | {
            "architectures": ["GemmaForCausalLM"],
            "attention_bias": False,
            "hidden_act": "gelu",
            "hidden_activation": None,
            "model_type": "gemma",
            "pad_token_id": 0,
        },
    ),
    "gemma-2-2b": ("gemma2", GEMMA2),
    "gemma-2-9b": ("gemma2", GEMMA2 | {"sliding_window_size": 4096}),
    "gemma-3-1b-it": ("gemma3", GEMMA3 | {"sliding_window_pattern": 6}),
    "gemma-3-270m": (
        "gemma3",
        GEMMA3
        | {
            "_sliding_window_pattern": 6,
            "layer_types": [SLIDING, SLIDING, FULL],
            "use_bidirectional_attention": False,
        },
    ),
    "Phi-3-mini-4k-instruct": ("phi3", PHI3 | {"sliding_window": 2047}),
    "Phi-3-mini-128k-instruct": (
        "phi3",
        PHI3
        | {
            "max_position_embeddings": 131072,
            "rope_scaling": {"type": "longrope"} | FACTORS,
            "sliding_window": 262144,
        },
    ),
    "Phi-4-mini-instruct": (
        "phi3-partial",
        PHI3
        | {
            "full_attn_mod": 1,
            "interpolate_factor": 1,
            "lm_head_bias": False,
            "max_position_embeddings": 131072,
            "mlp_bias": False,
            "partial_rotary_factor": 0.75,
            "rope_scaling": {"type": "longrope"} | {k: v[:3] for k, v in FACTORS.items()},
            "sliding_window": 262144,
            "tie_word_embeddings": True,
        },
    ),
    "OLMo-2-0425-1B": (
        "olmo2",
        COMMON
        | {
            "architectures": ["Olmo2ForCausalLM"],
            "attention_bias": False,
            "model_type": "olmo2",
            "pad_token_id": 100277,
            "rope_theta": 500000,
            "tie_word_embeddings": False,
        },
    ),
    "granite-3.1-2b-instruct": (
        "granite",
        COMMON
        | {
            "architectures": ["GraniteForCausalLM"],
            "attention_bias": False,
            "attention_dropout": 0.1,
            "attention_multiplier": 0.015625,
            "embedding_multiplier": 12.0,
            "logits_scaling": 8.0,
            "mlp_bias": False,
            "model_type": "granite",
            "pad_token_id": 0,
            "residual_multiplier": 0.22,
            "rope_theta": 5000000.0,
            "tie_word_embeddings": True,
        },
    ),
    "SmolLM3-3B": ("smollm3", SMOLLM3),
    "starcoder2-3b": ("starcoder2", STARCODER2),
    "starcoder2, all that it says": (
        "starcoder2",
        STARCODER2
        | {
            "activation_function": "gelu",
            "attention_softmax_in_fp32": True,
            "layer_norm_epsilon": 1e-5,
            "scale_attention_softmax_in_fp32": True,
            "scale_attn_weights": True,
        },
    ),
}


def load(name, tmp_path):
    case, config = CONFIGS[name]
    golden = json.loads((HERE / case / "config.json").read_text("utf-8"))
    shapes = json.loads((HERE / case / "tensors.json").read_text("utf-8"))
    tied = config.get("tie_word_embeddings", golden["tie_word_embeddings"])
    zeros = {
        tensor: np.zeros(shape, np.float16)
        for tensor, (shape, *_) in shapes.items()
        if not (tied and tensor == "lm_head.weight")
    }
    sizes = {key: golden[key] for key in SIZES if key in golden}
    return gptscope.load(write_model(tmp_path, zeros, config | sizes))


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_of_the_hub_is_understood(name, tmp_path):
    model = load(name, tmp_path)
    assert model.spec.family == CONFIGS[name][1]["model_type"]
    assert model.spec.n_ctx >= CONFIGS[name][1]["max_position_embeddings"]
    assert model.tied is CONFIGS[name][1].get("tie_word_embeddings", model.tied)


def windows(model):
    return [block.attention.window for block in model.blocks]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Mistral-7B-v0.1", [4096, 4096]),
        ("Mistral-7B-v0.3", [None, None]),
        ("Qwen2.5-0.5B", [None, None, None]),
        ("gemma-2-2b", [4096, None]),
        ("gemma-3-1b-it", [512, 512, 512]),
        ("gemma-3-270m", [512, 512, None]),
        ("Phi-3-mini-4k-instruct", [2047, 2047]),
        ("starcoder2-3b", [4096, 4096]),
    ],
)
def test_windows_are_where_the_config_has_them(name, expected, tmp_path):
    assert windows(load(name, tmp_path)) == expected


def test_gemma_2b_says_gelu_and_means_the_tanh_form(tmp_path):
    assert load("gemma-2b", tmp_path).spec.activation == "gelu_pytorch_tanh"


def test_layers_of_gemma_3_turn_by_their_own_base(tmp_path):
    local, _, full = (block.attention.turning for block in load("gemma-3-270m", tmp_path).blocks)
    np.testing.assert_allclose(local.speeds[1], 10_000 ** (-2 / 10))
    np.testing.assert_allclose(full.speeds[1], 1_000_000 ** (-2 / 10))


def test_phi_4_turns_three_quarters_of_a_head(tmp_path):
    assert len(load("Phi-4-mini-instruct", tmp_path).blocks[0].attention.turning.speeds) == 3


def test_scales_of_granite(tmp_path):
    model = load("granite-3.1-2b-instruct", tmp_path)
    spec = model.spec
    assert (spec.embed_scale, spec.residual_scale, spec.logit_scale) == (12, 0.22, 1 / 8)
    assert model.blocks[0].attention.scale == 0.015625
