"""Files of a model folder: plain files alone are opened, and JSON never longer than it may be."""

from __future__ import annotations

import json
import stat
from typing import TYPE_CHECKING, Any

from gptscope.errors import ModelError

if TYPE_CHECKING:
    from pathlib import Path

LONGEST_JSON = 10_000_000  # bytes: what is read takes twenty times as much memory at the worst
LFS = b"version https://git-lfs"
SHOWN = 80  # characters of a name or a value in a sentence
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def size_of(path: Path) -> int:
    """The bytes in a plain file; nothing is opened that could block or never end.

    Raises:
        ModelError: it is not there, cannot be reached, or is no plain file.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        raise ModelError(f"{path} is not there") from None
    except (OSError, ValueError) as fault:  # a link to itself; a NUL in the name
        raise ModelError(f"{path} cannot be read: {reason(fault)}") from fault
    if not stat.S_ISREG(found.st_mode):
        kind = KINDS.get(stat.S_IFMT(found.st_mode), "something else")
        raise ModelError(f"{path} cannot be read: it is {kind}, not a file")
    return found.st_size


def reason(fault: Exception) -> str:
    """What the system says, without the number of the error and the name of the file."""
    return getattr(fault, "strerror", None) or str(fault)


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        ModelError: it cannot be read, is too long, or holds something else.
    """
    if size_of(path) > LONGEST_JSON:
        raise ModelError(f"{path} is longer than {LONGEST_JSON:,} bytes, and is not read")
    refuse_pointer(path)
    try:
        with path.open("rb") as file:
            values = json.loads(file.read(LONGEST_JSON).decode())
    except OSError as fault:
        raise ModelError(f"{path} cannot be read: {reason(fault)}") from fault
    except UnicodeDecodeError as fault:
        raise ModelError(f"{path} is not UTF-8 text (byte {fault.start})") from fault
    except json.JSONDecodeError as fault:
        where = f"line {fault.lineno}, column {fault.colno}"
        raise ModelError(f"{path} is not JSON ({where})") from fault
    except RecursionError as fault:
        raise ModelError(f"{path} is nested too deeply") from fault
    except ValueError as fault:  # a number of too many digits
        raise ModelError(f"{path} cannot be read: {reason(fault)}") from fault
    if not isinstance(values, dict):
        raise ModelError(f"{path} is not a JSON object")
    return values


def refuse_pointer(path: Path) -> None:
    """Git without its LFS extension leaves small texts in place of large files.

    Raises:
        ModelError: this is one.
    """
    try:
        if not path.is_file():  # a pipe would wait for ever
            return
        with path.open("rb") as file:
            start = file.read(len(LFS))
    except (OSError, ValueError):  # what reads the file will say why
        return
    if start == LFS:
        raise ModelError(
            f"{path} is a Git-LFS pointer of {size_of(path)} bytes, not the file itself",
            hint="git lfs pull puts it in its place",
        )


def counted(n: int, what: str) -> str:
    """`1 token`, `1,024 tokens`."""
    return f"{n:,} {what}{'s' * (n != 1)}"


def short(text: str) -> str:
    """A name or a value as a sentence can hold it."""
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}..."
