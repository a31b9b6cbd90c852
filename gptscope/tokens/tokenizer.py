"""A tokenizer of the `tokenizers` library, and the bytes behind each of its tokens."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from gptscope.errors import UsageError
from gptscope.tokens.faults import is_outside, told
from gptscope.tokens.spelling import spelling_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import tokenizers

FEW = 40  # words that still fit a hint


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

    @property
    def own(self) -> list[int]:
        """The ids of the text itself."""
        return self.ids[self.prepended : len(self.ids) - self.appended]


class Tokenizer:
    """The ids of a text, the bytes of each id, and what the rules put around a text."""

    def __init__(
        self,
        tokenizer: tokenizers.Tokenizer,
        *,
        bos_id: int | None = None,
        eos_id: int | None = None,
        has_chat_template: bool = False,
        file: str = "tokenizer.json",
    ) -> None:
        """Wrap a tokenizer of the `tokenizers` library."""
        tokenizer.no_truncation()  # a file may ask for either, in silence
        tokenizer.no_padding()
        self._tokenizer = tokenizer
        self._added = tokenizer.get_added_tokens_decoder()
        self._bytes: dict[int, bytes] = {}
        self.spelling = spelling_of(tokenizer.decoder)
        self.between = self.spelling.between
        self.bos_id, self.eos_id = bos_id, eos_id
        self.has_chat_template = has_chat_template
        self.file = file  # where it is from

    def encode(self, text: str, *, bos: bool | None = None) -> list[int]:
        """The ids of a text, with what the tokenizer's own rules put around it.

        With `bos`, the BOS token stands before it in any case; with `bos=False`, nothing does.

        Raises:
            UsageError: as `encoded` does.
        """
        return self.encoded(text, bos=bos).ids

    def encoded(self, text: str, *, bos: bool | None = None) -> Encoded:
        """The ids of a text, and how many of them stand around it: see `encode`.

        Raises:
            UsageError: the text holds half a character (a lone surrogate), or an unknown word; or
                there is no BOS token.
        """
        encoded = around(self._encoding(text))
        return encoded if bos is None else self.begun(encoded, bos=bos)

    def placed(self, text: str) -> tuple[Encoded, list[tuple[int, int]]]:
        """The ids of a text, and where each of its own stands in it, in characters.

        Raises:
            UsageError: as `encoded` does.
        """
        made = self._encoding(text)
        encoded = around(made)
        return encoded, made.offsets[encoded.prepended : len(encoded.ids) - encoded.appended]

    def begun(self, encoded: Encoded, *, bos: bool) -> Encoded:
        """The same with the BOS token before it, once, or with nothing.

        Raises:
            UsageError: there is no BOS token.
        """
        ids, before, after = encoded
        if not bos:
            return Encoded(ids[before:], 0, after)
        if self.bos_id is None:
            raise UsageError("--bos cannot be met: this model names no BOS token")
        if ids[:1] == [self.bos_id]:
            return encoded
        return Encoded([self.bos_id, *ids], before + 1, after)

    def _encoding(self, text: str) -> tokenizers.Encoding:
        check_unicode(text)
        try:
            return self._tokenizer.encode(text)
        except BaseException as fault:  # Exception, or, where the library panics, not even that
            if is_outside(fault):
                raise
            why = f"this model cannot read the text: {told(fault)}"
            raise UsageError(why, self._words()) from fault

    def places(self, text: str) -> list[tuple[int, int]]:
        """Where each token of a text stands in it, in bytes; those put around it are left out.

        Where the tokens do not give back the text, characters count as a whole.

        Raises:
            UsageError: as `encoded` does.
        """
        encoded, offsets = self.placed(text)
        if self.joined(encoded.own) == text.encode():
            return [(token.start, token.end) for token in self.tokens(encoded.own)]
        at = [0, *accumulate(len(char.encode()) for char in text)]
        return [(at[start], at[end]) for start, end in offsets]

    @property
    def size(self) -> int:
        """How many tokens it has, special ones included."""
        return self._tokenizer.get_vocab_size(with_added_tokens=True)

    @property
    def adds_bos(self) -> bool:
        """Whether its own rules put the BOS token before a text."""
        made = self._written(self.bos_id)
        return made is not None and made.prepended > 0 and made.ids[0] == self.bos_id

    @property
    def adds_eos(self) -> bool:
        """Whether its own rules put the EOS token after a text."""
        made = self._written(self.eos_id)
        return made is not None and made.appended > 0 and made.ids[-1] == self.eos_id

    def _written(self, token_id: int | None) -> Encoded | None:
        """What becomes of a token that is written out as a text."""
        try:
            return None if token_id is None else self.encoded(self._piece(token_id) or "")
        except UsageError:
            return None

    def without_special(self, text: str) -> str:
        """The text without the special tokens that are written out in it."""
        for token in self._added.values():
            if token.special and token.content:
                text = text.replace(token.content, "")
        return text

    def joined(self, ids: Sequence[int], *, goes_on: bool = False) -> bytes:
        """The bytes of these ids together; `goes_on` where others stand before them."""
        return self.between.join(self._spelled(ids, goes_on=goes_on))

    def decode(self, ids: Sequence[int], *, goes_on: bool = False) -> str:
        """The text of these ids; bytes that are not a whole character are written <0xNN>."""
        return self.joined(ids, goes_on=goes_on).decode(errors="show_byte")

    def _spelled(self, ids: Sequence[int], *, goes_on: bool = False) -> list[bytes]:
        return self.spelling.without_dummies(list(map(self.bytes_of, ids)), goes_on=goes_on)

    def bytes_of(self, token_id: int) -> bytes:
        """The bytes that one token stands for; an id without a token has none."""
        if token_id not in self._bytes:
            self._bytes[token_id] = self._bytes_of(token_id)
        return self._bytes[token_id]

    def _bytes_of(self, token_id: int) -> bytes:
        added = self._added.get(token_id)
        if added is not None and (added.special or self.spelling.alphabet):
            return added.content.encode()
        piece = self._piece(token_id)
        return b"" if piece is None else self.spelling.bytes_of(piece)

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
        for i, data in zip(ids, self._spelled(ids), strict=True):
            end = start + len(data)
            special = i in self._added and self._added[i].special
            tokens.append(Token(i, self.text_of(i), self.bytes_of(i), start, end, special))
            start = end + len(self.between)
        return tokens


def around(made: tokenizers.Encoding) -> Encoded:
    """The ids, and how many of them the rules put before and after the text."""
    added = made.special_tokens_mask
    before = next((i for i, put in enumerate(added) if not put), len(added))
    after = next((i for i, put in enumerate(reversed(added)) if not put), 0)
    return Encoded(list(made.ids), before, after)


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
