"""A checkpoint in the shape of Llama, of about 8 GB in BF16, in shards, with random weights."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from numpy.typing import NDArray

SEED = 0
V, D, F, H, G, D_HEAD = 128_256, 3072, 8192, 24, 8, 128  # as Llama 3.2 3B, with its own output
L = 32
SHARD = 2_000_000_000  # bytes at the most
CHUNK = 1 << 24  # random numbers are drawn once, and used again from another place
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": V,
    "hidden_size": D,
    "intermediate_size": F,
    "num_hidden_layers": L,
    "num_attention_heads": H,
    "num_key_value_heads": G,
    "head_dim": D_HEAD,
    "max_position_embeddings": 131_072,
    "rms_norm_eps": 1e-5,
    "rope_theta": 500_000.0,
    "hidden_act": "silu",
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
Shapes = dict[str, tuple[int, ...]]


def shapes() -> Shapes:
    """Every tensor by name, in the order of the file: 4,009,430,016 numbers."""
    found: Shapes = {"model.embed_tokens.weight": (V, D)}
    matrices = {
        "self_attn.q_proj": (H * D_HEAD, D),
        "self_attn.k_proj": (G * D_HEAD, D),
        "self_attn.v_proj": (G * D_HEAD, D),
        "self_attn.o_proj": (D, H * D_HEAD),
        "mlp.gate_proj": (F, D),
        "mlp.up_proj": (F, D),
        "mlp.down_proj": (D, F),
        "input_layernorm": (D,),
        "post_attention_layernorm": (D,),
    }
    for layer in range(L):
        names = {f"model.layers.{layer}.{name}.weight": s for name, s in matrices.items()}
        found |= names
    return found | {"model.norm.weight": (D,), "lm_head.weight": (V, D)}


def shards(tensors: Shapes) -> Iterator[Shapes]:
    """The tensors in files of at most so many bytes."""
    shard: Shapes = {}
    for name, shape in tensors.items():
        if 2 * sum(map(size, shard.values())) + 2 * size(shape) > SHARD:
            yield shard
            shard = {}
        shard[name] = shape
    yield shard


def size(shape: tuple[int, ...]) -> int:
    """How many numbers."""
    return int(np.prod(shape))


def bf16(x: NDArray[np.float32]) -> NDArray[np.uint16]:
    """The upper half of each number."""
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def bits(shape: tuple[int, ...], start: int, chunk: NDArray[np.uint16]) -> Iterator[bytes]:
    """The bytes of a tensor: gains are 1, all else comes from the drawn numbers."""
    left = size(shape)
    if len(shape) == 1:
        yield bf16(np.ones(shape, np.float32)).tobytes()
        return
    while left:
        piece = chunk[start % CHUNK :][:left]
        yield piece.tobytes()
        left, start = left - len(piece), 0


def ensure(folder: Path) -> None:
    """Write the shards, their index and config.json, unless they are there."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(SEED)
    chunk = bf16(rng.standard_normal(CHUNK, np.float32) * np.float32(0.02))
    parts, where = list(shards(shapes())), dict[str, str]()
    for number, part in enumerate(parts, 1):
        name = f"model-{number:05}-of-{len(parts):05}.safetensors"
        write(folder / name, part, chunk)
        where |= dict.fromkeys(part, name)
    (folder / "config.json").write_text(json.dumps(CONFIG, indent=1), "utf-8")
    index.write_text(json.dumps({"metadata": {}, "weight_map": where}, indent=1), "utf-8")


def write(path: Path, tensors: Shapes, chunk: NDArray[np.uint16]) -> None:
    """One shard, piece by piece, so that little memory is taken."""
    header, end = {}, 0
    for name, shape in tensors.items():
        begin, end = end, end + 2 * size(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [begin, end]}
    head = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for number, shape in enumerate(tensors.values()):
            for piece in bits(shape, 7919 * number, chunk):
                file.write(piece)
