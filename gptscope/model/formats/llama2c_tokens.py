"""The tokenizer of llama2.c: a file beside the weights, of as many pieces as they have rows.

An int32, the longest piece, then for each piece a float32 score, an int32 length, and its bytes.
https://github.com/karpathy/llama2.c: `build_tokenizer` and `encode` in run.c, tokenizer.py
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from gptscope.errors import ModelError
from gptscope.model.files import reason, size_of

if TYPE_CHECKING:
    from pathlib import Path

    import tokenizers

UNKNOWN, FIRST, LAST = 0, 1, 2  # <unk>, <s>, </s>
N_SPECIAL, N_BYTES = 3, 256
LONGEST = 1 << 26  # bytes


def find_tokens(weights: Path, n_vocab: int) -> Path | None:
    """The tokenizer beside the weights: tok512.bin for 512 pieces, or tokenizer.bin, or another."""
    try:
        beside = sorted(weights.parent.glob("tok*.bin"))
    except OSError:
        return None
    usual = [f"tok{n_vocab}.bin", "tokenizer.bin"]
    named = [path for name in usual for path in beside if path.name == name]
    return next((path for path in (*named, *beside) if path != weights), None)


def tokenizer_of(path: Path, n_vocab: int) -> tokenizers.Tokenizer:
    """The same ids as run.c gives: one <s>, a space, and what the scores merge.

    Raises:
        ModelError: the file cannot be read, or has other pieces.
    """
    from gptscope.model.formats.sentencepiece import Pieces, merging_tokenizer  # noqa: PLC0415

    texts, scores = read_pieces(path, n_vocab)
    names = {UNKNOWN: "<unk>", FIRST: "<s>", LAST: "</s>"}
    bytes_ = {N_SPECIAL + i: f"<0x{i:02X}>" for i in range(N_BYTES)}
    if n_vocab < N_SPECIAL + N_BYTES or any(texts[i] != bytes_[i] for i in bytes_):
        raise ModelError(f"{path} has no piece for every byte, so it is no tokenizer of llama2.c")
    special = frozenset(names)
    texts = [names.get(i, text) for i, text in enumerate(texts)]
    return merging_tokenizer(Pieces(texts, scores, special, first=FIRST, space=" "))


def read_pieces(path: Path, count: int) -> tuple[list[str], list[float]]:
    """The text and the score of each piece.

    Raises:
        ModelError: the file cannot be read, or does not end behind the last of so many.
    """
    if size_of(path) > LONGEST:
        raise ModelError(f"{path} is longer than {LONGEST:,} bytes, and is not read")
    try:
        data = path.read_bytes()
    except OSError as fault:
        raise ModelError(f"{path} cannot be read: {reason(fault)}") from fault
    texts, scores, at = list[str](), list[float](), 4
    while at + 8 <= len(data) and len(texts) < count:
        score, length = struct.unpack_from("<fi", data, at)
        if not 0 <= length <= len(data) - at - 8:
            break
        texts.append(data[at + 8 : at + 8 + length].decode(errors="replace"))
        scores.append(score)
        at += 8 + length
    if len(texts) != count or at != len(data):
        raise ModelError(f"{path} is not a tokenizer of {count:,} pieces, as the weights have")
    return texts, scores
