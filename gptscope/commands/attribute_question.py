"""The tokens whose logits are asked about, as attribute and neurons read and tell them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.commands.answers import answer_id, likeliest
from gptscope.commands.attribute_asked import APART
from gptscope.commands.session import Run, token_text
from gptscope.errors import GptscopeError, UsageError
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gptscope.engine.trace import Trace

DATA = ("json", "csv", "npz")  # formats for programs


def asked_for(
    run: Run, trace: Trace, position: int, texts: tuple[str | None, str | None]
) -> dict[int, float]:
    """How often the logit of each token counts: 1 for the answer, -1 for the one against it.

    Without an answer it is the likeliest token.

    Raises:
        UsageError: one is no token of this model, or both are the same.
        GptscopeError: the logits there are no numbers.
    """
    answer, against = texts
    where = f"after {place(run, position)}"
    first = likeliest(trace.logits[position], where)
    if trace.logits[position, first] == float("inf"):
        raise GptscopeError(f"the logits {where} hold infinity, so no token can be rated")
    if answer is not None:
        first = answer_id(run.model, answer)
    if against is None:
        return {first: 1.0}
    second = answer_id(run.model, against, "--against")
    if first == second:
        raise UsageError(f"the answer and --against are the same token, {first}")
    return {first: 1.0, second: -1.0}


def place(run: Run, position: int) -> str:
    """A token in words: `token 5 ·her`."""
    return f"token {position} {token_glyphs(run.labels[position])}"


def question(
    run: Run, trace: Trace, position: int, wanted: Mapping[int, float], *, given: bool, data: bool
) -> Table:
    """The tokens that are asked about, with their logits and probabilities.

    For programs with the position as well, which people read in the title.
    """
    from gptscope.engine.sampling import Sampling, distribution, rank

    capped = run.model.spec.logit_cap is not None
    logits = trace.logits[position]
    held = trace.logits_before_cap[position] if capped else logits
    shares = distribution(logits, Sampling())
    names = ("answer" if given else "likeliest", "against")
    rows: list[tuple[Any, ...]] = [
        (name, token_text(run.model, i), i, float(held[i]), float(shares[i]), rank(logits, i))
        for name, i in zip(names, wanted, strict=False)
    ]
    if len(rows) > 1:
        difference = sum(weight * float(held[i]) for i, weight in wanted.items())
        rows.append((APART, None, None, difference, None, None))
    logit = Column("logit before its cap" if capped else "logit", "signed")
    token = (Column("asked"), Column("token", "token"), Column("id", "id"))
    columns = (*token, logit, Column("probability", "probability"), Column("rank", "id"))
    title = f"After {place(run, position)}"
    if not data:
        return Table(title, columns, rows, "asked")
    at = [(position, *row) for row in rows]
    return Table(title, (Column("position", "id"), *columns), at, "asked")
