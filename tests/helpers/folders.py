"""Model folders on disk: the golden ones, changed copies of them, and files written by hand."""

import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file

GOLDEN = Path(__file__).parents[1] / "golden"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/trace.safetensors"))
KINDS = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "uint8": "U8",
    "bool": "BOOL",
}


def config_of(case: str) -> dict[str, Any]:
    """The config.json of a golden model."""
    return json.loads((GOLDEN / case / "config.json").read_text("utf-8"))


def tensors_of(case: str) -> dict[str, np.ndarray]:
    """The tensors of a golden model, by the names in its file."""
    return load_file(GOLDEN / case / "model.safetensors")


def ids_of(case: str) -> list[int]:
    """The token ids that a golden model was run on."""
    return load_file(GOLDEN / case / "trace.safetensors")["ids"].tolist()


def bf16_bits(x: np.ndarray) -> np.ndarray:
    """The upper half of each float32."""
    return (np.ascontiguousarray(x, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def safetensors_bytes(
    tensors: Mapping[str, np.ndarray],
    metadata: Mapping[str, str] | None = None,
    kinds: Mapping[str, str] | None = None,
) -> bytes:
    """A safetensors file; `kinds` names the dtype of a tensor otherwise than NumPy does."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    body = b""
    for name, x in tensors.items():
        kind = (kinds or {}).get(name) or KINDS[x.dtype.name]
        offsets = [len(body), len(body) + x.nbytes]
        header[name] = {"dtype": kind, "shape": x.shape, "data_offsets": offsets}
        body += x.tobytes()
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + body


def write_model(
    folder: Path,
    tensors: Mapping[str, np.ndarray],
    config: Mapping[str, Any] | None = None,
    **more: Any,
) -> Path:
    """A folder with model.safetensors and, if there is a config, config.json."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors, **more))
    if config is not None:
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


def changed_copy(
    folder: Path,
    case: str = "gpt2",
    *,
    config: Mapping[str, Any] | None = None,
    tensors: Mapping[str, np.ndarray] | None = None,
    without: Collection[str] = (),
    **more: Any,
) -> Path:
    """A golden model with these config keys and tensors put in, and those tensors left out."""
    stored = tensors_of(case) | dict(tensors or {})
    kept = {name: x for name, x in stored.items() if name not in without}
    return write_model(folder, kept, config_of(case) | dict(config or {}), **more)
