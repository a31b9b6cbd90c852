"""The `config.json` of a trained model, and the sizes and design that one names."""

from dataclasses import replace
from typing import Any

from training.design import BASE, EPS, GPT2, LLAMA, TOY, Design, Sizes
from training.errors import InputError

END_ID = 0
Config = dict[str, Any]
GPT2_SIZES = {
    "vocab": "vocab_size",
    "ctx": "n_positions",
    "width": "n_embd",
    "blocks": "n_layer",
    "heads": "n_head",
    "ff": "n_inner",
}
LLAMA_SIZES = {
    "vocab": "vocab_size",
    "ctx": "max_position_embeddings",
    "width": "hidden_size",
    "blocks": "num_hidden_layers",
    "heads": "num_attention_heads",
    "kv_heads": "num_key_value_heads",
    "ff": "intermediate_size",
}
OPTIONAL: Config = {"n_inner": None, "num_key_value_heads": None}
CHECKED = (
    "activation_function",
    "hidden_act",
    "layer_norm_epsilon",
    "rms_norm_eps",
    "positions",
    "rope_theta",
    "rope_parameters",
    "rope_scaling",
    "norm",
    "head_dim",
    "attention_bias",
    "mlp_bias",
    "tie_word_embeddings",
)


def config_of(sizes: Sizes, design: Design) -> Config:
    """The `config.json` of a model of these sizes and this design."""
    write, keys, _ = FAMILIES[design.family]
    return write(sizes, design, {key: getattr(sizes, name) for name, key in keys.items()})


def gpt2_config(sizes: Sizes, design: Design, named: Config) -> Config:
    """What transformers' GPT2LMHeadModel reads."""
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        **named,
        "n_inner": None if sizes.ff == 4 * sizes.width else sizes.ff,
        "activation_function": design.activation,
        "layer_norm_epsilon": EPS,
        "tie_word_embeddings": True,
        "bos_token_id": END_ID,
        "eos_token_id": END_ID,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "dtype": "float32",
    }


def llama_config(sizes: Sizes, design: Design, named: Config) -> Config:
    """What transformers' LlamaForCausalLM reads: `rope_theta` until 4, `rope_parameters` from 5."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **named,
        "num_key_value_heads": sizes.groups,
        "head_dim": sizes.head_width,
        "hidden_act": design.activation,
        "rms_norm_eps": EPS,
        "rope_theta": BASE,
        "rope_scaling": None,
        "rope_parameters": {"rope_theta": BASE, "rope_type": "default"},
        "attention_bias": design.bias,
        "attention_dropout": 0.0,
        "mlp_bias": design.bias,
        "tie_word_embeddings": True,
        "bos_token_id": END_ID,
        "eos_token_id": END_ID,
        "dtype": "float32",
    }


def toy_config(_: Sizes, design: Design, named: Config) -> Config:
    """What gptscope's family `toy` reads; a sentence has an end, but no token before its start."""
    return {
        "model_type": "toy",
        **named,
        "activation_function": design.activation,
        "layer_norm_epsilon": EPS,
        "positions": design.positions,
        "norm": "pre",
        "causal": design.causal,
        "tie_word_embeddings": True,
        "eos_token_id": END_ID,
    }


FAMILIES = {
    "gpt2": (gpt2_config, GPT2_SIZES, GPT2),
    "llama": (llama_config, LLAMA_SIZES, LLAMA),
    "toy": (toy_config, GPT2_SIZES, TOY),
}


def read_config(config: Config) -> tuple[Sizes, Design]:
    """Sizes and design of a `config.json`; raises InputError for one that `GPT` cannot compute."""
    family = config["model_type"]
    if family not in FAMILIES:
        raise InputError(
            f"config.json has model_type {family!r}; here it must be one of {', '.join(FAMILIES)}"
        )
    _, keys, design = FAMILIES[family]
    named = {name: (OPTIONAL | config)[key] for name, key in keys.items()}
    sizes = Sizes(**named | {"ff": named["ff"] or 4 * named["width"]})
    if family == "toy":
        design = replace(design, causal=config["causal"])
    refuse_others(config, config_of(sizes, design))
    return sizes, design


def refuse_others(config: Config, ours: Config) -> None:
    """Raises InputError if the config asks for another computation than ours does."""
    for key in (key for key in CHECKED if key in ours):
        if config.get(key, ours[key]) != ours[key]:
            raise InputError(
                f"config.json has {key} {config[key]!r}; here it must be {ours[key]!r}"
            )
