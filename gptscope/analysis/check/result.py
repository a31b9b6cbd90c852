"""What one check of a model comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Verdict = Literal["ok", "found", "not possible"]


@dataclass(frozen=True)
class Result:
    """A figure beside its limit, and a sentence for everything that is wrong."""

    check: str
    looked_at: str  # or why the check is not possible
    figure: float | None = None
    limit: float | None = None
    findings: tuple[str, ...] = ()
    possible: bool = True

    @property
    def verdict(self) -> Verdict:
        """In a word."""
        if self.findings:
            return "found"
        return "ok" if self.possible else "not possible"


def counted(check: str, looked_at: str, findings: Iterable[str]) -> Result:
    """A check of which every fault counts: none is allowed."""
    found = tuple(findings)
    return Result(check, looked_at, len(found), 0, found)


def impossible(check: str, why: str) -> Result:
    """A check that this model, or this input, does not allow."""
    return Result(check, why, possible=False)


def many(n: int, what: str) -> str:
    """`1 tensor`, `1,024 tensors`."""
    return f"{n:,} {what}{'s' * (n != 1)}"
