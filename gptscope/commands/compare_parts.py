"""What `compare` shows: the next token before and after, and where the two passes part."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gptscope.commands.answers import POSITION, asked_table, drawable, rated_token
from gptscope.commands.compare_layers import Asked, grid, layers, shifted
from gptscope.commands.session import Run, token_text
from gptscope.glyphs import token_glyphs
from gptscope.model.files import counted
from gptscope.view import Column, Facts, Note, Part, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gptscope.analysis.compare import Moved
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
NEITHER = "not numbers in either pass"
APART = (Column("divergence"), Column("bits", "length"), Column("nats", "length"))


def parts(run: Run, traces: Traces, asked: Asked) -> tuple[Part, ...]:
    """All parts of the answer; of an edit that changes nothing, a sentence says so."""
    from gptscope.analysis.compare import moved

    made = moved(*traces)
    found: list[Part] = [
        *question(run, traces[0], asked),
        facts(run, made),
        *verdict(run, made, asked),
    ]
    found += [apart(run, traces, made, asked), *predictions(run, traces, asked)]
    found += [*layers(run, made, asked), *grid(run, made, asked)]
    return (*found, *(shifted(run, traces, made, asked) if made.predictions.any() else ()))


def question(run: Run, before: Trace, asked: Asked) -> list[Part]:
    """What is asked about, or the likeliest, rated before the edits; for programs alone."""
    if not asked.every:
        return []
    named = [*zip(("answer", "against"), asked.answers, strict=False)]
    logits = before.logits[asked.position]
    if not named and drawable(logits):
        named = [("likeliest", int(logits.argmax()))]
    rows = [(asked.position, *rated_token(run.model, one, logits)) for one in named]
    return [asked_table(f"After {run.place(asked.position)}", rows, POSITION)]


def facts(run: Run, made: Moved) -> Facts:
    """Where the passes part."""
    n, unknown = len(run.ids), int(made.unknown.sum())
    pairs = [
        (Column("first value that differs"), made.first or "none"),
        (Column("at how many tokens"), f"{int(made.where.sum())} of {n}"),
        (Column("predictions that differ"), f"{int(made.predictions.sum())} of {n}"),
    ]
    if unknown:
        pairs.append((Column(f"predictions that are {NEITHER}"), f"{unknown} of {n}"))
    return Facts("", tuple(pairs), name="where")


def verdict(run: Run, made: Moved, asked: Asked) -> list[Part]:
    """That nothing changes at all, or nothing here; nothing where something does."""
    n_unknown = int(made.unknown.sum())
    changed = f"change {made.first}" if made.first else "change no number that can be compared"
    if n_unknown and not made.predictions.any():
        logits = f"the logits after {n_unknown} of {counted(len(run.ids), 'token')} are {NEITHER}"
        return [Note(f"The edits {changed}; {logits}, so that no change can be seen there.")]
    if made.first is None:
        return [Note("The edits change no number of this pass: before and after are the same.")]
    if not made.predictions.any():
        return [Note(f"The edits change {made.first}, and no logit.")]
    if not made.predictions[asked.position] and not made.unknown[asked.position]:
        first = int(made.predictions.argmax())
        where = run.place(asked.position)
        words = f"What follows {where} is not changed; --at {first} is the first that is."
        return [Note(words)]
    return []


def apart(run: Run, traces: Traces, made: Moved, asked: Asked) -> Table:
    """How far apart the two predictions are, in either direction."""
    from math import log

    from gptscope.analysis.compare import divergences

    there = float(made.kl[asked.position])
    back = float(divergences(*traces[::-1], [asked.position])[0])
    rows = [
        (name, bits, bits * log(2))
        for name, bits in (("KL(before || after)", there), ("KL(after || before)", back))
    ]
    title = f"How far apart the predictions after {run.place(asked.position)} are"
    return Table(title, APART, rows, name="divergence")


def predictions(run: Run, traces: Traces, asked: Asked) -> list[Part]:
    """The likeliest next tokens of either pass, and the answers that were asked for."""
    logits = tuple(trace["logits"][asked.position] for trace in traces)
    wrong = [when for when, x in zip(("before", "after"), logits, strict=True) if not drawable(x)]
    where = f"after {run.place(asked.position)}"
    if len(wrong) == 2:
        return [Note(f"The logits {where} are {NEITHER}, so no token is likeliest.")]
    if wrong:
        words = "With" if wrong == ["after"] else "Without"
        return [Note(f"{words} the edits the logits are not numbers, so no token is likeliest.")]
    title = f"The next token {where}, the {asked.top} likeliest of either pass"
    rows = rated(run, logits, likeliest(logits, asked.top))
    likely = Table(title, NEXT, rows, name="next")
    found: list[Part] = [likely if asked.every else narrower(likely)]
    if asked.answers:
        rows = rated(run, logits, asked.answers)
        wanted = Table(f"What was asked for, {where}", NEXT, rows, name="answers")
        found += [wanted] if asked.every else [narrower(wanted), logits_of(wanted)]
    if len(asked.answers) == 2:
        found.append(difference(run, logits, asked.answers))
    return found


def narrower(table: Table) -> Table:
    """The same for a page: without ids and logits; the bars of probabilities show the change."""
    left = [0, *range(2, 6)]
    columns = (*(table.columns[i] for i in left), Column("change", "signed"))
    rows = [[*(row[i] for i in left), row[6]] for row in table.rows]
    return replace(table, columns=columns, rows=rows)


def logits_of(table: Table) -> Table:
    """The ids and logits of the same, on a page."""
    columns = (*table.columns[:2], *table.columns[7:], Column("change", "signed"))
    rows = [(*row[:2], x, y, float(y) - float(x)) for row in table.rows for x, y in [row[7:]]]
    return Table("Its logit" if len(rows) == 1 else "Their logits", columns, rows, name="logits")


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
    names = " less that of ".join(token_glyphs(token_text(run.model, i)) for i in answers)
    pairs = (
        (Column("before", "signed"), before),
        (Column("after", "signed"), after),
        (Column("change", "signed"), after - before),
    )
    return Facts(f"answer - against: logit of {names}", pairs, name="difference")
