"""How a tokenizer writes bytes: what its decoder, step by step, makes of each of its pieces."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tokenizers import decoders

FALLBACK = re.compile(r"<0x([0-9A-Fa-f]{2})>")
TIDY = (  # what a WordPiece decoder takes back
    *((f" {mark}", mark) for mark in (".", "?", "!", ",")),
    (" ' ", "'"),
    (" n't", "n't"),
    (" 'm", "'m"),
    (" do not", " don't"),
    *((f" '{end}", f"'{end}") for end in ("s", "ve", "re")),
)


@dataclass(frozen=True)
class Spelling:
    """The bytes of pieces, and the spaces that belong to no text."""

    replaced: tuple[tuple[str, str], ...] = ()  # within a piece, one after another
    alphabet: bool = False  # byte-level: a character for each byte
    fallback: bool = False  # <0x0A> is a byte
    inside: str | None = None  # what begins the pieces that no space stands before (WordPiece)
    leading: int = 0  # spaces that stand before the first piece and in no text
    trailing: bool = False  # the same after the last piece
    between: bytes = b""  # what pieces are put together with

    def bytes_of(self, piece: str) -> bytes:
        """The bytes that a piece stands for."""
        if self.inside is not None:
            starts = piece.startswith(self.inside)
            piece = piece.removeprefix(self.inside) if starts else f" {piece}"
        for old, new in self.replaced:
            piece = piece.replace(old, new)
        if self.fallback and (found := FALLBACK.fullmatch(piece)):
            return bytes.fromhex(found[1])
        if self.alphabet:
            known = byte_alphabet()
            if all(char in known for char in piece):
                return b"".join(known[char] for char in piece)
        return piece.encode()

    def without_dummies(self, parts: Sequence[bytes], *, goes_on: bool = False) -> list[bytes]:
        """Bytes of tokens in a row without the spaces that belong to no text."""
        kept = list(parts)
        first = next((i for i, part in enumerate(kept) if part), None)
        if first is None:
            return kept
        if not goes_on:
            kept[first] = self.first(kept[first])
        if self.trailing:
            kept[-1] = kept[-1].removesuffix(b" ")
        return kept

    def first(self, data: bytes) -> bytes:
        """The bytes of a text's first token without the spaces that belong to no text."""
        for _ in range(self.leading):
            data = data.removeprefix(b" ")
        return data


def spelling_of(decoder: decoders.Decoder | None) -> Spelling:
    """What a decoder of the `tokenizers` library says; it puts pieces without one side by side.

    Steps that no GPT's tokenizer has (CTC, a regular expression) are left out: what does not come
    back is told, text by text.
    """
    if decoder is None:
        return Spelling(between=b" ")  # as the library does
    found: dict[str, Any] = {"replaced": ()}
    for step in steps(json.loads(decoder.__getstate__())):
        known = understood(step)
        found |= known | {"replaced": (*found["replaced"], *known.get("replaced", ()))}
    return Spelling(**found)


def steps(state: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The steps of a decoder, those of a sequence one by one."""
    if state["type"] == "Sequence":
        for inner in state["decoders"]:
            yield from steps(inner)
    else:
        yield state


def understood(step: Mapping[str, Any]) -> dict[str, Any]:
    """What one step of a decoder does, as fields of a Spelling."""
    found: dict[str, Any]
    match step:
        case {"type": "ByteLevel"}:
            found = {"alphabet": True}
        case {"type": "ByteFallback"}:
            found = {"fallback": True}
        case {"type": "Replace", "pattern": {"String": old}, "content": new} if old:
            found = {"replaced": ((old, new),)}
        case {"type": "Strip", "content": " ", "start": n}:
            found = {"leading": n}
        case {"type": "Metaspace", "replacement": old, "prepend_scheme": scheme}:
            found = {"replaced": ((old, " "),), "leading": int(scheme != "never")}
        case {"type": "BPEDecoder", "suffix": old} if old:
            found = {"replaced": ((old, " "),), "trailing": True}
        case {"type": "WordPiece", "prefix": inside, "cleanup": tidy}:
            found = {"inside": inside, "leading": 1, "replaced": TIDY if tidy else ()}
        case _:
            found = {}
    return found


@cache
def byte_alphabet() -> dict[str, bytes]:
    """The character that byte-level BPE writes for each byte (GPT-2's encoder.py), turned around.

    Bytes that print stand for themselves; the others are numbered upwards from U+0100.
    """
    printing = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(0x100) if b not in printing]
    shown = [*map(chr, printing), *(chr(0x100 + i) for i in range(len(hidden)))]
    return {char: bytes([b]) for char, b in zip(shown, printing + hidden, strict=True)}


def _show_byte(fault: UnicodeError) -> tuple[str, int]:
    if not isinstance(fault, UnicodeDecodeError):
        raise fault
    bad = fault.object[fault.start : fault.end]
    return "".join(f"<0x{b:02X}>" for b in bad), fault.end


codecs.register_error("show_byte", _show_byte)
