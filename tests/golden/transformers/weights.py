"""The weights of a case, drawn by NumPy alone, and its golden values as they are stored."""

import json
import math
import shutil
import zlib
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save, save_file

HERE = Path(__file__).parent
Arrays = dict[str, np.ndarray]
ROWS = (1, 17, 79)  # kept of every value
SQUARE_ROWS = (17, 79)  # kept of values with a column for each token
SQUARES = ("scores", "scaled_masked", "weights")


def seed(name: str) -> np.random.Generator:
    """A generator for this name alone."""
    return np.random.default_rng(zlib.crc32(name.encode()))


def draw(name: str, shape: list[int], mean: float, std: float) -> np.ndarray:
    """Uniform numbers; only exact operations, so that every machine draws the same bytes."""
    return (mean + std * math.sqrt(12) * (seed(name).random(shape) - 0.5)).astype(np.float32)


def weights(case: str) -> Arrays:
    """Every tensor of the case's file."""
    tensors = json.loads((HERE / case / "tensors.json").read_text(encoding="utf-8"))
    return {name: draw(f"{case} {name}", *how) for name, how in tensors.items()}


def ids(case: str, vocabulary: int, length: int) -> list[int]:
    """The tokens of the case's text: the first and the last of the vocabulary among them."""
    drawn = seed(f"{case} ids").integers(vocabulary, size=length - 2).tolist()
    return [0, vocabulary - 1, *drawn]


def write_folder(
    case: str,
    folder: Path,
    config: str = "config.json",
    layout: Callable[[Arrays], Arrays] = lambda arrays: arrays,
) -> Path:
    """The case as `save_pretrained` leaves it: a config and a file of weights."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(HERE / case / config, folder / "config.json")
    save_file(layout(weights(case)), folder / "model.safetensors", {"format": "pt"})
    return folder


def is_square(name: str) -> bool:
    """Whether this value has a column for each token."""
    return name.rpartition(".")[2] in SQUARES


def rows(name: str) -> list[int]:
    """The rows that are kept of this value."""
    return list(SQUARE_ROWS if is_square(name) else ROWS)


def write_golden(case: str, tokens: list[int], values: Arrays) -> None:
    """The kept rows of every value; the heads of a layer in one array, shared ones once."""
    stacks: dict[str, list[np.ndarray]] = {}
    for name, value in values.items():
        before, head, after = name.partition(".heads.")
        key = f"{before}.heads.*.{after.partition('.')[2]}" if head else name
        stacks.setdefault(key, []).append(value[rows(name)])
    stored = {key: shared(np.stack(x)) if "*" in key else x[0] for key, x in stacks.items()}
    tokens_and_all = stored | {"ids": np.array(tokens)}
    (HERE / case / "trace.safetensors").write_bytes(save(tokens_and_all))


def shared(x: np.ndarray) -> np.ndarray:
    """[H, ...] -> [G, ...], where heads in a row have the same numbers."""
    differs = [True, *((a != b).any() for a, b in pairwise(x))]
    return x[differs]


def golden(case: str) -> tuple[list[int], Arrays]:
    """The case's tokens, and the kept rows of every value by its full name."""
    stored = load_file(HERE / case / "trace.safetensors")
    tokens = stored.pop("ids").tolist()
    values: Arrays = {}
    for key, value in stored.items():
        if "*" not in key:
            values[key] = value
            continue
        count = len(stored[f"{key.partition('*')[0]}*.out"])
        values |= {key.replace("*", str(h)): value[h * len(value) // count] for h in range(count)}
    return tokens, values
