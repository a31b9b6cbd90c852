"""A bar for what takes longer than a second."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
