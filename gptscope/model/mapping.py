"""Memory of mapped files: pages that were read can be given back, and come again when needed."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gptscope.model.checkpoint import Checkpoint
    from gptscope.model.weights import Table

LARGE = 1 << 30  # bytes; the pages of smaller files may all stay
INSIDE = ("base", "rows", "numbers", "table")  # what a view, or a table that is computed, is of


def forgetter(checkpoint: Checkpoint) -> Callable[[], None]:
    """A function that gives back what was read of large files, so that memory does not fill up.

    The system would take such pages back by itself when it needs them, but counts them until then.
    """
    maps = {id(found): found for found in mapped(checkpoint.arrays.values())}.values()
    if sum(map(len, maps)) < LARGE or not hasattr(mmap, "MADV_DONTNEED"):
        return lambda: None

    def forget() -> None:
        for found in maps:
            found.madvise(mmap.MADV_DONTNEED)

    return forget


def mapped(tables: Iterable[Table]) -> Iterable[mmap.mmap]:
    """The mapped file behind each table that is a view of one."""
    for table in tables:
        base: Any = table
        while base is not None and not isinstance(base, mmap.mmap):
            base = next((getattr(base, name) for name in INSIDE if hasattr(base, name)), None)
        if base is not None:
            yield base
