"""A bar for what takes longer than a second."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gptscope.model.weights import Model

SOON = 1.0  # seconds before the bar appears


@contextmanager
def progress(steps: int, label: str = "measuring") -> Iterator[Callable[[int], None]]:
    """A bar on standard error that appears after a second, and only on a terminal."""
    to, begun = sys.stderr, time.monotonic()
    seen = to is not None and to.isatty()
    with typer.progressbar(
        length=steps, label=label, file=to, width=0, hidden=True, show_eta=False
    ) as bar:

        def tick(done: int) -> None:
            bar.hidden = not seen or time.monotonic() - begun < SOON
            bar.update(done)

        yield tick


@contextmanager
def counting(model: Model) -> Iterator[Model]:
    """The model for one way through its blocks, each of which moves a bar on."""
    with progress(model.spec.n_layers, "blocks") as tick:
        yield ticking(model, tick)


def ticking(model: Model, tick: Callable[[int], None]) -> Model:
    """The model for one way through its blocks, each of which is told when it is taken."""
    from gptscope.model.blocks import Counted

    return replace(model, blocks=Counted(model.blocks, lambda: tick(1)))
