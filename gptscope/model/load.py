"""From a name on the command line to a Model: find the files, read the config, pick the family."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.errors import ModelError, UsageError
from gptscope.model.checkpoint import Checkpoint, open_checkpoint
from gptscope.model.config import Config, read_config
from gptscope.model.families import FAMILIES, UNNAMED, experts, family
from gptscope.model.families.parts import must_be_on
from gptscope.model.find import INDEX, WEIGHTS, find_weights
from gptscope.model.finite import check_finite
from gptscope.model.hub import repo_at
from gptscope.model.params import count_tensors
from gptscope.model.sharded import is_shard
from gptscope.model.shipped import shipped_folders
from gptscope.model.tensors import Tensors
from gptscope.model.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from gptscope.model.weights import Model
    from gptscope.tokens import Tokenizer

FLOATS = ("float32", "float64")
COMPLETE = (".gguf", ".bin")  # files that say all of a model, whatever lies beside them


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
    kind = find_family(config, checkpoint)
    computed = widest(np.dtype(dtype), checkpoint)
    tensors = Tensors(checkpoint, kind.rename, computed)
    stored = kind.build(config, tensors)
    tensors.finish()
    model = finish(stored, computed, config, checkpoint)
    model = with_tokenizer(model, checkpoint, file.parent)
    return Opened(replace(model, name=label(name, file)), config, checkpoint, tensors)


def with_tokenizer(model: Model, checkpoint: Checkpoint, folder: Path) -> Model:
    """The model with its tokenizer, whose BOS and EOS count where the config names none.

    Raises:
        ModelError: there is a tokenizer.json, or what stands for it, that cannot be understood.
    """
    try:
        tokenizer = find_tokenizer(folder, checkpoint, model)
    except ModelError as fault:
        if checkpoint.make_tokenizer is None:
            raise
        return replace(model, no_tokenizer=fault.message)  # token ids can be read all the same
    if tokenizer is None:
        return model
    eos = () if tokenizer.eos_id is None else (tokenizer.eos_id,)
    end_ids = model.end_ids or eos
    return replace(model, tokenizer=tokenizer, bos_id=tokenizer.bos_id, end_ids=end_ids)


def widest(dtype: np.dtype[Any], checkpoint: Checkpoint) -> np.dtype[Any]:
    """What is computed in: the dtype asked for, or a wider one that the file holds."""
    held = {table.dtype for table in checkpoint.arrays.values() if table.dtype.kind == "f"}
    return np.result_type(dtype, *held)


def label(name: str | Path, file: Path) -> str:
    """What a model is called: its shipped name, its folder, or its file if that is named."""
    if str(name) in shipped_folders():
        return str(name)
    repo = repo_at(file.parent)
    if repo is not None:
        return repo.name
    folder = Path(os.path.abspath(file)).parent  # noqa: PTH100 - a link keeps its own place
    whole = file.name in {WEIGHTS, INDEX} or is_shard(file.name)
    return folder.name if whole else file.stem


def find_config(folder: Path, checkpoint: Checkpoint) -> Config:
    """What the file says of itself, the config.json beside it, or the config in its metadata.

    Raises:
        ModelError: there is none.
    """
    path = folder / "config.json"
    if checkpoint.path.suffix in COMPLETE or not os.path.lexists(path):
        if checkpoint.config is None:
            raise ModelError(f"{path} is missing, and the weights carry no config of their own")
        return Config(dict(checkpoint.config), checkpoint.path.name)
    return read_config(path)


def find_family(config: Config, checkpoint: Checkpoint) -> ModuleType:
    """The family that the config or, where it names none, the names of the tensors speak of.

    Raises:
        ModelError: none does.
    """
    experts.refuse(config, checkpoint.arrays)
    if config.has("quantization_config"):
        raise ModelError(
            f"{config.source}: quantization_config says that the weights are quantised, which is "
            "understood of GGUF files alone",
            hint="take the model as it was before, or as a GGUF file",
        )
    kind = config.word("model_type", default="not named")
    if kind in FAMILIES:
        return family(FAMILIES[kind])
    names = lru_cache(lambda rename: {rename(name) for name in checkpoint.arrays})
    for module in map(family, UNNAMED):
        if module.matches(config, names(module.rename)):
            return module
    known = ", ".join(FAMILIES)
    raise ModelError(f"the model type is {kind}, and the families understood are: {known}")


def find_tokenizer(folder: Path, checkpoint: Checkpoint, model: Model) -> Tokenizer | None:
    """The tokenizer that the weights carry, or that lies beside them.

    Raises:
        ModelError: it cannot be read or understood.
    """
    if checkpoint.make_tokenizer is None:
        return load_tokenizer(folder, model.bos_id)
    from gptscope.tokens import Tokenizer  # noqa: PLC0415 - the library, where it is needed

    eos = model.end_ids[0] if model.end_ids else None
    made = checkpoint.make_tokenizer()
    return Tokenizer(made, bos_id=model.bos_id, eos_id=eos, file=checkpoint.path.name)


def once(look: Callable[[], None]) -> Callable[[], None]:
    """A look that is taken once only."""
    return lru_cache(maxsize=1)(look)


def finish(stored: Model, dtype: np.dtype[Any], config: Config, checkpoint: Checkpoint) -> Model:
    """What is the same for every family: the mask, counting, and the special tokens."""
    must_be_on(config, "is_causal")  # off in models that embed texts: every token sees them all
    table, computed = stored.position_table, stored.spec.positions != "learned"
    bos = config.token_ids("bos_token_id")
    model = replace(
        stored,
        dtype=dtype,
        position_table=np.asarray(table).astype(dtype) if computed and table is not None else table,
        n_params=int(count_tensors(stored)),
        look=once(lambda: check_finite(checkpoint.arrays.items(), checkpoint.path)),
        bos_id=bos[0] if bos else None,
        end_ids=config.token_ids("eos_token_id"),
    )
    config.finish()
    return model
