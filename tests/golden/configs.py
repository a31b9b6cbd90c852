"""How each project writes down the sizes and choices of the same GPT."""

import json
from dataclasses import dataclass
from typing import Any

from twin import Settings

Config = dict[str, Any]


@dataclass(frozen=True)
class Sizes:
    """Width, feed-forward width, vocabulary, longest text and the length of the golden text."""

    d: int
    F: int
    V: int
    ctx: int
    T: int = 11


def hugging_face(sizes: Sizes, settings: Settings, **more: object) -> Config:
    """config.json of `GPT2LMHeadModel`, with keys that transformers itself writes."""
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "vocab_size": sizes.V,
        "n_positions": sizes.ctx,
        "n_embd": sizes.d,
        "n_layer": settings.n_layer,
        "n_head": settings.n_head,
        "n_inner": sizes.F,
        "activation_function": settings.activation,
        "layer_norm_epsilon": settings.eps,
        "attn_pdrop": 0.1,
        "embd_pdrop": 0.1,
        "resid_pdrop": 0.1,
        "initializer_range": 0.02,
        "bos_token_id": 0,
        "eos_token_id": 0,
        **more,
    }


def released(sizes: Sizes, settings: Settings) -> Config:
    """config.json with the further keys of the GPT-2 that OpenAI released."""
    return hugging_face(
        sizes,
        settings,
        n_inner=None,
        n_ctx=sizes.ctx,
        summary_activation=None,
        summary_first_dropout=0.1,
        summary_proj_to_labels=True,
        summary_type="cls_index",
        summary_use_proj=True,
        task_specific_params={"text-generation": {"do_sample": True, "max_length": 50}},
    )


def variant(sizes: Sizes, settings: Settings) -> Config:
    """config.json with its own output matrix, and scores that shrink layer by layer."""
    return hugging_face(
        sizes,
        settings,
        tie_word_embeddings=False,
        scale_attn_weights=True,
        scale_attn_by_inverse_layer_idx=True,
        reorder_and_upcast_attn=False,
        use_cache=True,
    )


def unscaled(sizes: Sizes, settings: Settings) -> Config:
    """config.json with raw scores."""
    return hugging_face(sizes, settings, scale_attn_weights=False, tie_word_embeddings=True)


def toy(sizes: Sizes, settings: Settings, **more: object) -> Config:
    """config.json of a toy: the names of GPT-2, and a key for each choice of the original paper."""
    return {
        "model_type": "toy",
        "vocab_size": sizes.V,
        "n_positions": sizes.ctx,
        "n_embd": sizes.d,
        "n_layer": settings.n_layer,
        "n_head": settings.n_head,
        "n_inner": sizes.F,
        "activation_function": settings.activation,
        "layer_norm_epsilon": settings.eps,
        "positions": settings.positions,
        "norm": settings.norm,
        "causal": settings.causal,
        "tie_word_embeddings": True,
        "eos_token_id": 0,
        **more,
    }


def untied_toy(sizes: Sizes, settings: Settings) -> Config:
    """config.json of a toy with its own output matrix, and the defaults written out."""
    return toy(sizes, settings, tie_word_embeddings=False, bias=True, norm_type=settings.norm_type)


def modern_toy(sizes: Sizes, settings: Settings) -> Config:
    """config.json of a toy with the choices of Llama, which has no biases."""
    return toy(
        sizes,
        settings,
        tie_word_embeddings=False,
        bias=False,
        norm_type=settings.norm_type,
        rope_theta=settings.rope_theta,
    )


def nanogpt(sizes: Sizes, settings: Settings) -> Config:
    """The `model_args` that nanoGPT keeps in a checkpoint, here without biases."""
    return {
        "block_size": sizes.ctx,
        "vocab_size": sizes.V,
        "n_layer": settings.n_layer,
        "n_head": settings.n_head,
        "n_embd": sizes.d,
        "dropout": 0.0,
        "bias": False,
    }


def mingpt(sizes: Sizes, settings: Settings) -> Config:
    """The model's part of minGPT's config.json; own sizes forbid a `model_type` there."""
    return {
        "model_type": None,
        "n_layer": settings.n_layer,
        "n_head": settings.n_head,
        "n_embd": sizes.d,
        "vocab_size": sizes.V,
        "block_size": sizes.ctx,
        "embd_pdrop": 0.1,
        "resid_pdrop": 0.1,
        "attn_pdrop": 0.1,
    }


def visualized(sizes: Sizes, settings: Settings) -> dict[str, str]:
    """The metadata that stand in for a config.json in transformer-visualized's files."""
    config = {
        "vocabSize": sizes.V,
        "contextLength": sizes.ctx,
        "dModel": sizes.d,
        "nLayers": settings.n_layer,
        "nHeads": settings.n_head,
        "dHead": sizes.d // settings.n_head,
        "dMlp": sizes.F,
        "layerNormEps": settings.eps,
    }
    return {"format": "transformer-visualized/gpt2/1", "config": json.dumps(config)}
