"""Faults of the `tokenizers` library: it raises Exception, and where it panics not even that."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from gptscope.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Iterator

LONGEST_FAULT = 300  # characters


@contextmanager
def readable(what: str, hint: str) -> Iterator[None]:
    """Whatever the library says of a file in here is a fault of the file.

    Raises:
        ModelError: it said something.
    """
    try:
        yield
    except ModelError:
        raise
    except BaseException as fault:
        if is_outside(fault):
            raise
        raise ModelError(f"{what} that can be read: {told(fault)}", hint) from fault


def told(fault: BaseException) -> str:
    """What the library says, which may quote all of a file."""
    text = str(fault)
    return text if len(text) <= LONGEST_FAULT else f"{text[:LONGEST_FAULT]}..."


def is_outside(fault: BaseException) -> bool:
    """Whether this is no fault of the library, but a wish to stop."""
    return isinstance(fault, KeyboardInterrupt | SystemExit | GeneratorExit)
