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


def write_shards(
    folder: Path,
    tensors: Mapping[str, np.ndarray],
    config: Mapping[str, Any] | None = None,
    count: int = 2,
    *,
    index: bool = True,
) -> Path:
    """The tensors in so many files, one after the other in turn, with an index or without."""
    write_model(folder, {}, config)
    (folder / "model.safetensors").unlink()
    places = {}
    for i in range(count):
        name = f"model-{i + 1:05}-of-{count:05}.safetensors"
        part = {key: tensors[key] for key in list(tensors)[i::count]}
        (folder / name).write_bytes(safetensors_bytes(part))
        places |= dict.fromkeys(part, name)
    if index:
        write_index(folder, places)
    return folder


def write_index(folder: Path, places: Mapping[str, str]) -> Path:
    """An index that says in which file each tensor lies."""
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": places}), "utf-8")
    return path


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
