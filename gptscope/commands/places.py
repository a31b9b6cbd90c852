"""Places on the command line: `0:10`, `3,4,9`, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.errors import UsageError, check_index

if TYPE_CHECKING:
    from collections.abc import Iterable


def places(option: str, text: str, n: int, what: str) -> list[int]:
    """The places that an option names among n; negative ones count from the end.

    Raises:
        UsageError: it is something else, or out of range.
    """
    try:
        found = [i for part in text.split(",") for i in one_place(part, n, what)]
    except UsageError:
        raise
    except ValueError:
        raise UsageError(f"{option} takes 0:10 or 3,4,9, not {text!r}") from None
    if not found:
        raise UsageError(f"{option} {text} names no {what}: they go from 0 to {n - 1}")
    return found


def one_place(part: str, n: int, what: str) -> Iterable[int]:
    """One place, or those of a slice."""
    if ":" not in part:
        return [check_index(what, int(part), n)]
    low, high = (int(end) if end.strip() else None for end in part.split(":"))
    return range(n)[low:high]
