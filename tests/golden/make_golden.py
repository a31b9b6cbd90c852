"""Writes the golden files: `python tests/golden/make_golden.py [FOLDER]` (needs PyTorch).

Each case is a micro model with random weights, as its project would store it, and every named value
of one pass, computed by the twin in float64 from the float32 weights. Running it again gives the
same bytes.
"""

import json
import math
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import configs
import layouts
import numpy as np
import torch
from configs import Config, Sizes
from layouts import Arrays
from twin import Settings, run

KINDS = {"float32": "F32", "float64": "F64", "int64": "I64", "uint8": "U8"}


@dataclass(frozen=True)
class Case:
    """One micro model, and the functions that write it down as its project does."""

    name: str
    sizes: Sizes
    settings: Settings
    layout: Callable[[Arrays], Arrays]
    config: Callable[[Sizes, Settings], Config] | None = None
    metadata: Callable[[Sizes, Settings], dict[str, str]] = lambda *_: {"format": "pt"}
    tied: bool = True
    biases: bool = True


# Where F equals d, every matrix but c_attn is square and cannot tell which way it is stored.
# Where d_h equals the number of heads, shapes cannot tell one from the other.
CASES = (
    Case(
        "gpt2",
        Sizes(d=16, F=64, V=61, ctx=24),
        Settings(n_layer=2, n_head=4),
        layouts.inside_transformer,
        configs.released,
    ),
    Case(
        "gpt2-variant",
        Sizes(d=18, F=37, V=53, ctx=16),
        Settings(n_layer=3, n_head=3, activation="gelu", eps=1e-2, divide_by_layer=True),
        layouts.old_hugging_face,
        configs.variant,
        tied=False,
    ),
    Case(
        "gpt2-unscaled",
        Sizes(d=12, F=12, V=29, ctx=16, T=16),
        Settings(n_layer=2, n_head=2, activation="relu", divide_by_root=False),
        layouts.inside_transformer,
        configs.unscaled,
    ),
    Case(
        "nanogpt",
        Sizes(d=24, F=96, V=47, ctx=20),
        Settings(n_layer=2, n_head=2, activation="gelu"),
        layouts.compiled_nanogpt,
        configs.nanogpt,
        biases=False,
    ),
    Case(
        "mingpt",
        Sizes(d=20, F=80, V=37, ctx=17),
        Settings(n_layer=3, n_head=4),
        layouts.mingpt,
        configs.mingpt,
        tied=False,
    ),
    Case(
        "transformer-visualized",
        Sizes(d=14, F=14, V=31, ctx=16),
        Settings(n_layer=2, n_head=2),
        layouts.turned,
        metadata=configs.visualized,
    ),
    Case(
        "toy",
        Sizes(d=8, F=32, V=12, ctx=18, T=18),
        Settings(n_layer=2, n_head=2, activation="gelu", positions="sinusoidal"),
        layouts.as_it_is,
        configs.toy,
    ),
    Case(
        "toy-post",
        Sizes(d=10, F=23, V=27, ctx=14),
        Settings(n_layer=3, n_head=2, activation="relu", eps=1e-3, norm="post"),
        layouts.as_it_is,
        configs.toy,
    ),
    Case(
        "toy-unmasked",
        Sizes(d=15, F=26, V=19, ctx=13, T=9),
        Settings(n_layer=2, n_head=3, activation="gelu", positions="none", causal=False),
        layouts.as_it_is,
        configs.untied_toy,
        tied=False,
    ),
    Case(
        "toy-rotary",
        Sizes(d=20, F=34, V=29, ctx=32, T=23),
        Settings(
            n_layer=2,
            n_head=2,
            activation="gelu",
            eps=1e-3,
            positions="rotary",
            norm_type="rms_norm",
            rope_theta=500,
        ),
        layouts.as_it_is,
        configs.modern_toy,
        tied=False,
        biases=False,
    ),
)


def draw(
    rng: np.random.Generator, shape: tuple[int, ...], std: float, mean: float = 0
) -> np.ndarray:
    """Uniform numbers; only exact operations, so that every machine draws the same bytes."""
    return (mean + std * math.sqrt(12) * (rng.random(shape) - 0.5)).astype(np.float32)


def shapes(case: Case) -> dict[str, tuple[int, ...]]:
    """Every weight's name and shape, matrices as [in, out]."""
    d, F, V = case.sizes.d, case.sizes.F, case.sizes.V
    parts: dict[str, tuple[int, ...]] = {"wte": (V, d)}
    if case.settings.positions == "learned":
        parts["wpe"] = (case.sizes.ctx, d)
    for block in (f"h.{layer}" for layer in range(case.settings.n_layer)):
        parts |= {f"{block}.ln_1": (d,), f"{block}.attn.c_attn": (d, 3 * d)}
        parts |= {f"{block}.attn.c_proj": (d, d), f"{block}.ln_2": (d,)}
        parts |= {f"{block}.mlp.c_fc": (d, F), f"{block}.mlp.c_proj": (F, d)}
    if case.settings.norm == "pre":
        parts["ln_f"] = (d,)
    named = {f"{part}.weight": shape for part, shape in parts.items()}
    if case.biases:
        named |= {f"{part}.bias": s[-1:] for part, s in parts.items() if part not in {"wte", "wpe"}}
    if case.settings.norm_type == "rms_norm":
        named = {n: s for n, s in named.items() if not (".ln_" in f".{n}" and n.endswith(".bias"))}
    return named if case.tied else named | {"lm_head.weight": (V, d)}


def weight(rng: np.random.Generator, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Large enough that scores are uneven and activations bent, so that a wrong formula shows.

    Embeddings are small instead: the first norm divides by a small variance, and eps counts.
    """
    if name in {"wte.weight", "wpe.weight"}:
        return draw(rng, shape, 0.15)
    if len(shape) == 1:
        return draw(rng, shape, 0.3, mean=float(".ln_" in f".{name}" and name.endswith(".weight")))
    return draw(
        rng, shape, (1.5 if "c_attn" in name or "c_fc" in name else 1) / math.sqrt(shape[0])
    )


def write_safetensors(path: Path, arrays: Arrays, metadata: dict[str, str]) -> None:
    """The format by hand, because the library writes several metadata entries in random order."""
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    body = b""
    for name, x in sorted(arrays.items(), key=lambda item: (-item[1].itemsize, item[0])):
        offsets = [len(body), len(body) + x.nbytes]
        header[name] = {"dtype": KINDS[x.dtype.name], "shape": x.shape, "data_offsets": offsets}
        body += x.tobytes()
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(len(head).to_bytes(8, "little") + head + body)


def write_case(case: Case, folder: Path) -> None:
    """The case's config, weights and golden values."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    weights = {name: weight(rng, name, shape) for name, shape in shapes(case).items()}
    ids = [0, case.sizes.V - 1, *rng.integers(case.sizes.V, size=case.sizes.T - 2).tolist()]
    exact = {name: torch.from_numpy(w).double() for name, w in weights.items()}
    values = {name: x.numpy() for name, x in run(exact, case.settings, ids).items()}
    folder.mkdir(parents=True, exist_ok=True)
    if case.config:
        text = json.dumps(case.config(case.sizes, case.settings), indent=2) + "\n"
        (folder / "config.json").write_text(text, encoding="utf-8", newline="\n")
    stored = case.layout(weights)
    write_safetensors(
        folder / "model.safetensors", stored, case.metadata(case.sizes, case.settings)
    )
    write_safetensors(folder / "trace.safetensors", values | {"ids": np.array(ids)}, {})


def main(folder: str = str(Path(__file__).parent)) -> None:
    """Every case into a folder of its own."""
    torch.set_num_threads(1)
    for case in CASES:
        write_case(case, Path(folder) / case.name)


if __name__ == "__main__":
    main(*sys.argv[1:])
