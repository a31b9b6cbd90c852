"""Long texts as tokens: in pieces that overlap, so that memory stays bounded and one can stop."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any

from gptscope.tokens.tokenizer import Encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gptscope.tokens.tokenizer import Tokenizer

    Placed = tuple[int, int, int]  # a token: id, and where it stands in the text

PIECE = 1 << 18  # characters
OVERLAP = 1 << 11
ALIKE = 16  # tokens in a row that two pieces must agree on
AT_ONCE = 4096  # tokens whose sizes are looked up


def in_pieces(
    tokenizer: Tokenizer,
    text: str,
    tick: Callable[[int], Any] = lambda _n: None,
    sizes: tuple[int, int] = (PIECE, OVERLAP),
) -> Encoded:
    """The ids of a text, as `encoded` has them; `tick` is told how many characters are done.

    A piece goes on from where it agrees with the one before, on many tokens in a row, away from the
    ends of both. Where they do not agree anywhere, the text is read at once.

    Raises:
        UsageError: as `Tokenizer.encoded` does.
    """
    piece, overlap = sizes
    made, own = placed(tokenizer, text[:piece], 0)
    head, ids, done = made.ids[: made.prepended], list[int](), min(piece, len(text))
    tick(done)
    while done < len(text):
        low, end = done - overlap, min(done - overlap + piece, len(text))
        made, more = placed(tokenizer, text[low:end], low)
        met = meeting(own, more, (low + overlap // 4, done - overlap // 4))
        if met is None:
            return tokenizer.encoded(text)
        ids += [token[0] for token in own[: met[0]]]
        tick(end - done)
        own, done = more[met[1] :], end
    ids += [token[0] for token in own]
    tail = made.ids[len(made.ids) - made.appended :]
    return Encoded([*head, *ids, *tail], len(head), len(tail))


def placed(tokenizer: Tokenizer, text: str, at: int) -> tuple[Encoded, list[Placed]]:
    """The tokens of a piece that begins at a character of the whole, with their places there."""
    made, offsets = tokenizer.placed(text)
    pairs = zip(made.own, offsets, strict=True)
    return made, [(i, start + at, end + at) for i, (start, end) in pairs]


def meeting(
    a: Sequence[Placed], b: Sequence[Placed], between: tuple[int, int]
) -> tuple[int, int] | None:
    """Where both have the same tokens in a row for the first time, all within these characters."""
    low, high = between
    first = next((i for i in range(len(a), 0, -1) if a[i - 1][1] < low), 0)
    there = {token: i for i, token in reversed(list(enumerate(a[first:], first)))}
    for j, token in enumerate(b):
        if token[1] >= high:
            return None
        i = there.get(token)
        if token[1] < low or i is None:
            continue
        run = b[j : j + ALIKE]
        if len(run) == ALIKE and run[-1][2] <= high and list(a[i : i + ALIKE]) == list(run):
            return i, j
    return None


def ends(
    tokenizer: Tokenizer,
    own: Sequence[int],
    text: str,
    tick: Callable[[int], Any] = lambda _n: None,
) -> list[int]:
    """Where each of a text's own tokens ends in it, in bytes; `tick` is told how many are done.

    Raises:
        UsageError: as `Tokenizer.places` does, where the tokens do not give back the text.
    """
    if tokenizer.joined(own) != text.encode():
        return [end for _, end in tokenizer.places(text)]
    gap, sizes = len(tokenizer.between), [-len(tokenizer.between)]
    for low in range(0, len(own), AT_ONCE):
        before = min(low, 1)  # what stands around a token may change how it is spelled
        seen = tokenizer.tokens(own[low - before : low + AT_ONCE + 1])[before : before + AT_ONCE]
        sizes += [token.end - token.start + gap for token in seen]
        tick(len(seen))
    return list(accumulate(sizes))[1:]
