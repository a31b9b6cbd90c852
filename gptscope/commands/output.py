"""What happens after every command: write the answer, to standard output or to a file."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gptscope.errors import ClosedPipe, GptscopeError, UsageError
from gptscope.render import RENDERERS, render
from gptscope.render.screen import UNBOUNDED, Screen, screen_of

if TYPE_CHECKING:
    from gptscope.commands.options import Target
    from gptscope.view import View


def show(view: View, target: Target) -> None:
    """Write the view to standard output or to a file.

    Raises:
        UsageError: the format is unknown, or the file is there already.
    """
    fmt = chosen_format(target)
    if target.output is None:
        emit(render(view, fmt, Screen() if sys.stdout is None else screen_of(sys.stdout)))
        return
    if target.output.exists() and not target.force:
        raise UsageError(f"{target.output} is there already", hint="--force overwrites it")
    write(target.output, render(view, fmt, Screen(UNBOUNDED)))


def emit(text: str) -> None:
    """Write to standard output; characters that its encoding lacks are written as escapes.

    Raises:
        ClosedPipe: nobody reads any more.
        GptscopeError: it cannot be written: the disk is full, or there is no standard output.
    """
    if sys.stdout is None:
        raise GptscopeError("standard output is closed")
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ClosedPipe from None
    except OSError as fault:
        raise GptscopeError(f"standard output cannot be written: {fault.strerror}") from fault


def chosen_format(target: Target) -> str:
    """The format that was named, or that of the file's ending, or a table."""
    ending = target.output.suffix.lstrip(".") if target.output else ""
    fmt = target.format or (ending if ending in RENDERERS else "table")
    if fmt not in RENDERERS:
        raise UsageError(f"format {fmt!r} is not one of: {', '.join(RENDERERS)}")
    return fmt


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all: under another name first, then moved.

    Raises:
        GptscopeError: the place cannot be written.
    """
    if path.is_dir():
        raise GptscopeError(f"{path} cannot be written: it is a folder")
    if path.exists() and not path.is_file():  # a pipe or a device
        path.write_text(text, "utf-8")
        return
    target = path.resolve()  # a link stays a link
    part = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        part.write_text(text, "utf-8")
        part.replace(target)
    except OSError as fault:
        raise GptscopeError(f"{path} cannot be written: {fault.strerror}") from fault
    finally:
        part.unlink(missing_ok=True)
