"""Tokenizers that merge by scores, as SentencePiece does, built for the `tokenizers` library.

Of all neighbours, the two whose union has the best score are merged first. The library merges by
rank instead: here every pair of pieces that makes a piece is ranked by the score of what it makes.
Kudo and Richardson 2018, SentencePiece; `encode` in https://github.com/karpathy/llama2.c run.c
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, processors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SPACE = "\u2581"  # how SentencePiece writes a space


@dataclass(frozen=True)
class Pieces:
    """A vocabulary: the id of a piece is its place."""

    texts: Sequence[str]
    scores: Sequence[float]  # the higher, the sooner
    special: frozenset[int] = frozenset()  # ids that no text makes
    whole: frozenset[int] = frozenset()  # ids that a text makes where it holds the piece
    unknown: int = 0
    first: int | None = None  # the id that is put before every text
    last: int | None = None
    space: str = SPACE
    prefix: bool = True  # whether a space is put before every text


def merging_tokenizer(pieces: Pieces) -> Tokenizer:
    """The tokenizer of these pieces; what is none is spelled in bytes, <0x00> to <0xFF>."""
    vocab = {text: i for i, text in reversed([*enumerate(pieces.texts)])}
    tokenizer = Tokenizer(
        models.BPE(
            vocab,
            list(merges(pieces, vocab)),
            unk_token=pieces.texts[pieces.unknown],
            fuse_unk=True,
            byte_fallback=True,
        )
    )
    space = pieces.space
    steps: list[normalizers.Normalizer] = [normalizers.Prepend(space)] if pieces.prefix else []
    if space != " ":
        steps.append(normalizers.Replace(" ", space))
    tokenizer.normalizer = normalizers.Sequence(steps)
    strip = [decoders.Strip(" ", 1, 0)] if pieces.prefix else []
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(space, " "), decoders.ByteFallback(), decoders.Fuse(), *strip]
    )
    add_special(tokenizer, pieces.texts, pieces.special, pieces.whole)
    put_around(tokenizer, pieces.texts, pieces.first, pieces.last)
    return tokenizer


def merges(pieces: Pieces, vocab: dict[str, int]) -> Iterator[tuple[str, str]]:
    """Every pair of pieces that makes a piece, the best first; of equals, the earlier."""
    normal = [i for i in vocab.values() if i not in pieces.special and len(pieces.texts[i]) > 1]
    for i in sorted(normal, key=lambda i: (-pieces.scores[i], i)):
        text = pieces.texts[i]
        for cut in range(1, len(text)):
            if text[:cut] in vocab and text[cut:] in vocab:
                yield text[:cut], text[cut:]


def add_special(
    tokenizer: Tokenizer, texts: Sequence[str], special: frozenset[int], whole: frozenset[int]
) -> None:
    """Name the tokens that stand for no text, and those that a text is never cut inside of."""
    for ids, is_special in ((special, True), (whole, False)):
        chosen = [
            AddedToken(texts[i], normalized=False, special=is_special)
            for i in sorted(ids)
            if i < len(texts) and texts[i]
        ]
        if chosen:
            tokenizer.add_tokens(chosen)


def put_around(
    tokenizer: Tokenizer, texts: Sequence[str], first: int | None, last: int | None
) -> None:
    """Put a token before every text, or one after it, or both."""
    ends = [(texts[i], i) for i in (first, last) if i is not None]
    if not ends:
        return
    template = [
        *([] if first is None else [texts[first]]),
        "$A",
        *([] if last is None else [texts[last]]),
    ]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=template, special_tokens=list(dict(ends).items())
    )
