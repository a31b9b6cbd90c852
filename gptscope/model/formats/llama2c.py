"""The .bin files of llama2.c: a Llama, told in the names and words of Hugging Face.

Seven int32 (width, feed-forward width, layers, heads, key-value heads, vocabulary, negative where
the unembedding has a table of its own, longest text), then float32 arrays; or "ak42", a version,
the same seven, a byte that says tied or not, zeros up to byte 256, then the arrays: float32 in
version 1, and in version 2 groups of int8 with a float32 scale for each group.
https://github.com/karpathy/llama2.c: `legacy_export` and others in export.py, `encode` in run.c
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.errors import ModelError
from gptscope.model.checkpoint import Checkpoint
from gptscope.model.files import reason, size_of
from gptscope.model.formats.llama2c_tokens import find_tokens, tokenizer_of
from gptscope.model.formats.packed import Grouped
from gptscope.model.header import PICKLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from gptscope.model.weights import Table

MAGIC = struct.pack("<I", 0x616B3432)
LEGACY, LATER = 28, 256  # bytes before the numbers
LARGEST = 1 << 24  # above every size of such a model
FLOAT32: np.dtype[Any] = np.dtype("<f4")
ANGLES = "cosines and sines of every position"  # computed anew, not read


@dataclass(frozen=True)
class Sizes:
    """What the header says."""

    d: int
    f: int
    layers: int
    heads: int
    kv_heads: int
    vocab: int
    ctx: int
    version: int  # 0: the one without a magic
    tied: bool
    group: int = 1  # numbers that share a scale


def read_sizes(path: Path) -> Sizes | None:
    """The sizes, where this is a file of llama2.c: the numbers behind them fill it to the byte."""
    try:
        size = size_of(path)
        with path.open("rb") as file:
            start = file.read(LEGACY + 13)
    except (ModelError, OSError, ValueError):
        return None
    if len(start) < LEGACY + 13 or start.startswith(PICKLES):
        return None
    sizes = parsed(start)
    whole = min(sizes.d, sizes.f, sizes.layers, sizes.heads, sizes.kv_heads, sizes.ctx, sizes.vocab)
    if whole < 1 or max(sizes.d, sizes.f, sizes.layers, sizes.vocab, sizes.ctx) >= LARGEST:
        return None
    even = sizes.d % (2 * sizes.heads) == 0 and sizes.heads % sizes.kv_heads == 0
    if not even or sizes.version not in (0, 1, 2) or sizes.group < 1:
        return None
    return sizes if end_of(sizes) == size else None


def parsed(start: bytes) -> Sizes:
    """The header as it stands, whether it makes sense or not."""
    if not start.startswith(MAGIC):
        d, f, layers, heads, kv, vocab, ctx = struct.unpack_from("<7i", start)
        return Sizes(d, f, layers, heads, kv, abs(vocab), ctx, 0, vocab > 0)
    values = struct.unpack_from("<8iBi", start, len(MAGIC))
    version, d, f, layers, heads, kv, vocab, ctx, tied, group = values
    return Sizes(
        d, f, layers, heads, kv, vocab, ctx, version, bool(tied), group if version == 2 else 1
    )


def layout(s: Sizes) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Every array in the order of the file: its name without the layer, its shape, how often."""
    per_layer = {
        "input_layernorm": (s.d,),
        "self_attn.q_proj": (s.d, s.d),
        "self_attn.k_proj": (s.d // s.heads * s.kv_heads, s.d),
        "self_attn.v_proj": (s.d // s.heads * s.kv_heads, s.d),
        "self_attn.o_proj": (s.d, s.d),
        "post_attention_layernorm": (s.d,),
        "mlp.gate_proj": (s.f, s.d),
        "mlp.down_proj": (s.d, s.f),
        "mlp.up_proj": (s.f, s.d),
    }
    layers = [(f"model.layers.{{}}.{name}", shape, s.layers) for name, shape in per_layer.items()]
    tokens, norm = ("model.embed_tokens", (s.vocab, s.d), 1), ("model.norm", (s.d,), 1)
    if s.version == 0:
        yield from (tokens, *layers, norm, (ANGLES, (s.ctx, s.d // s.heads), 1))
    else:  # norms first
        norms = [one for one in layers if len(one[1]) == 1]
        yield from (*norms, norm, tokens, *(one for one in layers if len(one[1]) == 2))
    if not s.tied:
        yield "lm_head", (s.vocab, s.d), 1


def places(s: Sizes) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Every single array: its name, its shape, its first byte."""
    at = LATER if s.version else LEGACY
    for name, shape, count in layout(s):
        for layer in range(count):
            yield f"{name.format(layer)}.weight", shape, at
            at += taken(s, shape)


def taken(s: Sizes, shape: tuple[int, ...]) -> int:
    """The bytes of an array."""
    count = math.prod(shape)
    packed = s.version == 2 and len(shape) == 2
    return count + count // s.group * 4 if packed else count * 4


def end_of(s: Sizes) -> int:
    """The bytes that such a file has."""
    start = LATER if s.version else LEGACY
    return start + sum(count * taken(s, shape) for _, shape, count in layout(s))


def open_llama2c(path: Path) -> Checkpoint:
    """Map a .bin file of llama2.c, with the tokenizer beside it.

    Raises:
        ModelError: it is something else, or cannot be read.
    """
    sizes = read_sizes(path)
    if sizes is None:
        raise ModelError(f"{path} is not a .bin file of llama2.c")
    if sizes.d % sizes.group or sizes.f % sizes.group:
        raise ModelError(
            f"{path} has groups of {sizes.group} numbers, which do not divide its rows"
        )
    try:
        mapped = np.asarray(np.memmap(path, np.uint8, mode="r"))
    except (OSError, ValueError) as fault:
        raise ModelError(f"{path} cannot be read: {reason(fault)}") from fault
    arrays = {
        name: table(mapped[at : at + taken(sizes, shape)], sizes, shape)
        for name, shape, at in places(sizes)
        if name != f"{ANGLES}.weight"
    }
    tokens = find_tokens(path, sizes.vocab)
    make = None if tokens is None else partial(tokenizer_of, tokens, sizes.vocab)
    return Checkpoint(path, arrays, {}, (path,), config_of(sizes), make)


def table(data: NDArray[np.uint8], s: Sizes, shape: tuple[int, ...]) -> Table:
    """One array of these bytes."""
    if s.version < 2 or len(shape) < 2:
        return data.view(FLOAT32).reshape(shape)
    count = math.prod(shape)
    scales = data[count:].view(FLOAT32).reshape(shape[0], -1)
    return Grouped(data[:count].view(np.int8).reshape(shape), scales)


def config_of(s: Sizes) -> Mapping[str, Any]:
    """The words of a config.json; the constants are those of run.c."""
    return {
        "model_type": "llama",
        "hidden_size": s.d,
        "intermediate_size": s.f,
        "num_hidden_layers": s.layers,
        "num_attention_heads": s.heads,
        "num_key_value_heads": s.kv_heads,
        "head_dim": s.d // s.heads,
        "vocab_size": s.vocab,
        "max_position_embeddings": s.ctx,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_interleaved": True,
        "tie_word_embeddings": s.tied,
        "bos_token_id": 1,
        "eos_token_id": [1, 2],  # run.c stops at the token that begins the next story
    }
