"""From a name on the command line to a Model: find the files, read the config, pick the family."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from gptscope.errors import ModelError, UsageError
from gptscope.model.checkpoint import Checkpoint, open_checkpoint
from gptscope.model.config import Config, read_config
from gptscope.model.families import FAMILIES
from gptscope.model.files import refuse_pointer
from gptscope.model.find import WEIGHTS, find_weights
from gptscope.model.finite import Watched
from gptscope.model.shipped import shipped_folders
from gptscope.model.tensors import Tensors
from gptscope.model.weights import Blocks, arrays, widened
from gptscope.tokens import load_tokenizer

if TYPE_CHECKING:
    from types import ModuleType

    from gptscope.model.weights import Model

FLOATS = ("float32", "float64")


def load(name: str | Path, dtype: str = "float32") -> Model:
    """Open a model: a shipped name, a folder, or a .safetensors file.

    `dtype` is what is computed in, float32 or float64; weights are widened to it, never narrowed.

    Raises:
        ModelError: it is not there, or not a model that is understood.
        UsageError: the dtype is neither of the two.
    """
    if dtype not in FLOATS:
        raise UsageError(f"dtype {dtype!r} is not one of {', '.join(FLOATS)}")
    file = find_weights(name)
    checkpoint = open_checkpoint(file)
    config = find_config(file.parent, checkpoint)
    family = find_family(config, checkpoint)
    tensors = Tensors(checkpoint, family.rename)
    stored = family.build(config, tensors)
    tensors.finish()
    model = finish(stored, np.dtype(dtype), config, checkpoint)
    refuse_pointer(file.parent / "tokenizer.json")
    tokenizer = load_tokenizer(file.parent / "tokenizer.json")
    return replace(model, name=label(name, file), tokenizer=tokenizer)


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


def finish(
    stored: Model, dtype: np.dtype[np.floating], config: Config, checkpoint: Checkpoint
) -> Model:
    """What is the same for every family: counting, lazy widening, the special tokens."""
    table, computed = stored.position_table, stored.spec.positions != "learned"
    head = None if stored.tied else stored.unembedding
    parts = (stored.token_table, None if computed else table, stored.blocks, stored.ln_final, head)
    exact = [array.dtype for array in arrays(parts) if array.dtype.kind == "f"]
    dtype = np.result_type(dtype, *exact)  # weights are widened, never narrowed
    bos = config.token_ids("bos_token_id")
    model = replace(
        stored,
        dtype=dtype,
        position_table=table if table is None or not computed else table.astype(dtype),
        n_params=sum(array.size for array in arrays(parts)),
        blocks=Blocks(Watched(stored.blocks, checkpoint), dtype),
        ln_final=widened(stored.ln_final, dtype),
        bos_id=bos[0] if bos else None,
        end_ids=config.token_ids("eos_token_id"),
    )
    config.finish()
    return model
