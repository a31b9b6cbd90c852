"""What `compare` shows: the next token before and after, and where the two passes part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.commands.compare_layers import Asked, drawable, grid, layers, place, shifted
from gptscope.commands.session import Run, token_text
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Facts, Note, Part, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gptscope.analysis.before_after import Moved
    from gptscope.engine.trace import Trace

    Traces = tuple[Trace, Trace]

NEXT = (
    Column("token", "token"),
    Column("id", "id"),
    Column("rank before", "id"),
    Column("rank after", "id"),
    Column("probability before", "probability"),
    Column("probability after", "probability"),
    Column("change", "contribution"),
    Column("logit before", "signed"),
    Column("logit after", "signed"),
)
APART = (Column("divergence"), Column("bits", "length"), Column("nats", "length"))


def parts(run: Run, traces: Traces, asked: Asked) -> tuple[Part, ...]:
    """All parts of the answer; of an edit that changes nothing, a sentence says so."""
    from gptscope.analysis.before_after import moved

    made = moved(*traces)
    found: list[Part] = [facts(run, made), *verdict(run, made, asked)]
    found += [apart(run, traces, made, asked), *predictions(run, traces, asked)]
    found += [*layers(run, made, asked), grid(run, made, asked)]
    return (*found, *(shifted(run, traces, made, asked) if made.predictions.any() else ()))


def facts(run: Run, made: Moved) -> Facts:
    """Where the passes part."""
    n = len(run.ids)
    pairs = (
        (Column("first value that differs"), made.first or "none"),
        (Column("at how many tokens"), f"{int(made.where.sum())} of {n}"),
        (Column("predictions that differ"), f"{int(made.predictions.sum())} of {n}"),
    )
    return Facts("", pairs)


def verdict(run: Run, made: Moved, asked: Asked) -> list[Part]:
    """That nothing changes at all, or nothing here; nothing where something does."""
    if made.first is None:
        return [Note("The edits change no number of this pass: before and after are the same.")]
    if not made.predictions.any():
        return [Note(f"The edits change {made.first}, and no logit.")]
    if not made.predictions[asked.position]:
        first = int(made.predictions.argmax())
        where = place(run, asked.position)
        words = f"What follows token {where} is not changed; --at {first} is the first that is."
        return [Note(words)]
    return []


def apart(run: Run, traces: Traces, made: Moved, asked: Asked) -> Table:
    """How far apart the two predictions are, in either direction."""
    from math import log

    from gptscope.analysis.before_after import divergences

    there = float(made.kl[asked.position])
    back = float(divergences(*traces[::-1], [asked.position])[0])
    rows = [
        (name, bits, bits * log(2))
        for name, bits in (("KL(before || after)", there), ("KL(after || before)", back))
    ]
    title = f"How far apart the predictions after token {place(run, asked.position)} are"
    return Table(title, APART, rows)


def predictions(run: Run, traces: Traces, asked: Asked) -> list[Part]:
    """The likeliest next tokens of either pass, and the answers that were asked for."""
    logits = tuple(trace["logits"][asked.position] for trace in traces)
    wrong = [when for when, x in zip(("before", "after"), logits, strict=True) if not drawable(x)]
    if wrong:
        words = "the edits" if wrong == ["after"] else "this model"
        return [Note(f"With {words} the logits are not numbers, so no token is likeliest.")]
    where = f"after token {place(run, asked.position)}"
    title = f"The next token {where}, the {asked.top} likeliest of either pass"
    found: list[Part] = [Table(title, NEXT, rated(run, logits, likeliest(logits, asked.top)))]
    if asked.answers:
        rows = rated(run, logits, asked.answers)
        found.append(Table(f"What was asked for, {where}", NEXT, rows))
    if len(asked.answers) == 2:
        found.append(difference(run, logits, asked.answers))
    return found


def likeliest(logits: Sequence[Any], top: int) -> list[int]:
    """The likeliest ids of either, by the larger of their probabilities."""
    from gptscope.engine.sampling import probabilities, ranked

    p = [probabilities(x) for x in logits]
    best = {int(i) for x in logits for i in ranked(x, top)}
    return sorted(best, key=lambda i: (-max(x[i] for x in p), i))


def rated(run: Run, logits: Sequence[Any], ids: Iterable[int]) -> list[tuple[Any, ...]]:
    """Rank, probability and logit of each id, before and after."""
    from gptscope.engine.sampling import probabilities, rank

    (x, y), (p, q) = logits, [probabilities(one) for one in logits]
    return [
        (
            *(token_text(run.model, i), i, rank(x, i), rank(y, i)),
            *(p[i], q[i], q[i] - p[i], x[i], y[i]),
        )
        for i in ids
    ]


def difference(run: Run, logits: Sequence[Any], answers: Sequence[int]) -> Facts:
    """The logit of the answer less that of the other: the logarithm of how much likelier it is."""
    one, other = answers
    before, after = (float(x[one]) - float(x[other]) for x in logits)
    names = " - ".join(token_glyphs(token_text(run.model, i)) for i in answers)
    pairs = (
        (Column("before", "signed"), before),
        (Column("after", "signed"), after),
        (Column("change", "signed"), after - before),
    )
    return Facts(f"Logits {names}", pairs)
