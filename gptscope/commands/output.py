"""What happens after every command: write the answer, to standard output or to a file."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gptscope.errors import ClosedPipe, GptscopeError, UsageError
from gptscope.glyphs import encodable
from gptscope.render import BINARY, ENDINGS, RENDERERS, render
from gptscope.render.screen import UNBOUNDED, Screen, screen_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from gptscope.commands.options import Target
    from gptscope.view import View

    Content = str | bytes | Callable[[BinaryIO], object]

DATA = ("json", "csv", "npz")  # formats for programs
TRIES = 100  # names for a file on its way


def show(view: View, target: Target) -> None:
    """Write the view to standard output or to a file.

    Raises:
        UsageError: the format is unknown, or a terminal cannot show it.
        GptscopeError: the place cannot be written.
    """
    fmt = chosen_format(target)
    if fmt in BINARY:
        refuse_terminal(fmt, target)
    to_file = target.output is not None or sys.stdout is None
    screen = Screen(UNBOUNDED) if to_file else screen_of(sys.stdout)
    if fmt != "table":  # a picture is the same from every terminal, unless --theme is given
        screen = dataclasses.replace(screen, light=False)
    made = render(view, fmt, as_asked(screen, target))
    if target.output is None:
        emit(made)
    else:
        write(target.output, made, force=target.force)


def as_asked(screen: Screen, target: Target) -> Screen:
    """The screen with what the options say of it."""
    return dataclasses.replace(
        screen,
        width=target.width or screen.width,
        unicode=screen.unicode and not target.ascii,
        encoding="ascii" if target.ascii else screen.encoding,
        colours=not target.no_color,
        light=screen.light if target.theme == "auto" else target.theme == "light",
        precision=target.precision,
    )


def refuse_terminal(fmt: str, target: Target) -> None:
    """Bytes go to a file or into a pipe.

    Raises:
        UsageError: they would go to a terminal.
    """
    if target.output is None and sys.stdout is not None and sys.stdout.isatty():
        raise UsageError(
            f"{fmt} is not text, so a terminal cannot show it", f"--output FILE.{fmt} writes a file"
        )


def emit(made: str | bytes) -> None:
    """Write to standard output; characters that its encoding lacks are written as escapes.

    Raises:
        ClosedPipe: nobody reads any more.
        GptscopeError: it cannot be written: the disk is full, or there is no standard output.
    """
    if sys.stdout is None:
        raise GptscopeError("standard output is closed")
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        if isinstance(made, str):
            sys.stdout.write(made)
        else:
            sys.stdout.buffer.write(made)
        sys.stdout.flush()
    except BrokenPipeError:
        raise ClosedPipe from None
    except OSError as fault:
        raise GptscopeError(f"standard output cannot be written: {fault.strerror}") from fault


def tell(text: str) -> None:
    """A line on standard error, if there is one."""
    if sys.stderr is not None:
        sys.stderr.write(f"{encodable(text, sys.stderr.encoding or 'ascii')}\n")


def chosen_format(target: Target, also: tuple[str, ...] = ()) -> str:
    """The format that was named, or that of the file's ending, or a table.

    `also` are formats of one command alone, which are endings too.

    Raises:
        UsageError: there is no such format or ending.
    """
    formats, endings = dict.fromkeys((*RENDERERS, *also)), {**{a: a for a in also}, **ENDINGS}
    if target.format is not None:
        named = target.format if target.format in formats else endings.get(target.format)
        if named is None:
            raise UsageError(f"format {target.format!r} is not one of: {', '.join(formats)}")
        return named
    ending = target.output.suffix.lstrip(".").lower() if target.output else ""
    if ending and ending not in endings:
        known = ", ".join(f".{one}" for one in endings)
        raise UsageError(
            f"{target.output} ends in none of: {known}", "--format names a format for any file"
        )
    return endings.get(ending, "table")


def for_programs(target: Target) -> bool:
    """Whether the answer goes to a program, which reads no titles, and wants all numbers."""
    return chosen_format(target) in DATA


def write(path: Path, made: Content, *, force: bool) -> None:
    """Write a file whole or not at all; large ones are written piece by piece by a function.

    Raises:
        UsageError: the file is there already, and is not to be overwritten.
        GptscopeError: the place cannot be written.
    """
    refuse_existing(path, force=force)
    try:
        if path.exists() and not path.is_file():  # a pipe or a device
            with path.open("wb") as file:
                fill(file, made)
        else:
            replace(path.resolve(), made, force=force)  # a link stays a link
    except FileExistsError:  # since we looked
        raise already(path) from None
    except OSError as fault:
        raise GptscopeError(f"{path} cannot be written: {fault.strerror}") from fault
    except RuntimeError:
        raise GptscopeError(f"{path} cannot be written: it is a link to itself") from None


def refuse_existing(path: Path, *, force: bool) -> None:
    """A file is overwritten only on request, a folder never.

    Raises:
        UsageError: the file is there already.
        GptscopeError: it is a folder, or the place cannot be looked at.
    """
    try:
        if path.is_dir():
            raise GptscopeError(f"{path} cannot be written: it is a folder")
        if path.exists() and not force:
            raise already(path)
    except OSError as fault:
        raise GptscopeError(f"{path} cannot be written: {fault.strerror}") from fault


def already(path: Path) -> UsageError:
    """What is said when a file is not to be overwritten."""
    return UsageError(f"{path} is there already", hint="--force overwrites it")


def replace(path: Path, made: Content, *, force: bool) -> None:
    """The file with this content, or as it was: under a name of its own first, then moved."""
    part, file = unused(path)
    try:
        with file:
            fill(file, made)
        if force and path.exists():
            shutil.copymode(path, part)
        if force or not linked(part, path):
            part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def random_name() -> str:
    """16 characters that nobody else draws."""
    return os.urandom(8).hex()


def unused(path: Path) -> tuple[Path, BinaryIO]:
    """A new file beside this one, under a name that nobody has, with the rights of any new file."""
    for _ in range(TRIES):
        part = path.with_name(f".gptscope-{random_name()}.part")
        with suppress(FileExistsError):
            return part, part.open("xb")
    raise OSError(0, "no name is free for the file on its way")


def linked(part: Path, path: Path) -> bool:
    """Whether the file got its name as a link, which unlike a move overwrites nothing.

    Raises:
        FileExistsError: somebody else was faster.
    """
    try:
        os.link(part, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        return False
    return True


def fill(file: BinaryIO, made: Content) -> None:
    """Write text as UTF-8, bytes as they are, or what a function writes."""
    if callable(made):
        made(file)
    else:
        file.write(made.encode() if isinstance(made, str) else made)
