"""What happens after every command: write the answer, to standard output or to a file."""

from __future__ import annotations

import dataclasses
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
        GptscopeError: the format is unknown, or the place cannot be written.
    """
    fmt = chosen_format(target)
    to_file = target.output is not None or sys.stdout is None
    screen = Screen(UNBOUNDED) if to_file else screen_of(sys.stdout)
    text = render(view, fmt, as_asked(screen, target))
    if target.output is None:
        emit(text)
    else:
        write(target.output, text, force=target.force)


def as_asked(screen: Screen, target: Target) -> Screen:
    """The screen with what the options say of it."""
    return dataclasses.replace(
        screen,
        width=target.width or screen.width,
        unicode=screen.unicode and not target.ascii,
        colours=not target.no_color,
        light=screen.light if target.theme == "auto" else target.theme == "light",
        precision=target.precision,
    )


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


def tell(text: str) -> None:
    """A line on standard error, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{text}\n")


def chosen_format(target: Target) -> str:
    """The format that was named, or that of the file's ending, or a table.

    Raises:
        UsageError: there is no such format.
    """
    ending = target.output.suffix.lstrip(".").lower() if target.output else ""
    fmt = target.format or ("table" if ending in ("", "txt") else ending)
    if fmt not in RENDERERS:
        raise UsageError(f"format {fmt!r} is not one of: {', '.join(RENDERERS)}")
    return fmt


def write(path: Path, text: str, *, force: bool) -> None:
    """Write a file whole or not at all: under another name first, then moved.

    Raises:
        UsageError: the file is there already, and is not to be overwritten.
        GptscopeError: the place cannot be written.
    """
    try:
        if path.exists() and not force:
            raise UsageError(f"{path} is there already", hint="--force overwrites it")
        if path.is_dir():
            raise GptscopeError(f"{path} cannot be written: it is a folder")
        if path.exists() and not path.is_file():  # a pipe or a device
            path.write_text(text, "utf-8")
        else:
            replace(path.resolve(), text)  # a link stays a link
    except OSError as fault:
        raise GptscopeError(f"{path} cannot be written: {fault.strerror}") from fault
    except RuntimeError:
        raise GptscopeError(f"{path} cannot be written: it is a link to itself") from None


def replace(path: Path, text: str) -> None:
    """The file with this text, or as it was."""
    part = path.with_name(f".gptscope-{os.getpid()}.part")
    try:
        part.write_text(text, "utf-8")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
