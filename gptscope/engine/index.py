"""Which numbers of a value: `[4]`, `[:,17]`, `[2:5,-1]`, as NumPy has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.errors import UsageError, check_index

if TYPE_CHECKING:
    from collections.abc import Sequence

Index = tuple[int | slice, ...]
WORDS = {  # what is counted along an axis
    "T": "token",
    "S": "token read",
    "d": "dimension",
    "d_h": "dimension",
    "H*d_h": "dimension",
    "F": "unit",
    "V": "token id",
    "H": "head",
    "1": "place",
}


def read_index(written: str | None, whole: str) -> Index:
    """What stands between brackets: whole numbers and slices with commas between them.

    Raises:
        UsageError: it is something else; `whole` is what it was found in.
    """
    try:
        return () if written is None else tuple(map(one, written.split(",")))
    except ValueError:
        raise UsageError(
            f"{whole}: [{written}] is no index", "one looks so: [4], [:,17], [2:5,-1]"
        ) from None


def one(text: str) -> int | slice:
    """A number or a slice."""
    if ":" not in text:
        return int(text)
    ends = [int(end) if end.strip() else None for end in text.split(":")]
    return slice(*ends)


def checked(index: Index, axes: Sequence[str], shape: Sequence[int], whole: str) -> Index:
    """The same, counted from the start, if the value is as large as that.

    Raises:
        UsageError: there are fewer axes, or an axis is shorter, or a slice holds nothing.
    """
    if len(index) > len(shape):
        raise UsageError(f"{whole}: the value has {len(shape)} axes ({' '.join(axes)})")
    pairs = zip(index, axes, shape, strict=False)
    try:
        return tuple(within(part, WORDS[axis], n) for part, axis, n in pairs)
    except UsageError as fault:
        raise UsageError(f"{whole}: {fault}") from None


def within(part: int | slice, what: str, n: int) -> int | slice:
    """A number or a slice of an axis of length n."""
    if isinstance(part, int):
        return check_index(what, part, n)
    if part.step == 0:
        raise UsageError("a slice cannot have steps of 0")
    for end in (part.start, part.stop):
        if end is not None and not -n <= end <= n:
            raise UsageError(f"{what} {end} is out of range: this one has {what}s 0 to {n - 1}")
    if not range(n)[part]:
        raise UsageError("the slice holds nothing")
    return part
