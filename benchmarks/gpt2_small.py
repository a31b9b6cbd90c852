"""A model of the size of GPT-2 small, with random weights, laid out as Hugging Face does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from safetensors.numpy import save_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEED, SPREAD = 0, 0.02
V, CTX, D, L, H = 50257, 1024, 768, 12, 12
F = 4 * D
CONFIG = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": V,
    "n_positions": CTX,
    "n_embd": D,
    "n_layer": L,
    "n_head": H,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "tie_word_embeddings": True,
    "bos_token_id": None,  # with no end token, every generation has the length that was asked for
    "eos_token_id": None,
    "attn_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "resid_pdrop": 0.0,
    "dtype": "float32",
}


def shapes() -> dict[str, tuple[int, ...]]:
    """Every tensor by name, Conv1D matrices as [in, out]: 124,439,808 numbers."""
    found: dict[str, tuple[int, ...]] = {"wte.weight": (V, D), "wpe.weight": (CTX, D)}
    matrices = {
        "attn.c_attn": (D, 3 * D),
        "attn.c_proj": (D, D),
        "mlp.c_fc": (D, F),
        "mlp.c_proj": (F, D),
    }
    for layer in range(L):
        for name, shape in matrices.items():
            found[f"h.{layer}.{name}.weight"] = shape
            found[f"h.{layer}.{name}.bias"] = shape[1:]
        for norm in ("ln_1", "ln_2"):
            found |= {f"h.{layer}.{norm}.{part}": (D,) for part in ("weight", "bias")}
    return found | {"ln_f.weight": (D,), "ln_f.bias": (D,)}


def random_tensor(
    rng: np.random.Generator, name: str, shape: tuple[int, ...]
) -> NDArray[np.float32]:
    """Small numbers, as where the training of GPT-2 begins; the gains of norms are around 1."""
    is_gain = "ln_" in name and name.endswith(".weight")
    return rng.standard_normal(shape, np.float32) * np.float32(SPREAD) + np.float32(is_gain)


def ensure(folder: str) -> None:
    """Write config.json and model.safetensors into the folder, unless a model is there."""
    weights = Path(folder) / "model.safetensors"
    if weights.is_file():
        return
    rng = np.random.default_rng(SEED)
    tensors = {
        f"transformer.{name}": random_tensor(rng, name, shape) for name, shape in shapes().items()
    }
    weights.parent.mkdir(parents=True, exist_ok=True)
    weights.with_name("config.json").write_text(json.dumps(CONFIG, indent=1), "utf-8")
    save_file(tensors, weights, metadata={"format": "pt"})
