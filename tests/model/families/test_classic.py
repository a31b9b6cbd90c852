# Families with LayerNorm: configs as the hub has them, detection by names, and what is refused.

import json

import numpy as np
import pytest

import gptscope
from gptscope.errors import ModelError
from gptscope.model.families import bloom
from tests.golden.transformers.weights import HERE, weights, write_folder
from tests.helpers.folders import write_model

GPT2 = {
    "activation_function": "gelu_new",
    "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1,
    "bos_token_id": 50256,
    "embd_pdrop": 0.1,
    "eos_token_id": 50256,
    "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-5,
    "model_type": "gpt2",
    "n_ctx": 1024,
    "n_embd": 768,
    "n_head": 12,
    "n_layer": 12,
    "n_positions": 1024,
    "resid_pdrop": 0.1,
    "summary_activation": None,
    "summary_first_dropout": 0.1,
    "summary_proj_to_labels": True,
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "task_specific_params": {"text-generation": {"do_sample": True, "max_length": 50}},
    "vocab_size": 50257,
}
PHI2 = {
    "_name_or_path": "microsoft/phi-2",
    "architectures": ["PhiForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 50256,
    "embd_pdrop": 0.0,
    "eos_token_id": 50256,
    "hidden_act": "gelu_new",
    "hidden_size": 2560,
    "initializer_range": 0.02,
    "intermediate_size": 10240,
    "layer_norm_eps": 1e-5,
    "max_position_embeddings": 2048,
    "model_type": "phi",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "partial_rotary_factor": 0.4,
    "qk_layernorm": False,
    "resid_pdrop": 0.1,
    "rope_scaling": None,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "transformers_version": "4.37.0",
    "use_cache": True,
    "vocab_size": 51200,
}
PYTHIA = {
    "architectures": ["GPTNeoXForCausalLM"],
    "bos_token_id": 0,
    "eos_token_id": 0,
    "hidden_act": "gelu",
    "hidden_size": 512,
    "initializer_range": 0.02,
    "intermediate_size": 2048,
    "layer_norm_eps": 1e-5,
    "max_position_embeddings": 2048,
    "model_type": "gpt_neox",
    "num_attention_heads": 8,
    "num_hidden_layers": 6,
    "rotary_emb_base": 10000,
    "rotary_pct": 0.25,
    "tie_word_embeddings": False,
    "torch_dtype": "float16",
    "transformers_version": "4.24.0",
    "use_cache": True,
    "use_parallel_residual": True,
    "vocab_size": 50304,
}
OPT = {
    "_name_or_path": "facebook/opt-125m",
    "activation_dropout": 0.0,
    "activation_function": "relu",
    "architectures": ["OPTForCausalLM"],
    "attention_dropout": 0.0,
    "bos_token_id": 2,
    "do_layer_norm_before": True,
    "dropout": 0.1,
    "eos_token_id": 2,
    "ffn_dim": 3072,
    "hidden_size": 768,
    "init_std": 0.02,
    "layerdrop": 0.0,
    "max_position_embeddings": 2048,
    "model_type": "opt",
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 1,
    "prefix": "</s>",
    "torch_dtype": "float16",
    "transformers_version": "4.21.0.dev0",
    "use_cache": True,
    "vocab_size": 50272,
    "word_embed_proj_dim": 768,
}
STABLELM = {
    "architectures": ["StableLmForCausalLM"],
    "bos_token_id": 0,
    "eos_token_id": 0,
    "hidden_act": "silu",
    "hidden_size": 2560,
    "initializer_range": 0.02,
    "intermediate_size": 6912,
    "layer_norm_eps": 1e-5,
    "max_position_embeddings": 4096,
    "model_type": "stablelm",
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 32,
    "partial_rotary_factor": 0.25,
    "rope_theta": 10000,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "transformers_version": "4.38.0",
    "use_cache": True,
    "use_qkv_bias": False,
    "vocab_size": 50304,
}
GPT_NEO = {
    "activation_function": "gelu_new",
    "architectures": ["GPTNeoForCausalLM"],
    "attention_dropout": 0,
    "attention_layers": ["global", "local"] * 6,
    "attention_types": [[["global", "local"], 6]],
    "bos_token_id": 50256,
    "embed_dropout": 0,
    "eos_token_id": 50256,
    "gradient_checkpointing": False,
    "hidden_size": 768,
    "initializer_range": 0.02,
    "intermediate_size": None,
    "layer_norm_epsilon": 1e-5,
    "max_position_embeddings": 2048,
    "model_type": "gpt_neo",
    "num_heads": 12,
    "num_layers": 12,
    "resid_dropout": 0,
    "summary_activation": None,
    "summary_first_dropout": 0.1,
    "summary_proj_to_labels": True,
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "torch_dtype": "float32",
    "transformers_version": "4.9.0.dev0",
    "use_cache": True,
    "vocab_size": 50257,
    "window_size": 256,
}
GPT_J = {
    "activation_function": "gelu_new",
    "architectures": ["GPTJForCausalLM"],
    "attn_pdrop": 0.0,
    "bos_token_id": 50256,
    "embd_pdrop": 0.0,
    "eos_token_id": 50256,
    "gradient_checkpointing": False,
    "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-5,
    "model_type": "gptj",
    "n_embd": 4096,
    "n_head": 16,
    "n_inner": None,
    "n_layer": 28,
    "n_positions": 2048,
    "resid_pdrop": 0.0,
    "rotary": True,
    "rotary_dim": 64,
    "scale_attn_weights": True,
    "summary_activation": None,
    "summary_first_dropout": 0.1,
    "summary_proj_to_labels": True,
    "summary_type": "cls_index",
    "summary_use_proj": True,
    "task_specific_params": {"text-generation": {"do_sample": True, "temperature": 1.0}},
    "tie_word_embeddings": False,
    "tokenizer_class": "GPT2Tokenizer",
    "transformers_version": "4.18.0.dev0",
    "use_cache": True,
    "vocab_size": 50400,
}
BLOOM = {
    "apply_residual_connection_post_layernorm": False,
    "attention_dropout": 0.0,
    "attention_softmax_in_fp32": True,
    "architectures": ["BloomForCausalLM"],
    "bias_dropout_fusion": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 3,
    "unk_token_id": 0,
    "hidden_dropout": 0.0,
    "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-5,
    "masked_softmax_fusion": True,
    "model_type": "bloom",
    "n_embed": 1024,
    "n_inner": None,
    "n_layer": 24,
    "num_attention_heads": 16,
    "offset_alibi": 100,
    "pretraining_tp": 1,
    "skip_bias_add": True,
    "skip_bias_add_qkv": False,
    "transformers_version": "4.20.0",
    "use_cache": True,
    "vocab_size": 250880,
}
GPT = GPT2 | {
    "afn": "gelu",
    "architectures": ["OpenAIGPTLMHeadModel"],
    "model_type": "openai-gpt",
    "n_ctx": 512,
    "n_positions": 512,
    "n_special": 0,
    "predict_special_tokens": True,
    "vocab_size": 40478,
}
del GPT["activation_function"], GPT["bos_token_id"], GPT["eos_token_id"]

# A config of the hub, the sizes made small, and the golden model whose tensors are like its own.
HUB = {
    "openai-gpt": (GPT, {"n_embd": 15, "n_head": 3}, "openai-gpt"),
    "gpt2": (GPT2, {"n_embd": 20, "n_head": 4, "n_inner": 36}, "gpt2"),
    "distilgpt2": (
        GPT2 | {"_num_labels": 1, "id2label": {"0": "LABEL_0"}, "label2id": {"LABEL_0": 0}},
        {"n_embd": 20, "n_head": 4, "n_inner": 36},
        "gpt2",
    ),
    "gpt-neo-125m": (
        GPT_NEO,
        {
            "hidden_size": 18,
            "num_heads": 3,
            "attention_types": [[["global", "local"], 1]],
            "attention_layers": ["global", "local"],
        },
        "gpt_neo",
    ),
    "gpt-j-6b": (GPT_J, {"n_embd": 30, "n_head": 3, "rotary_dim": 6, "n_inner": 44}, "gptj"),
    "pythia-70m": (PYTHIA, {}, "gpt_neox"),
    "gpt-neox-20b": (
        PYTHIA | {"hidden_act": "gelu_fast", "attention_probs_dropout_prob": 0, "rotary_pct": 0.25},
        {"hidden_dropout_prob": 0.1},
        "gpt_neox",
    ),
    "opt-125m": (OPT, {"word_embed_proj_dim": 20}, "opt"),
    "galactica-125m": (
        OPT | {"activation_function": "gelu", "learned_embeddings": True},
        {"scale_embeddings": False, "word_embed_proj_dim": 20},
        "opt",
    ),
    "opt-350m": (
        OPT | {"do_layer_norm_before": False, "_remove_final_layer_norm": False},
        {"word_embed_proj_dim": 12},
        "opt-350m",
    ),
    "bloom-560m": (BLOOM, {"n_embed": 24, "num_attention_heads": 4}, "bloom"),
    "bloom": (
        BLOOM | {"seq_length": 2048, "n_head": 4, "hidden_size": 24},
        {"n_embed": None, "num_attention_heads": None},
        "bloom",
    ),
    "phi-1": (PHI2 | {"partial_rotary_factor": 0.5, "num_key_value_heads": None}, {}, "phi"),
    "phi-2": (PHI2, {"partial_rotary_factor": 0.5, "num_key_value_heads": 3}, "phi"),
    "stablelm-3b-4e1t": (STABLELM, {}, "stablelm"),
    "stablelm-2-1_6b": (
        STABLELM | {"use_qkv_bias": True, "vocab_size": 100352},
        {"num_key_value_heads": 6},
        "stablelm-bias",
    ),
    "stablelm-first": (
        {
            key: x
            for key, x in STABLELM.items()
            if key not in {"layer_norm_eps", "partial_rotary_factor"}
        }
        | {"model_type": "stablelm_epoch", "norm_eps": 1e-5, "rope_pct": 0.25},
        {},
        "stablelm",
    ),
}
SIZES = (
    "hidden_size",
    "intermediate_size",
    "ffn_dim",
    "max_position_embeddings",
    "n_ctx",
    "n_layer",
    "n_positions",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "num_layers",
    "vocab_size",
)


def config_of(case):
    return json.loads((HERE / case / "config.json").read_text("utf-8"))


def small(name):
    """The hub's config, its sizes those of a golden model."""
    config, sizes, case = HUB[name]
    golden = config_of(case)
    taken = {key: golden[key] for key in SIZES if key in golden and config.get(key) is not None}
    if "n_ctx" in config:
        taken["n_ctx"] = golden["n_positions"]
    return config | taken | sizes


def zeros(case):
    return {name: np.zeros_like(x) for name, x in weights(case).items()}


@pytest.mark.parametrize("name", HUB)
def test_configs_of_the_hub_open(tmp_path, name):
    case = HUB[name][2]
    model = gptscope.load(write_model(tmp_path, zeros(case), small(name)))
    assert model.spec.n_layers == len(model.blocks) == 2
    expected = gptscope.load(write_folder(case, tmp_path / "golden")).spec
    assert (model.spec.wiring, model.spec.d_head) == (expected.wiring, expected.d_head)


# Families by the names of their tensors


@pytest.mark.parametrize("case", sorted({case for _, _, case in HUB.values()}))
def test_a_config_that_names_no_family_is_told_by_the_tensors(tmp_path, case):
    config = config_of(case)
    spec = gptscope.load(write_model(tmp_path / "named", weights(case), config)).spec
    del config["model_type"]
    assert gptscope.load(write_model(tmp_path / "unnamed", weights(case), config)).spec == spec


@pytest.mark.parametrize(
    ("case", "key"),
    [
        ("openai-gpt", "n_head"),
        ("gpt_neo", "num_heads"),
        ("gptj", "n_head"),
        ("gpt_neox", "num_attention_heads"),
        ("opt", "num_attention_heads"),
        ("bloom", "n_head"),
        ("phi", "num_attention_heads"),
        ("stablelm", "num_attention_heads"),
    ],
)
def test_a_size_that_only_the_config_knows_is_named(tmp_path, case, key):
    config = config_of(case)
    del config[key], config["model_type"]
    with pytest.raises(ModelError, match=f"^config.json does not say {key}$"):
        gptscope.load(write_model(tmp_path, weights(case), config))


# What is refused


@pytest.mark.parametrize(
    ("case", "change", "why"),
    [
        ("openai-gpt", {"afn": "tanh"}, "afn is 'tanh', not one of: gelu, relu, silu, swish"),
        ("openai-gpt", {"n_head": 4}, "4 heads do not divide the width 15"),
        ("gpt_neo", {"num_heads": 4}, "4 heads do not divide the width 18"),
        ("gpt_neo", {"attention_types": "global"}, "attention_types is not a list of"),
        ("gpt_neo", {"attention_types": [["global", 2]]}, "attention_types is not a list of"),
        ("gpt_neo", {"attention_types": [[["far"], 2]]}, "attention_types is not a list of"),
        ("gpt_neo", {"attention_types": [[["local"], True]]}, "attention_types is not a list of"),
        ("gpt_neo", {"attention_types": [[["local"], -2]]}, "attention_types is not a list of"),
        ("gpt_neo", {"attention_types": [[["local"], 10**12]]}, "of 1000000000000 layers, not 2"),
        ("gpt_neo", {"attention_layers": ["local", "global"]}, "attention_layers are not what"),
        ("gpt_neo", {"attention_layers": ["local"]}, "attention_layers is .*, not 2 words"),
        ("gptj", {"rotary": False}, "rotary = false is not supported"),
        ("gptj", {"scale_attn_weights": False}, "scale_attn_weights = false is not supported"),
        ("gptj", {"rotary_dim": 5}, "5 of 10 numbers of a head cannot turn"),
        ("gptj", {"rotary_dim": 12}, "12 of 10 numbers of a head cannot turn"),
        ("gpt_neox", {"attention_bias": 1}, "attention_bias is 1, not true or false"),
        ("gpt_neox", {"rope_parameters": {"rope_type": "odd"}}, "rope_type 'odd' is not one of"),
        ("opt", {"num_attention_heads": 3}, "3 heads do not divide the width 20"),
        ("bloom", {"n_head": 5}, "5 heads do not divide the width 24"),
        ("bloom", {"alibi_bias_max": 8}, "alibi_bias_max = 8 is not understood"),
        ("phi", {"num_key_value_heads": 2}, "3 heads cannot share 2 heads"),
        ("stablelm", {"num_key_value_heads": 4}, "6 heads cannot share 4 heads"),
    ],
)
def test_a_config_without_sense_is_refused(tmp_path, case, change, why):
    with pytest.raises(ModelError, match=rf"^(rope_parameters of )?config\.json:? .*{why}"):
        gptscope.load(write_model(tmp_path, weights(case), config_of(case) | change))


@pytest.mark.parametrize(
    ("case", "change", "why"),
    [
        ("openai-gpt", {"n_positions": 91}, r"positions_embed\.weight .* asks for \[91, 15\]"),
        ("gpt_neo", {"intermediate_size": 71}, r"h\.0\.mlp\.c_fc\.weight .* asks for \[71, 18\]"),
        ("gptj", {"n_inner": None}, r"h\.0\.mlp\.fc_in\.weight .* asks for \[120, 30\]"),
        ("gpt_neox", {"attention_bias": False}, r"does not have: .*attention\.dense\.bias"),
        ("gpt_neox-unbiased", {"attention_bias": True}, r"lacks .*query_key_value\.bias"),
        ("opt", {"max_position_embeddings": 87}, r"embed_positions\.weight .* asks for \[89, 20\]"),
        ("opt", {"enable_bias": False}, r"does not have: .*bias"),
        ("opt", {"layer_norm_elementwise_affine": False}, r"does not have: .*layer_norm"),
        ("opt", {"do_layer_norm_before": False}, r"does not have: .*final_layer_norm"),
        ("opt", {"word_embed_proj_dim": 12}, r"embed_tokens\.weight .* asks for \[43, 12\]"),
        ("opt-350m", {"do_layer_norm_before": True}, r"lacks the tensor final_layer_norm"),
        ("bloom", {"n_embed": 28}, r"word_embeddings\.weight .* asks for \[43, 28\]"),
        ("phi", {"qk_layernorm": True}, r"lacks .*q_layernorm\.weight"),
        ("phi-qk-norm", {"qk_layernorm": False}, r"does not have: .*layernorm"),
        ("stablelm", {"use_qkv_bias": True}, r"lacks .*q_proj\.bias"),
        ("stablelm", {"use_parallel_residual": True}, r"does not have: .*post_attention_layernorm"),
        ("stablelm-qk-norm", {"qk_layernorm": False}, r"does not have: .*norms\.0\.weight"),
    ],
)
def test_a_config_of_another_model_is_refused(tmp_path, case, change, why):
    with pytest.raises(ModelError, match=why):
        gptscope.load(write_model(tmp_path, weights(case), config_of(case) | change))


CLASSIC = ("openai-gpt", "gpt_neo", "gptj", "gpt_neox", "opt-350m", "bloom", "phi", "stablelm")


@pytest.mark.parametrize("case", CLASSIC)
def test_every_missing_tensor_is_named(tmp_path, case):
    stored, config = weights(case), config_of(case)
    for i, name in enumerate(stored):
        kept = {other: x for other, x in stored.items() if other != name}
        with pytest.raises(ModelError, match=r"lacks the tensor") as fault:
            gptscope.load(write_model(tmp_path / str(i), kept, config))
        lacking = str(fault.value).rpartition(" ")[2]
        assert name.replace("embed_out", "lm_head").endswith(lacking)


# What goldens do not show


def test_slopes_of_a_power_of_two_are_those_of_the_paper():
    # Press, Smith and Lewis 2022, section 3: for 8 heads, 1/2, 1/4, ..., 1/256.
    assert bloom.slopes(8) == tuple(2.0**-i for i in range(1, 9))
    np.testing.assert_allclose(bloom.slopes(16), 2 ** (-np.arange(1, 17) / 2), rtol=1e-15)
    assert bloom.slopes(1) == (2.0**-8,)


def test_slopes_of_other_numbers_borrow_between_them():
    # As their published code gives them for 6 heads: those of 4, then every second of 8.
    assert bloom.slopes(6) == (2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3)
    assert bloom.slopes(3) == (2**-4, 2**-8, 2**-2)


def test_positions_of_opt_start_at_its_third_row(tmp_path):
    model = gptscope.load(write_folder("opt", tmp_path))
    stored = weights("opt")["model.decoder.embed_positions.weight"]
    np.testing.assert_array_equal(model.position_table, stored[2:], strict=True)


def test_layers_of_neo_look_as_far_as_the_config_says(tmp_path):
    model = gptscope.load(write_folder("gpt_neo-intermediate", tmp_path))
    assert [block.attention.window for block in model.blocks] == [16, 16, None]
    assert [block.attention.scale for block in model.blocks] == [1.0] * 3


def test_heads_of_phi_and_stablelm_turn_in_part(tmp_path):
    turned = {"phi": (6, 12), "stablelm": (2, 8), "gptj": (6, 10), "gpt_neox": (4, 16)}
    for case, (dims, d_head) in turned.items():
        model = gptscope.load(write_folder(case, tmp_path / case))
        assert model.spec.d_head == d_head
        assert 2 * len(model.blocks[0].attention.turning.speeds) == dims
