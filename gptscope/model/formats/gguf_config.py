"""The settings of a GGUF file in the words of a config.json of Hugging Face."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.errors import ModelError
from gptscope.model.files import short
from gptscope.model.formats.gguf_dialects import (
    FACTORS_LONG,
    FACTORS_SHORT,
    KEYS,
    ROPE_FREQS,
    Dialect,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from gptscope.model.formats.gguf_header import Header

# Settings that are told by others, or by the tensors, or that change nothing.
IGNORED = {
    "attention.causal",  # checked below
    "attention.sliding_window_pattern",
    "attention.value_length",
    "expert_count",
    "expert_used_count",
    "mm.tokens_per_image",
    "rope.dimension_count",
    "rope.freq_base_swa",
    "rope.scale_linear",
    "rope.scaling.finetuned",
    "rope.scaling.type",
    "tensor_data_layout",
    "vocab_size",
}
SCALING = "rope.scaling."
SCALES = {  # behind it -> in rope_scaling
    "factor": "factor",
    "original_context_length": "original_max_position_embeddings",
    "attn_factor": "attention_factor",
    "yarn_attn_factor": "attention_factor",
    "yarn_beta_fast": "beta_fast",
    "yarn_beta_slow": "beta_slow",
}
STOPS = ("eos_token_id", "eot_token_id", "eom_token_id")
FLOAT32 = 0  # ggml's number


def config_of(path: Path, header: Header, dialect: Dialect) -> dict[str, Any]:
    """The config: sizes, constants, how positions turn, special tokens.

    Raises:
        ModelError: a setting is not understood, or differs from layer to layer.
    """
    said = settings(path, header)
    keys = KEYS | dict(dialect.keys)
    config: dict[str, Any] = {"model_type": dialect.model_type} | dict(dialect.fixed)
    config |= {keys[name]: value for name, value in said.items() if keys.get(name)}
    check(path, said, config, keys)
    table = header.tensors.get("token_embd.weight")
    config["vocab_size"] = table.shape[0] if table is not None and table.shape else 0
    config["tie_word_embeddings"] = "output.weight" not in header.tensors
    if dialect.model_type == "stablelm":
        config["qk_layernorm"] = "blk.0.attn_q_norm.weight" in header.tensors
        config["use_qkv_bias"] = "blk.0.attn_q.bias" in header.tensors
        config["use_parallel_residual"] = "blk.0.ffn_norm.weight" not in header.tensors
    if config.get("rope_interleaved"):  # Llama and its like
        told = {"attention_bias": "blk.0.attn_output.bias", "mlp_bias": "blk.0.ffn_up.bias"}
        config |= {key: True for key, name in told.items() if name in header.tensors}
    if config.get("sliding_window") == 0:  # Phi 4, which has none
        del config["sliding_window"]
    add_rotary(said, config, dialect)
    add_scaling(path, header, said, config)
    add_layers(said, config, dialect)
    add_special(header.values, config)
    return config


def settings(path: Path, header: Header) -> dict[str, Any]:
    """What stands under the name of the architecture, as plain numbers, words and flags.

    Raises:
        ModelError: a list has different numbers for the layers.
    """
    start = f"{header.values['general.architecture']}."
    found = {k.removeprefix(start): v for k, v in header.values.items() if k.startswith(start)}
    for key, value in found.items():
        if isinstance(value, np.ndarray) and key not in IGNORED:
            if len(set(value.tolist())) != 1:
                raise ModelError(f"{path}: {key} differs from layer to layer, which no family does")
            found[key] = value[0].item()
        if isinstance(found[key], float):  # 1e-5 was narrowed to 9.9999997e-06
            found[key] = float(str(np.float32(found[key])))
    return found


def check(
    path: Path, said: Mapping[str, Any], config: Mapping[str, Any], keys: Mapping[str, str]
) -> None:
    """Every setting must be understood, or known to change nothing.

    Raises:
        ModelError: it names one that may change the computation.
    """
    for key, value in said.items():
        known = key in keys or key in IGNORED or key.removeprefix(SCALING) in SCALES
        if not known and not (isinstance(value, bool | int | float) and not value):
            raise ModelError(f"{path}: {short(key)} is not understood, and may matter")
    if said.get("expert_count"):
        raise ModelError(f"{path} is a mixture of experts, which is not supported")
    if said.get("attention.causal") is False:
        raise ModelError(f"{path}: attention.causal is false, which is not supported")
    if said.get("attention.value_length", config.get("head_dim")) != config.get("head_dim"):
        raise ModelError(f"{path}: keys and values of different widths are not supported")


def whole(value: object) -> int:
    """A whole number above 0, or 1; what is wrong with others the family will tell."""
    return value if isinstance(value, int) and value > 0 else 1


def width_of_head(config: Mapping[str, Any]) -> int:
    """d_h."""
    width = whole(config.get("hidden_size")) // whole(config.get("num_attention_heads"))
    return whole(config.get("head_dim", width))


def add_rotary(said: Mapping[str, Any], config: dict[str, Any], dialect: Dialect) -> None:
    """How much of a head turns, and what scores are divided by where that is no setting."""
    turning = said.get("rope.dimension_count")
    if dialect.rotated and turning is not None:
        config[dialect.rotated] = whole(turning) / width_of_head(config)
    largest = {"gemma2": 46, "gemma3_text": 62}.get(dialect.model_type)  # layers of the 27B
    if largest is not None:
        by_width = whole(config.get("hidden_size")) // whole(config.get("num_attention_heads"))
        is_27b = config.get("num_hidden_layers") == largest
        config["query_pre_attn_scalar"] = by_width if is_27b else width_of_head(config)
    if dialect.model_type == "gemma3_text":
        config["rope_local_base_freq"] = said.get("rope.freq_base_swa", 10000.0)


def add_scaling(
    path: Path, header: Header, said: Mapping[str, Any], config: dict[str, Any]
) -> None:
    """How positions beyond those of the training turn."""
    scaling = {SCALES[k]: said[SCALING + k] for k in SCALES if SCALING + k in said}
    kind = said.get(f"{SCALING}type")
    if kind is None and said.get("rope.scale_linear"):
        kind, scaling = "linear", {"factor": said["rope.scale_linear"]}
    if kind not in (None, "none"):
        config["rope_scaling"] = {"rope_type": kind} | scaling
    lists = {name: numbers(path, header, name) for name in (FACTORS_LONG, FACTORS_SHORT)}
    if lists[FACTORS_LONG] and lists[FACTORS_SHORT]:
        config["rope_scaling"] = scaling | {
            "rope_type": "longrope",
            "long_factor": lists[FACTORS_LONG],
            "short_factor": lists[FACTORS_SHORT],
        }
    factors = numbers(path, header, ROPE_FREQS)
    if factors:
        config["rope_factors"] = factors


def numbers(path: Path, header: Header, name: str) -> list[float]:
    """A tensor that is a setting, as a list; empty where there is none.

    Raises:
        ModelError: it is no list of float32, or lies beyond the end of the file.
    """
    entry = header.tensors.get(name)
    if entry is None:
        return []
    end = entry.begin + 4 * (entry.shape[0] if entry.shape else 0)
    if entry.kind != FLOAT32 or len(entry.shape) != 1 or end > header.mapped.size:
        raise ModelError(f"tensor {name} of {path} is not a list of float32 within the file")
    found: list[float] = header.mapped[entry.begin : end].view("<f4").tolist()
    return found


def add_layers(said: Mapping[str, Any], config: dict[str, Any], dialect: Dialect) -> None:
    """Which layers see all that came before, and which have positions."""
    pattern = said.get("attention.sliding_window_pattern")
    every = pattern if isinstance(pattern, int) and pattern > 0 else dialect.full_every
    if not every:
        return
    n_layers = min(whole(config.get("num_hidden_layers")), 1 << 16)
    last = [(i + 1) % every == 0 for i in range(n_layers)]
    if dialect.model_type == "smollm3":
        config["no_rope_layers"] = [int(not is_last) for is_last in last]
    else:
        kinds = ("sliding_attention", "full_attention")
        config["layer_types"] = [kinds[is_last] for is_last in last]


def add_special(values: Mapping[str, Any], config: dict[str, Any]) -> None:
    """The ids that begin a text and end it."""
    bos = values.get("tokenizer.ggml.bos_token_id")
    if bos is not None:
        config["bos_token_id"] = bos
    stops = [values[f"tokenizer.ggml.{key}"] for key in STOPS if f"tokenizer.ggml.{key}" in values]
    if stops:
        config["eos_token_id"] = list(dict.fromkeys(stops))
