"""A model opened for a check: as far as it goes, with every fault on the way."""

from __future__ import annotations

import os
import warnings
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from gptscope.analysis.check.lenient import LenientConfig, LenientTensors, whole
from gptscope.engine.ops import activation
from gptscope.errors import ModelError, NotFiniteWarning
from gptscope.model.checkpoint import open_checkpoint
from gptscope.model.config import Config, read_config
from gptscope.model.find import find_weights
from gptscope.model.header import read_header
from gptscope.model.load import (
    find_config,
    find_family,
    finish,
    label,
    open_model,
    widest,
    with_tokenizer,
)
from gptscope.model.shipped import shipped_folders
from gptscope.model.tokenizer_files import load_tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from gptscope.model.checkpoint import Checkpoint
    from gptscope.model.weights import Model

T = TypeVar("T")
TIES = "tie_word_embeddings"


@dataclass(eq=False)
class Opening:
    """What was found of a model, and what is wrong with it, check by check."""

    name: str
    checkpoint: Checkpoint | None = None
    config: Config | None = None
    model: Model | None = None
    tensors: LenientTensors | None = None
    ignored: frozenset[str] = frozenset()  # tensors without parameters, by the family's names
    rename: Callable[[str], str] = str
    faults: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def attempt(self, check: str, make: Callable[[], T]) -> T | None:
        """What a step makes, or None where it fails, which is noted."""
        try:
            return make()
        except ModelError as fault:
            self.faults[check].append(whole(fault))
            return None


def opening(name: str) -> Opening:
    """Open a model; where it does not load, as much of it as can be opened.

    Raises:
        ModelError: there is nothing at all of this name.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotFiniteWarning)  # it is a finding here
        try:
            opened = open_model(name)
        except ModelError:
            if name not in shipped_folders() and not os.path.lexists(name):
                raise
            return runnable(dissected(name))
    family = find_family(opened.config, opened.checkpoint)
    found = Opening(
        name,
        opened.checkpoint,
        opened.config,
        opened.model,
        ignored=frozenset(opened.tensors.ignored),
        rename=family.rename,
    )
    return runnable(found)


def runnable(found: Opening) -> Opening:
    """The same without its model, if that names an activation that nobody knows."""
    model = found.model
    if model is None or found.attempt("config", lambda: activation(model.spec.activation)) is None:
        found.model = None
    return found


def dissected(name: str) -> Opening:
    """What a model that does not load consists of, part by part."""
    found = Opening(name)
    file = found.attempt("files", lambda: find_weights(name))
    folder = file.parent if file else shipped_folders().get(name) or Path(name)
    if file:
        found.checkpoint = found.attempt("files", lambda: open_checkpoint(file))
    if found.checkpoint is None:
        found.faults["files"] += other_files(folder, found.faults["files"])
        found.config = found.attempt("config", lambda: read_config(folder / "config.json"))
        return found
    checkpoint = found.checkpoint
    found.config = found.attempt("config", lambda: find_config(folder, checkpoint))
    if found.config is None or file is None:
        return found
    config = found.config
    family = found.attempt("config", lambda: find_family(config, checkpoint))
    if family is not None:
        found.rename = family.rename
        model = built(found, Source(checkpoint, config, family))
        if model is None:
            found.attempt("tokenizer", lambda: load_tokenizer(folder))
        else:
            named = replace(model, name=label(name, file))
            made = found.attempt("tokenizer", lambda: with_tokenizer(named, checkpoint, folder))
            found.model = made or named
    return found


def other_files(folder: Path, known: list[str]) -> list[str]:
    """What is wrong with the headers of all weights in a folder, but for what is known."""
    faults = []
    for path in sorted(folder.glob("*.safetensors")) if folder.is_dir() else ():
        try:
            read_header(path)
        except ModelError as fault:
            faults.append(whole(fault))
    return [fault for fault in faults if fault not in known]


@dataclass(frozen=True, eq=False)
class Source:
    """What a model is built of."""

    checkpoint: Checkpoint
    config: Config
    family: ModuleType


def built(found: Opening, source: Source) -> Model | None:
    """The model, if none of its tensors is missing: with the output tied otherwise, if that helps.

    What a check goes on with must be made of the file alone, without stand-ins.
    """
    first = attempted(source, {})
    if first.usable:
        return first.told(found)
    for tied in (False, True):
        second = attempted(source, {TIES: tied})
        if second.usable:
            lacks = "the config does not tie the output to the token table, and there is no lm_head"
            found.faults["tying"].append(first.fault or lacks)
            return second.told(found)
    return first.told(found)


@dataclass(frozen=True, eq=False)
class Attempt:
    """One way to build a model."""

    config: LenientConfig
    tensors: LenientTensors | None
    model: Model | None
    fault: str | None

    @property
    def usable(self) -> bool:
        """Whether there is a model without stand-ins."""
        there = self.model is not None and self.tensors is not None
        return there and not (self.tensors.missing or self.tensors.misfits)  # type: ignore[union-attr]

    def told(self, found: Opening) -> Model | None:
        """The model, if it is usable; its faults are noted."""
        found.tensors = self.tensors
        found.faults["config"] += self.config.faults
        if self.fault is not None:
            found.faults["config"].append(self.fault)
        if self.tensors is not None:
            found.ignored = frozenset(self.tensors.ignored)
            found.faults["tensors"] += tensor_faults(self.tensors, complete=self.model is not None)
            found.faults["shapes"] += self.tensors.misfits.values()
        return self.model if self.usable else None


def tensor_faults(tensors: LenientTensors, *, complete: bool) -> list[str]:
    """The names that are missing and, where all others were asked for, those that are left over."""
    missing = [f"the tensor {name} is missing" for name in tensors.missing]
    left = tensors.left() if complete else []
    return missing + [f"the tensor {name} belongs to no part of the model" for name in left]


def attempted(source: Source, changes: dict[str, bool]) -> Attempt:
    """Build the model with these settings changed, and note what is wrong."""
    checkpoint, family = source.checkpoint, source.family
    config, tensors = LenientConfig(source.config, changes), None
    computed = widest(np.dtype(np.float32), checkpoint)
    try:
        tensors = LenientTensors(checkpoint, family.rename, computed)
        model = finish(family.build(config, tensors), computed, config, checkpoint)
    except ModelError as fault:
        return Attempt(config, tensors, None, whole(fault))
    return Attempt(config, tensors, model, None)
