"""Files written whole or not at all, and the checkpoint from which an interrupted run goes on."""

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import torch

from training.errors import InputError

State = dict[str, Any]


def write_whole(path: Path, write: Callable[[BinaryIO], object]) -> None:
    """Writes under a temporary name, then takes the real one, so that no half file is ever seen."""
    temporary = path.with_name(path.name + ".part")
    try:
        with temporary.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error


def make_folder(path: Path) -> None:
    """Makes a folder if it is not there yet; raises InputError if it cannot be."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make the folder {path}: {error.strerror or error}") from error


def save_checkpoint(path: Path, state: State) -> None:
    """Writes a state of tensors, numbers and texts."""
    write_whole(path, lambda file: torch.save(state, file))


def load_checkpoint(path: Path, settings: State) -> State | None:
    """The saved state, None if there is none; raises InputError if other settings made it."""
    if not path.exists():
        return None
    try:
        state: State = torch.load(path, map_location="cpu", weights_only=True)
        made_with = state["settings"]
    except (OSError, EOFError, RuntimeError, KeyError, TypeError, pickle.UnpicklingError) as error:
        raise InputError(f"{path} is not a checkpoint of this program; delete it") from error
    other = [name for name in settings if made_with.get(name) != settings[name]]
    if other:
        raise InputError(
            f"{path} was made with another {', '.join(other)}; "
            f"choose another --out, or delete it to begin anew"
        )
    return state
