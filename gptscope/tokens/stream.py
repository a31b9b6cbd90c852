"""Tokens that arrive one by one, as text."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gptscope.tokens.tokenizer import Tokenizer


class Decoder:
    """Text of tokens that arrive one by one: a character is given out when its last byte is in."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Start with nothing pending."""
        self._tokenizer = tokenizer
        self._spelling = tokenizer.spelling
        self._before = b""  # what is given out if another token follows
        self._begun = False
        self._pending = codecs.getincrementaldecoder("utf-8")("show_byte")

    def feed(self, token_id: int) -> str:
        """What this token completes."""
        own, after = self._tokenizer.bytes_of(token_id), self._tokenizer.between
        if own and not self._begun:
            own, self._begun = self._spelling.first(own), True
        if self._spelling.trailing and own.endswith(b" "):
            own, after = own[:-1], b" "
        data, self._before = self._before + own, after
        return self._pending.decode(data)

    def finish(self) -> str:
        """What was never completed, byte by byte."""
        return self._pending.decode(b"", final=True)
