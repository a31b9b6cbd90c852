"""Training the toys anew, in a process of its own: PyTorch is not loaded here."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from gptscope.errors import GptscopeError, Status, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("toy", "toy-unmasked")  # trained with the mask, and without
NEEDED = ("torch", "tqdm")


def check_free(folder: Path) -> None:
    """Refuse to train over models that are there.

    Raises:
        UsageError: there is one.
    """
    for path in (folder / name for name in NAMES):
        if path.exists():
            raise UsageError(f"{path} is there already", hint="--force overwrites it")


@contextmanager
def folder_of(models: Path | None, retrain: bool, steps: int, seed: int) -> Iterator[Path | None]:
    """The folder that holds both models, or None where they are the shipped ones."""
    if not retrain:
        yield models
    elif models is not None:
        train(models, steps, seed)
        yield models
    else:
        with TemporaryDirectory(prefix="gptscope-", ignore_cleanup_errors=True) as folder:
            train(Path(folder), steps, seed)
            yield Path(folder)


def train(folder: Path, steps: int, seed: int) -> None:
    """Train both models into a folder, in a process of its own that shows its progress.

    Raises:
        GptscopeError: a package is missing, or the training failed.
        KeyboardInterrupt: it was interrupted.
    """
    from gptscope.model.shipped import shipped_folders

    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        what = " and ".join(missing)
        raise GptscopeError(f"--retrain needs {what}", hint='pip install "gptscope[train]"')
    script = shipped_folders()[NAMES[0]].parent / "train_toy.py"
    options = ["--out", str(folder), "--steps", str(steps), "--seed", str(seed)]
    done = subprocess.run(  # noqa: S603 - the script beside the shipped models
        [sys.executable, str(script), *options], stdout=subprocess.DEVNULL, check=False
    )
    if done.returncode in (Status.INTERRUPTED, -signal.SIGINT):
        raise KeyboardInterrupt
    if done.returncode:
        raise GptscopeError(f"the training failed with exit status {done.returncode}")
