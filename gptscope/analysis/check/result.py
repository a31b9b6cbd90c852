"""What one check of a model comes to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gptscope.analysis.check.checks import CHECKS, from_stage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gptscope.analysis.check.checks import Check, Stage

Verdict = Literal["ok", "found", "doubtful", "not possible"]


@dataclass(frozen=True)
class Result:
    """A figure beside its limit, and a sentence for everything that is wrong or may be."""

    check: str  # a key of CHECKS
    looked_at: str  # or why the check is not possible
    found: float | None = None
    limit: float | None = None
    findings: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    possible: bool = True

    @property
    def about(self) -> Check:
        """What this check looks for."""
        return CHECKS[self.check]

    @property
    def verdict(self) -> Verdict:
        """In a word."""
        if self.findings:
            return "found"
        if self.doubts:
            return "doubtful"
        return "ok" if self.possible else "not possible"


def faultless(check: str, looked_at: str, findings: Iterable[str]) -> Result:
    """A check of which every fault counts: none is allowed."""
    found = tuple(findings)
    return Result(check, looked_at, len(found), 0, found)


def impossible(check: str, why: str) -> Result:
    """A check that this model, or this input, does not allow."""
    return Result(check, why, possible=False)


def all_impossible(stage: Stage, why: str) -> Iterator[Result]:
    """Every check that needs what is not there."""
    return (impossible(name, why) for name in from_stage(stage))
