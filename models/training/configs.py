"""The `config.json` of a trained model, and the sizes and design that one names."""

from dataclasses import replace
from typing import Any

from training.errors import InputError
from training.gpt import EPS, GPT2, TOY, Design, Sizes

END_ID = 0
CHECKED = (
    "model_type",
    "activation_function",
    "layer_norm_epsilon",
    "positions",
    "norm",
    "tie_word_embeddings",
)


def config_of(sizes: Sizes, design: Design) -> dict[str, Any]:
    """The `config.json` of a model of these sizes and this design."""
    return toy_config(sizes, design) if design.family == "toy" else gpt2_config(sizes)


def gpt2_config(sizes: Sizes) -> dict[str, Any]:
    """What transformers' GPT2LMHeadModel reads."""
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": sizes.vocab,
        "n_positions": sizes.ctx,
        "n_embd": sizes.width,
        "n_layer": sizes.blocks,
        "n_head": sizes.heads,
        "n_inner": None if sizes.ff == 4 * sizes.width else sizes.ff,
        "activation_function": "gelu_new",
        "layer_norm_epsilon": EPS,
        "tie_word_embeddings": True,
        "bos_token_id": END_ID,
        "eos_token_id": END_ID,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "dtype": "float32",
    }


def toy_config(sizes: Sizes, design: Design) -> dict[str, Any]:
    """What gptscope's family `toy` reads; a sentence has an end, but no token before its start."""
    return {
        "model_type": "toy",
        "vocab_size": sizes.vocab,
        "n_positions": sizes.ctx,
        "n_embd": sizes.width,
        "n_layer": sizes.blocks,
        "n_head": sizes.heads,
        "n_inner": sizes.ff,
        "activation_function": "gelu",
        "layer_norm_epsilon": EPS,
        "positions": "sinusoidal",
        "norm": "pre",
        "causal": design.causal,
        "tie_word_embeddings": True,
        "eos_token_id": END_ID,
    }


def read_config(config: dict[str, Any]) -> tuple[Sizes, Design]:
    """Sizes and design of a `config.json`; raises InputError for one that `GPT` cannot compute."""
    sizes = Sizes(
        vocab=config["vocab_size"],
        ctx=config["n_positions"],
        width=config["n_embd"],
        blocks=config["n_layer"],
        heads=config["n_head"],
        ff=config.get("n_inner") or 4 * config["n_embd"],
    )
    toy = config.get("model_type") == "toy"
    design = replace(TOY, causal=config["causal"]) if toy else GPT2
    ours = config_of(sizes, design)
    for key in (key for key in CHECKED if key in ours):
        if config.get(key, ours[key]) != ours[key]:
            raise InputError(
                f"config.json has {key} {config[key]!r}; here it must be {ours[key]!r}"
            )
    return sizes, design
