"""From a name on the command line to a Model: find the files, read the config, pick the family."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.errors import ModelError, UsageError
from gptscope.model.checkpoint import Checkpoint, open_checkpoint
from gptscope.model.config import Config, read_config
from gptscope.model.families import FAMILIES
from gptscope.model.files import refuse_pointer
from gptscope.model.find import WEIGHTS, find_weights
from gptscope.model.params import count_tensors
from gptscope.model.shipped import shipped_folders
from gptscope.model.tensors import Tensors
from gptscope.tokens import load_tokenizer

if TYPE_CHECKING:
    from types import ModuleType

    from gptscope.model.weights import Model

FLOATS = ("float32", "float64")


@dataclass(frozen=True, eq=False)
class Opened:
    """A model, and what it was made of."""

    model: Model
    config: Config
    checkpoint: Checkpoint
    tensors: Tensors


def load(name: str | Path, dtype: str = "float32") -> Model:
    """Open a model: a shipped name, a folder, or a file of weights.

    `dtype` is what is computed in, float32 or float64; weights are widened to it, never narrowed.

    Raises:
        ModelError: it is not there, or not a model that is understood.
        UsageError: the dtype is neither of the two.
    """
    return open_model(name, dtype).model


def open_model(name: str | Path, dtype: str = "float32") -> Opened:
    """Open a model, and keep what it was made of; as `load`."""
    if dtype not in FLOATS:
        raise UsageError(f"dtype {dtype!r} is not one of {', '.join(FLOATS)}")
    file = find_weights(name)
    checkpoint = open_checkpoint(file)
    config = find_config(file.parent, checkpoint)
    family = find_family(config, checkpoint)
    computed = widest(np.dtype(dtype), checkpoint)
    tensors = Tensors(checkpoint, family.rename, computed)
    stored = family.build(config, tensors)
    tensors.finish()
    model = finish(stored, computed, config)
    refuse_pointer(file.parent / "tokenizer.json")
    tokenizer = load_tokenizer(file.parent / "tokenizer.json")
    model = replace(model, name=label(name, file), tokenizer=tokenizer)
    return Opened(model, config, checkpoint, tensors)


def widest(dtype: np.dtype[Any], checkpoint: Checkpoint) -> np.dtype[Any]:
    """What is computed in: the dtype asked for, or a wider one that the file holds."""
    held = {table.dtype for table in checkpoint.arrays.values() if table.dtype.kind == "f"}
    return np.result_type(dtype, *held)


def label(name: str | Path, file: Path) -> str:
    """What a model is called: its shipped name, its folder, or its file if that is named."""
    if str(name) in shipped_folders():
        return str(name)
    folder = Path(os.path.abspath(file)).parent  # noqa: PTH100 - a link keeps its own place
    return folder.name if file.name == WEIGHTS else file.stem


def find_config(folder: Path, checkpoint: Checkpoint) -> Config:
    """The config.json beside the weights, or the config in their metadata.

    Raises:
        ModelError: there is neither.
    """
    path = folder / "config.json"
    if os.path.lexists(path):
        return read_config(path)
    try:
        values = json.loads(checkpoint.metadata.get("config", "null"))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise ModelError(f"{path} is missing, and the weights carry no config of their own")
    return Config(values, checkpoint.path.name)


def find_family(config: Config, checkpoint: Checkpoint) -> ModuleType:
    """The family that the config or the names of the tensors speak of.

    Raises:
        ModelError: none does.
    """
    for family in FAMILIES:
        if family.matches(config, {family.rename(name) for name in checkpoint.arrays}):
            return family
    known = ", ".join(family.__name__.rpartition(".")[2] for family in FAMILIES)
    kind = config.word("model_type", default="not named")
    raise ModelError(f"the model type is {kind}, and the families understood are: {known}")


def finish(stored: Model, dtype: np.dtype[Any], config: Config) -> Model:
    """What is the same for every family: counting, and the special tokens."""
    table, computed = stored.position_table, stored.spec.positions != "learned"
    bos = config.token_ids("bos_token_id")
    model = replace(
        stored,
        dtype=dtype,
        position_table=np.asarray(table).astype(dtype) if computed and table is not None else table,
        n_params=int(count_tensors(stored)),
        bos_id=bos[0] if bos else None,
        end_ids=config.token_ids("eos_token_id"),
    )
    config.finish()
    return model
