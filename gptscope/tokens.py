"""Text <-> tokens: id, text, bytes and place in the text."""

from __future__ import annotations

import codecs
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import tokenizers

from gptscope.errors import ModelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


FEW = 40  # words that still fit a hint
LONGEST_FAULT = 300  # characters
LARGEST = 100_000_000  # bytes of a tokenizer.json; those of 256,000 tokens have 35 million


@dataclass(frozen=True)
class Token:
    """One token; its place is counted in bytes of the text that the tokens make together."""

    id: int
    text: str  # bytes that are not a whole character are written <0xNN>
    bytes: bytes
    start: int
    end: int
    special: bool


class Encoded(NamedTuple):
    """A text as ids, and how many stand before and after its own."""

    ids: list[int]
    prepended: int
    appended: int


class Tokenizer:
    """A tokenizer.json, and the bytes behind each of its tokens."""

    def __init__(self, tokenizer: tokenizers.Tokenizer) -> None:
        """Wrap a tokenizer of the `tokenizers` library."""
        tokenizer.no_truncation()  # a file may ask for either, in silence
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._added = tokenizer.get_added_tokens_decoder()
        byte_level = isinstance(tokenizer.decoder, tokenizers.decoders.ByteLevel)
        self._byte_of = byte_alphabet() if byte_level else {}
        # Words without a decoder are put together with a space, as the library does.
        self.between = b" " if tokenizer.decoder is None else b""

    def encode(self, text: str) -> list[int]:
        """The ids of a text, with what the tokenizer's own rules put around it.

        Raises:
            UsageError: the text holds half a character (a lone surrogate).
        """
        return self.encoded(text).ids

    def encoded(self, text: str) -> Encoded:
        """The ids of a text, and how many of them the tokenizer's own rules put around it.

        Raises:
            UsageError: the text holds half a character (a lone surrogate), or an unknown word.
        """
        check_unicode(text)
        try:
            made = self._tokenizer.encode(text)
        except BaseException as fault:  # Exception, or, where the library panics, not even that
            if is_outside(fault):
                raise
            why = f"this model cannot read the text: {told(fault)}"
            raise UsageError(why, self._words()) from fault
        added = made.special_tokens_mask
        before = next((i for i, put in enumerate(added) if not put), len(added))
        after = next((i for i, put in enumerate(reversed(added)) if not put), 0)
        return Encoded(list(made.ids), before, after)

    @property
    def size(self) -> int:
        """How many tokens it has, special ones included."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    def without_special(self, text: str) -> str:
        """The text without the special tokens that are written out in it."""
        for token in self._added.values():
            if token.special and token.content:
                text = text.replace(token.content, "")
        return text

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids; bytes that are not a whole character are written <0xNN>."""
        return self.between.join(map(self.bytes_of, ids)).decode(errors="show_byte")

    def bytes_of(self, token_id: int) -> bytes:
        """The bytes that one token stands for; an id without a token has none."""
        if token_id in self._added:
            return self._added[token_id].content.encode()
        piece = self._piece(token_id)
        if piece is None:
            return b""
        return b"".join(self._byte_of.get(c) or c.encode() for c in piece)

    def text_of(self, token_id: int) -> str:
        """One token alone; bytes that are not a whole character are written <0xNN>."""
        if self._piece(token_id) is None:
            return f"<id {token_id}>"
        return self.bytes_of(token_id).decode(errors="show_byte")

    def _words(self) -> str | None:
        """All that it knows, where that is little."""
        words = sorted(self._tokenizer.get_vocab())
        return f"it knows: {' '.join(words)}" if len(words) <= FEW else None

    def _piece(self, token_id: int) -> str | None:
        known = 0 <= token_id < 1 << 32  # what the library can be asked for
        return self._tokenizer.id_to_token(token_id) if known else None

    def tokens(self, ids: Sequence[int]) -> list[Token]:
        """Every token of these ids with its bytes and its place."""
        tokens, start = [], 0
        for i in ids:
            data = self.bytes_of(i)
            end = start + len(data)
            special = i in self._added and self._added[i].special
            tokens.append(Token(i, self.text_of(i), data, start, end, special))
            start = end + len(self.between)
        return tokens


class Decoder:
    """Text of tokens that arrive one by one: a character is given out when its last byte is in."""

    def __init__(self, tokenizer: Tokenizer, *, goes_on: bool = False) -> None:
        """Start with nothing pending; `goes_on` where other tokens stand before."""
        self._tokenizer = tokenizer
        self._before = tokenizer.between if goes_on else b""
        self._pending = codecs.getincrementaldecoder("utf-8")("show_byte")

    def feed(self, token_id: int) -> str:
        """What this token completes."""
        data = self._before + self._tokenizer.bytes_of(token_id)
        self._before = self._tokenizer.between
        return self._pending.decode(data)

    def finish(self) -> str:
        """What was never completed, byte by byte."""
        return self._pending.decode(b"", final=True)


def check_unicode(text: str) -> None:
    """A text must have whole characters.

    Raises:
        UsageError: it holds half of one (a lone surrogate).
    """
    try:
        text.encode()
    except UnicodeEncodeError as fault:
        code = ord(text[fault.start])
        raise UsageError(
            f"character {fault.start} of the text (U+{code:04X}) is not valid Unicode"
        ) from None


def load_tokenizer(path: Path) -> Tokenizer | None:
    """The tokenizer.json at this path, or None where there is none.

    Raises:
        ModelError: it cannot be understood.
    """
    if not os.path.lexists(path):
        return None
    if not path.is_file():
        raise ModelError(f"{path} cannot be read: it is not a file")
    if path.stat().st_size > LARGEST:
        raise ModelError(f"{path} is longer than {LARGEST:,} bytes, and is not read")
    try:
        return Tokenizer(tokenizers.Tokenizer.from_file(str(path)))
    except ModelError:
        raise
    except (
        BaseException
    ) as fault:  # the library raises Exception, and where it panics not even that
        if is_outside(fault):
            raise
        raise ModelError(
            f"{path} is not a tokenizer that can be read: {told(fault)}",
            hint="without that file, the model can be given token ids: --ids 643,414,266",
        ) from fault


def told(fault: BaseException) -> str:
    """What the library says, which may quote all of a file."""
    text = str(fault)
    return text if len(text) <= LONGEST_FAULT else f"{text[:LONGEST_FAULT]}..."


def is_outside(fault: BaseException) -> bool:
    """Whether this is no fault of the library, but a wish to stop."""
    return isinstance(fault, KeyboardInterrupt | SystemExit | GeneratorExit)


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
