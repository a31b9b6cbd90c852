"""The tensors of a case as older checkpoints on the hub hold them: bare names, and buffers."""

from collections.abc import Callable, Mapping

import numpy as np

Arrays = dict[str, np.ndarray]


def bare(arrays: Arrays, prefix: str) -> Arrays:
    """Without the prefix: a model saved without its output matrix."""
    return {name.removeprefix(prefix): x for name, x in arrays.items()}


def parts(arrays: Arrays, first: str) -> list[str]:
    """The attention of each block, by the name of its first matrix."""
    return [name.removesuffix(first) for name in arrays if name.endswith(first)]


def with_masks(arrays: Arrays, first: str, dtype: str = "uint8") -> Arrays:
    """And in each block the causal mask, and what once stood in for minus infinity."""
    mask, filler = np.tril(np.ones((1, 1, 96, 96), dtype)), np.array(-1e9, np.float32)
    masks = {f"{part}bias": mask for part in parts(arrays, first)}
    return arrays | masks | {f"{part}masked_bias": filler for part in parts(arrays, first)}


def with_speeds(arrays: Arrays, first: str, count: int) -> Arrays:
    """And in each block the rotary speeds, here wrong ones: they are computed, not read."""
    wrong = np.linspace(1, 0.1, count, dtype=np.float32)
    return arrays | {f"{part}rotary_emb.inv_freq": wrong for part in parts(arrays, first)}


def with_output(arrays: Arrays, table: str) -> Arrays:
    """And the tied output matrix, stored again."""
    return arrays | {"lm_head.weight": arrays[table].copy()}


Q, QKV = "q_proj.weight", "query_key_value.weight"
OLD_NAMES: Mapping[str, Callable[[Arrays], Arrays]] = {
    "gpt2": lambda x: bare(with_masks(x, "c_attn.weight", "float32"), "transformer."),
    "openai-gpt": lambda x: bare(with_masks(x, "c_attn.weight", "float32"), "transformer."),
    "gpt_neo": lambda x: with_output(with_masks(x, Q), "transformer.wte.weight"),
    "gptj": lambda x: with_masks(x, Q),
    "gpt_neox": lambda x: with_speeds(with_masks(x, QKV), QKV, 2),
    "opt": lambda x: with_output(x, "model.decoder.embed_tokens.weight"),
    "opt-350m": lambda x: bare(x, "model."),
    "bloom": lambda x: bare(x, "transformer."),
    "llama": lambda x: with_speeds(x, Q, 4),
    "llama-heads": lambda x: with_output(x, "model.embed_tokens.weight"),
    "mistral": lambda x: with_speeds(x, Q, 4),
    "gemma": lambda x: with_output(x, "model.embed_tokens.weight"),
    "phi": lambda x: with_speeds(x, Q, 3),
    "stablelm": lambda x: with_speeds(x, Q, 1),
}
