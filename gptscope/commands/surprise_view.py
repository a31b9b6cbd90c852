"""What `surprise` shows of one model: the text in colours, the tokens in a table, the sums."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gptscope.commands.session import Run, token_text
from gptscope.glyphs import token_glyphs
from gptscope.model.files import counted
from gptscope.view import Column, Facts, Note, Part, Passage, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.commands.surprise import Read, Shown

LONGEST_PASSAGE = 600  # tokens
COLUMNS = (
    Column("position", "id"),
    Column("token", "token"),
    Column("probability", "probability"),
    Column("bits", "length"),
    Column("rank", "id"),
    Column("best guess", "token"),
    Column("its probability", "probability"),
    Column("entropy", "length"),
)
WORST = (COLUMNS[0], Column("just before", "token"), COLUMNS[1], *COLUMNS[3:7])
CONTEXT = 3  # tokens before one of the worst, so that one sees why
MEANING = (
    "Bits: -log2 of the token's probability. Entropy: the bits that the model expected to need, "
    "before it saw the token."
)
IN_COLOURS = "Where the text is in colours, --no-color puts each number under its token."


def parts(read: Read, shown: Shown, *, for_people: bool = True) -> tuple[Part, ...]:
    """The text, the tokens, the sums, and what is to be said of them."""
    tokens, left = passage_of(read.run, shown)
    values = dict(zip(read.made.at.tolist(), read.made.bits.tolist(), strict=True))
    labels = read.run.labels
    text = Passage(
        f"Surprise of {'each token' if left is None else f'tokens {spoken(tokens)}'}, in bits",
        tuple(labels[i] for i in tokens),
        [values.get(i) for i in tokens],
        name="text",
    )
    table, more = listed(read, shown, labels)
    if for_people and shown.top is None:
        table = [narrower(one) for one in table]
    said = (MEANING, beginning(read.run), *about(read), ending(read.run), left, more)
    return (text, *table, facts(read), *(Note(one) for one in said if one))


def passage_of(run: Run, shown: Shown) -> tuple[range, str | None]:
    """The tokens that are shown as a text, and what is said of the others."""
    n = len(run.ids)
    if shown.part is not None:
        left = f"Only tokens {spoken(shown.part)} are shown; the sums are those of all {n:,}."
        return shown.part, left if len(shown.part) < n else None
    if shown.top is None or n <= LONGEST_PASSAGE:
        return range(n), None
    left = f"The text is shown up to token {LONGEST_PASSAGE - 1} of {n - 1:,}; the sums are of all"
    return range(LONGEST_PASSAGE), f"{left}. --range 600:900 shows another part, --all all of it."


def spoken(tokens: Sequence[int]) -> str:
    """`0 to 599`."""
    ends = f"{tokens[0]:,}", f"{tokens[-1]:,}"
    return ends[0] if len(tokens) == 1 else " to ".join(ends)


def listed(read: Read, shown: Shown, labels: Sequence[str]) -> tuple[list[Table], str | None]:
    """The worst tokens, or every one in order; and what is left out."""
    import numpy as np

    made, part = read.made, shown.part
    there = np.arange(len(made))
    if part is not None:
        there = there[(made.at >= part[0]) & (made.at <= part[-1])]
    if not len(there):
        return [], None
    if shown.top is None:
        every = rows(read, there, labels)
        return [Table("Every token, in order", COLUMNS, every, name="tokens")], None
    worst = there[np.argsort(-made.nats[there], kind="stable")[: shown.top]]  # NaN comes last
    found = [(row[0], before(labels, row[0]), *row[1:]) for row in rows(read, worst, labels)]
    found = [row[:3] + row[4:8] for row in found]
    title = f"The {counted(len(worst), 'token')} that surprised it most"
    left = len(there) - len(worst)
    more = f"{left:,} more in the table with --top {len(there)}; in order with --all. {IN_COLOURS}"
    return [Table(title, WORST, found, name="worst")], more if left else None


def narrower(table: Table) -> Table:
    """Every token on a page: without the probability of the best guess."""
    columns = (*table.columns[:6], table.columns[7])
    return replace(table, columns=columns, rows=[(*row[:6], row[7]) for row in table.rows])


def rows(read: Read, which: Any, labels: Sequence[str]) -> list[tuple[Any, ...]]:  # noqa: ANN401
    """A row of `COLUMNS` for each of these rated tokens."""
    import numpy as np

    from gptscope.analysis.surprise import BIT

    made, found = read.made, []
    for i in which.tolist():
        at, rank, guess = int(made.at[i]), int(made.rank[i]) or None, best_guess(read, i)
        shares = (float(np.exp(-nats[i])) for nats in (made.nats, made.best_nats))
        p, top = shares if rank else (None, None)
        bits, entropy = float(made.nats[i] / BIT), float(made.entropy[i] / BIT)
        found.append((at, labels[at], p, bits, rank, guess, top, entropy))
    return found


def best_guess(read: Read, i: int) -> str | None:
    """What was likeliest in the place of a rated token; None where logits are not numbers."""
    best = int(read.made.best[i])
    return token_text(read.run.model, best) if best >= 0 else None


def before(labels: Sequence[str], at: int) -> str:
    """The text of the few tokens before a position."""
    return "".join(labels[max(0, at - CONTEXT) : at])


def facts(read: Read) -> Facts:
    """The sums, and the means."""
    from gptscope.analysis.surprise import BIT

    made, n = read.made, len(read.made)
    pairs: list[tuple[Column, Any]] = [(Column("tokens counted", "count"), n)]
    if n:
        n_bytes = bytes_counted(read)
        pairs += [
            (Column("bits of all together", "length"), made.total),
            (Column("bits per token", "length"), made.mean / BIT),
            (Column("nats per token", "length"), made.mean),
            (Column("perplexity", "length"), made.perplexity),
            (Column("entropy per token, in bits", "length"), expected(read)),
        ]
        if n_bytes:
            pairs += [
                (Column("bytes of these tokens", "count"), n_bytes),
                (Column("bits per byte", "length"), made.total / n_bytes),
            ]
    return Facts("", tuple(pairs), name="sums")


def expected(read: Read) -> float:
    """The mean entropy of the predictions, in bits."""
    from gptscope.analysis.surprise import BIT

    return math.fsum(read.made.entropy) / len(read.made) / BIT


def bytes_counted(read: Read) -> int | None:
    """The bytes of the text without those of a first token that is not counted."""
    run = read.run
    if run.model.tokenizer is None:
        return None
    own = run.ids[run.prepended : len(run.ids) - run.appended]
    data = run.model.tokenizer.joined(own) if run.text is None else run.text.encode()
    first = 0 if run.prepended else len(run.model.tokenizer.joined(own[:1]))
    return max(0, len(data) - first)


def about(read: Read) -> list[str]:
    """How the numbers came about: the mask, what the length changes, the windows."""
    from gptscope.analysis.surprise import n_fed, turned_by_length

    said, model = not_numbers(read), read.run.model
    longest = max((n_fed(window, read.run.prepended) for window in read.plan), default=1)
    if not model.spec.causal:
        said.append(unmasked(read))
    if turned_by_length(model, longest):
        said.append(
            "This model's rotary speeds depend on how many tokens are read at once, and "
            f"{longest:,} are enough to change them: the numbers of early tokens depend on how "
            "much comes later."
        )
    if len(read.plan) > 1:
        said.append(in_windows(read))
    return said


def not_numbers(read: Read) -> list[str]:
    """What is missing where logits are not numbers."""
    n = read.made.n_wrong
    if not n:
        return []
    some = "every token" if n == len(read.made) else f"{n:,} of {counted(len(read.made), 'token')}"
    return [
        (
            f"The logits before {some} are not numbers (NaN): there is no rank, no probability and "
            "no best guess, and the sums are no numbers."
        )
    ]


def unmasked(read: Read) -> str:
    """What a model without a mask sees."""
    said = (
        "This model has no causal mask: it sees the token that it is asked for and those after it, "
        "as far as they are fed, so these numbers are no predictions."
    )
    if any(window.end > window.stop for window in read.plan):
        said += " Only a token just after a window is not fed, and is predicted unseen."
    return said


def ending(run: Run) -> str | None:
    """Whether what stands after the text has a number."""
    if not run.appended:
        return None
    return f"What the tokenizer puts after the text ({run.appended}) is counted as well."


def beginning(run: Run) -> str:
    """Whether the first token of the text has a number."""
    if run.prepended:
        begin = token_glyphs("".join(run.labels[: run.prepended]))
        return f"{begin} stands before the text and has no number; the text's first token has one."
    name = token_glyphs(run.labels[0])
    hint = "" if run.model.bos_id is None else "; with --bos, the BOS token stands before it"
    return f"The first token {name} has nothing before it, so that it is not counted{hint}."


def in_windows(read: Read) -> str:
    """How a long text went through."""
    begins = ", each begun as the text is" if read.run.prepended else ""
    said = (
        f"The text went through in {len(read.plan):,} windows of {read.size:,} tokens that "
        f"overlap by {read.overlap:,}{begins}; each rates the token just after it as well. So "
        f"every token is rated once, after at least {counted(read.overlap + 1, 'token')} of the "
        "text, or all that come before it"
    )
    if read.overlap + 1 < read.size - read.run.prepended:
        said += "; a larger --overlap reads more"
    if read.run.edits:
        said += ". The edits are made in each window, whose positions count from 0"
    return f"{said}."
