"""Rotary speeds in NumPy, written from the papers: what transformers' turns are held against."""

import math
from typing import Any

import numpy as np

Rope = dict[str, Any]
Array = np.ndarray


def plain(base: float, width: int) -> Array:
    """base^(-2i/width) for pair i (Su et al. 2021, section 3.2.2)."""
    return np.array([base ** (-2 * i / width) for i in range(width // 2)])


def yarn(rope: Rope, width: int) -> Array:
    """A ramp from speeds as they are to speeds divided (Peng et al. 2023, section 3.2)."""
    base, places = rope["rope_theta"], rope["original_max_position_embeddings"]
    ends = [
        width * math.log(places / (2 * math.pi * turns)) / (2 * math.log(base))
        for turns in (rope.get("beta_fast") or 32, rope.get("beta_slow") or 1)
    ]
    if rope.get("truncate", True):
        ends = [math.floor(ends[0]), math.ceil(ends[1])]
    low, high = max(ends[0], 0), min(ends[1], width - 1)
    share = np.clip((np.arange(width // 2) - low) / (high - low or 0.001), 0, 1)
    speeds = plain(base, width)
    return speeds * (1 - share) + speeds / rope["factor"] * share


def llama3(rope: Rope, width: int) -> Array:
    """Fast pairs as they are, slow ones divided, between them a ramp (Llama 3.1's code)."""
    speeds = plain(rope["rope_theta"], width)
    turns = rope["original_max_position_embeddings"] * speeds / (2 * math.pi)
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    share = np.clip((turns - low) / (high - low), 0, 1)
    return speeds * share + speeds / rope["factor"] * (1 - share)


def dynamic(rope: Rope, width: int, places: int, length: int) -> Array:
    """A base that grows with the text (NTK-aware scaling)."""
    growth = rope["factor"] * max(length, places) / places - (rope["factor"] - 1)
    return plain(rope["rope_theta"] * growth ** (width / (width - 2)), width)


def longrope(rope: Rope, width: int, length: int) -> Array:
    """Each pair divided by a factor of its own (Ding et al. 2024)."""
    is_long = length > rope["original_max_position_embeddings"]
    return plain(rope["rope_theta"], width) / rope["long_factor" if is_long else "short_factor"]


def speeds(rope: Rope, width: int, places: int, length: int) -> Array:
    """The speed of each pair of columns."""
    kind = rope["rope_type"]
    if kind == "dynamic":
        return dynamic(rope, width, places, length)
    if kind == "longrope":
        return longrope(rope, width, length)
    if kind in {"yarn", "llama3"}:
        return {"yarn": yarn, "llama3": llama3}[kind](rope, width)
    return plain(rope["rope_theta"], width) / (rope["factor"] if kind == "linear" else 1)


def stretch(rope: Rope, places: int) -> float:
    """What turned queries and keys are multiplied by (yarn, longrope)."""
    if rope["rope_type"] not in {"yarn", "longrope"}:
        return 1.0
    if rope.get("attention_factor") is not None:
        return rope["attention_factor"]
    factor = rope.get("factor") or places / rope["original_max_position_embeddings"]
    if rope["rope_type"] == "longrope":
        return math.sqrt(1 + math.log(factor) / math.log(rope["original_max_position_embeddings"]))
    if rope.get("mscale") and rope.get("mscale_all_dim"):
        grown = (0.1 * rope[key] * math.log(factor) + 1 for key in ("mscale", "mscale_all_dim"))
        return next(grown) / next(grown)
    return 0.1 * math.log(factor) + 1


def turn(x: Array, speeds_: Array, stretch_: float = 1.0) -> Array:
    """Columns i and i + P of the first 2P turned by their place's angle, the rest as they are."""
    angles = np.arange(len(x))[:, None] * speeds_
    cos, sin, pairs = np.cos(angles) * stretch_, np.sin(angles) * stretch_, len(speeds_)
    a, b, rest = x[:, :pairs], x[:, pairs : 2 * pairs], x[:, 2 * pairs :]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos, rest], axis=-1)
