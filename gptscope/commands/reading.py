"""Where a text comes from: the command line, a file, standard input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gptscope.errors import GptscopeError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from gptscope.commands.options import Source
    from gptscope.model.weights import Model
    from gptscope.tokens import Encoded, Tokenizer

LONGEST = 1_000_000  # bytes of a text: a long novel, whose tokens are listed in seconds


def read_text(source: Source, longest: int = LONGEST) -> str:
    """TEXT, or what the file or standard input holds.

    Raises:
        GptscopeError: the file cannot be read, or is not UTF-8.
        UsageError: the text is longer than any that is looked at.
    """
    if source.file is None:
        text = source.text or ""
        size = len(text.encode(errors="surrogatepass"))
    else:
        data = bytes_of(source.file, longest)
        size = len(data)
        text = decoded(data, source.file) if size <= longest else ""
    if size > longest:
        raise UsageError(
            f"the text is longer than {longest:,} bytes, and is not read",
            hint="a part of it shows as much: head -c 1000 FILE | gptscope ... --file -",
        )
    return text


def tokenised(tokenizer: Tokenizer, text: str, *, bos: bool | None) -> Encoded:
    """The text as ids; a long one in pieces, with a bar.

    Raises:
        UsageError: as `Tokenizer.encoded` does.
    """
    if len(text) <= LONGEST:
        return tokenizer.encoded(text, bos=bos)
    from gptscope.commands.progress import progress
    from gptscope.tokens import in_pieces

    with progress(len(text), "reading the text") as tick:
        made = in_pieces(tokenizer, text, tick)
    return made if bos is None else tokenizer.begun(made, bos=bos)


def begun(model: Model, ids: tuple[int, ...], *, bos: bool | None) -> tuple[tuple[int, ...], int]:
    """Ids that were given, with the BOS token before them if that is asked for, and how many it is.

    Raises:
        UsageError: there is no BOS token, or nothing at all to begin with.
    """
    from gptscope.engine.ids import in_vocabulary

    if bos is False and not ids:
        raise UsageError("with --no-bos there is nothing to begin with: give a text")
    if not bos or (ids and ids[0] == model.bos_id):
        return ids, 0
    if model.bos_id is None:
        raise UsageError("--bos cannot be met: this model names no BOS token")
    return tuple(in_vocabulary(model.spec, (model.bos_id, *ids)).tolist()), 1


def bytes_of(file: Path, longest: int = LONGEST) -> bytes:
    """What a file or, for -, standard input holds, and no more than is needed to see its end.

    Raises:
        GptscopeError: it cannot be read.
    """
    try:
        if str(file) == "-":
            return standard_input(longest)
        with file.open("rb") as stream:
            return stream.read(longest + 1)
    except (OSError, ValueError) as fault:  # a NUL in the name is no OSError
        why = getattr(fault, "strerror", None) or fault
        raise GptscopeError(f"{file} cannot be read: {why}") from fault


def decoded(data: bytes, file: Path) -> str:
    """UTF-8 as text.

    Raises:
        GptscopeError: it is something else.
    """
    try:
        return data.decode()
    except UnicodeDecodeError as fault:
        raise GptscopeError(f"{file} is not UTF-8 text: {fault}") from fault


def standard_input(longest: int = LONGEST) -> bytes:
    """All of it, or as much as is needed to see that it is too long.

    Raises:
        GptscopeError: there is none.
    """
    if sys.stdin is None:
        raise GptscopeError("standard input is closed")
    return sys.stdin.buffer.read(longest + 1)
