"""Writes the golden files: `python -m tests.golden.transformers.make [CASE...]` (needs torch).

Each case is a micro model with random weights, and every named value of one pass of 80 tokens in
float64, as transformers computes them; a few rows are kept. Identities hold for all rows.
"""

import json
import math
import sys
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import transformers
from safetensors.numpy import load_file
from torch import nn

from tests.golden.transformers import weights
from tests.golden.transformers.capture import capture
from tests.golden.transformers.cases import CASES, LENGTH, OLD_SPELLINGS, Case
from tests.golden.transformers.identities import check
from tests.golden.transformers.meaning import assert_same_meaning, shortened
from tests.golden.transformers.paths import paths
from tests.golden.transformers.record import RENAMED
from tests.golden.transformers.spelling import old_spelling


def how_drawn(module: nn.Module, kind: str, shape: list[int], scale: float) -> list[float]:
    """Mean and standard deviation of a tensor.

    Large enough that scores are uneven and activations bent, so that a wrong formula shows.
    Embeddings are small instead: the first norm divides by a small variance, and eps counts.
    """
    if isinstance(module, nn.Embedding):
        return [0.0, 0.15 / scale]
    if len(shape) == 1:
        is_gain = kind == "weight" and not type(module).__name__.startswith("Gemma")
        return [float(is_gain), 0.3]
    fan_in = shape[0] if type(module).__name__ == "Conv1D" else shape[1]
    return [0.0, scale / math.sqrt(fan_in)]


WIDE = ("q_proj", "k_proj", "v_proj", "qkv", "query_key", "c_attn", "up", "gate", "fc", "h_to_4h")


def scale_of(model: Any, part: str) -> float:
    """How much larger than plain a matrix is, or how much smaller an embedding."""
    kind = model.config.model_type
    if isinstance(model.get_submodule(part), nn.Embedding):
        if paths(model.config).wiring == "post":
            return 0.3  # no norm before the first attention
        return math.sqrt(model.config.hidden_size) if kind.startswith("gemma") else 1.0
    plain = kind == "gpt_neo"  # its scores are not divided
    return 1.5 if any(word in part for word in WIDE) and not plain else 1.0


def tensors(model: Any, stored: weights.Arrays) -> dict[str, list[Any]]:
    """Name -> shape, mean and standard deviation of every tensor of the model's file."""
    found = {}
    for name, tensor in sorted(stored.items()):
        part, _, kind = RENAMED.get(name, name).rpartition(".")
        module, shape = model.get_submodule(part), list(tensor.shape)
        found[name] = [shape, *how_drawn(module, kind, shape, scale_of(model, part))]
    return found


def write_json(path: Path, data: object) -> None:
    """Sorted, indented, with a last line feed."""
    text = json.dumps(data, indent=2, sort_keys=True) + "\n"
    path.write_text(text, encoding="utf-8", newline="\n")


def write_tensors(path: Path, found: dict[str, list[Any]]) -> None:
    """One line for each tensor."""
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(how)}" for name, how in found.items())
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8", newline="\n")


def write_model(case: Case) -> None:
    """The case's config as transformers writes it, and its list of tensors."""
    config = transformers.AutoConfig.for_model(**deepcopy(case.config))
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    home = weights.HERE / case.name
    home.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        written = (Path(folder) / "config.json").read_bytes()
        found = tensors(model, load_file(Path(folder) / "model.safetensors"))
    (home / "config.json").write_bytes(written)
    write_tensors(home / "tensors.json", found)
    write_json(home / "config-short.json", shortened(json.loads(written)))
    if case.name in OLD_SPELLINGS:
        old = old_spelling(json.loads(written), **OLD_SPELLINGS[case.name])
        write_json(home / "config-old.json", old)


def write_case(case: Case) -> None:
    """Everything that is kept of a case, once it has been checked."""
    write_model(case)
    for path in sorted((weights.HERE / case.name).glob("config-*.json")):
        assert_same_meaning(path)
    tokens = weights.ids(case.name, case.config["vocab_size"], LENGTH)
    with TemporaryDirectory() as folder:
        values = capture(weights.write_folder(case.name, Path(folder)), tokens)
        config = transformers.AutoConfig.from_pretrained(folder)
        check(values, config)
    weights.write_golden(case.name, tokens, values)
    kept = weights.golden(case.name)[1]
    assert kept.keys() == values.keys()
    assert all((kept[name] == values[name][weights.rows(name)]).all() for name in kept)


def main(*names: str) -> None:
    """Every case, or those that are named."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    for case in CASES:
        if not names or case.name in names:
            write_case(case)
            print(case.name, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
