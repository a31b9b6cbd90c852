"""The tokens whose logits are asked about, as attribute and neurons read and tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.commands.answers import APART, POSITION, asked_table, likeliest, rated_token, wanted
from gptscope.commands.session import Run
from gptscope.view import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gptscope.analysis.attribution import Account
    from gptscope.engine.trace import Trace

ALIKE = (
    "What raises the logits of all tokens alike is in these numbers, and changes no probability: "
    "--against a second token takes it off"
)


def asked_for(
    run: Run, trace: Trace, position: int, texts: tuple[str | None, str | None]
) -> dict[int, float]:
    """How often the logit of each token counts: 1 for the answer, -1 for the one against it.

    Without an answer it is the likeliest token.

    Raises:
        UsageError: one is no token of this model, or both are the same.
        GptscopeError: the logits there are no numbers.
    """
    best = likeliest(trace.logits[position], f"after {run.place(position)}")
    return wanted(run.model, [best], *texts)


def account_of(run: Run, trace: Trace, position: int, tokens: Mapping[int, float]) -> Account:
    """All terms of the logits of these tokens; a bar shows where this takes long."""
    from gptscope.analysis.attribution import attribute
    from gptscope.commands.progress import counting

    with counting(run.model) as model:
        return attribute(model, trace, position, tokens)


def question(
    run: Run, trace: Trace, position: int, tokens: Mapping[int, float], *, given: bool, data: bool
) -> Table:
    """The tokens that are asked about, with their logits and probabilities.

    For programs with the position as well, which people read in the title.
    """
    capped = run.model.spec.logit_cap is not None
    logits = trace.logits[position]
    held = trace.logits_before_cap[position] if capped else logits
    names = ("answer" if given else "likeliest", "against")
    rows = [rated_token(run.model, one, logits, held) for one in zip(names, tokens, strict=False)]
    if len(rows) > 1:
        difference = sum(weight * float(held[i]) for i, weight in tokens.items())
        rows.append((APART, None, None, difference, None, None))
    title, logit = f"After {run.place(position)}", "logit before its cap" if capped else "logit"
    if not data:
        return asked_table(title, rows, logit=logit)
    return asked_table(title, [(position, *row) for row in rows], POSITION, logit=logit)
