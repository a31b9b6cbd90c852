"""What edits made of values that hold what a hidden unit gave."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gptscope.analysis.attribution import Account, Term
    from gptscope.commands.neurons import Question

FEW = 3  # values that are named one by one


def edits(account: Account) -> list[Term]:
    """What the account has for edits."""
    return [term for term in account.terms if term.kind == "edit"]


def edits_after(asked: Question, account: Account, layers: Iterable[int]) -> list[Term]:
    """Those of values that the units of these layers are a part of, up to the logits."""
    from gptscope.analysis.neurons import way_after

    found = edits(account)
    if not found:
        return []
    values = {value for layer in set(layers) for value in way_after(asked.trace, layer)}
    return [term for term in found if term.of in values | {("logits", None)}]


def told(after: list[Term]) -> Iterator[str]:
    """That what units give is counted before these edits, in a sentence."""
    from gptscope.analysis.wiring import full_name

    if after:
        names = [full_name(term.of) for term in after if term.of is not None]
        few = " and ".join(names) if len(names) <= FEW else f"{len(names)} values"
        row = "a row of its own" if len(names) == 1 else "in rows of their own"
        yield (
            f"What a unit gives is counted before --edit changed {few}: what that put in or took "
            f"away, from all that was there, is {row}"
        )
