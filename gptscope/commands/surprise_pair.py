"""What `surprise --against` shows: two models on the same text, and where they differ most."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gptscope.commands.notices import as_trained
from gptscope.commands.progress import progress
from gptscope.commands.session import Run, encoded, opened, token_text
from gptscope.commands.surprise_view import LONGEST_PASSAGE, about, before, bytes_counted
from gptscope.errors import UsageError
from gptscope.glyphs import token_glyphs, visible
from gptscope.model.files import counted
from gptscope.view import Column, Note, Part, Passage, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gptscope.analysis.surprise_pair import Pair
    from gptscope.commands.options import Source
    from gptscope.commands.surprise import Read, Shown

SUMS = (
    Column("model"),
    Column("tokens", "count"),
    Column("bits", "length"),
    Column("bits per byte", "length"),
    Column("bits per token", "length"),
    Column("nats per token", "length"),
    Column("perplexity", "length"),
)
PIECES = (
    Column("position", "id"),
    Column("just before", "token"),
    Column("text", "token"),
    Column("first", "length"),
    Column("second", "length"),
    Column("second minus first", "signed"),
    Column("first's best guess", "token"),
    Column("second's", "token"),
)


@dataclass(frozen=True, eq=False)
class Two:
    """Two models on the same text."""

    sides: tuple[Read, Read]
    pair: Pair
    alike: bool  # whether both have the same tokens

    @property
    def by_token(self) -> bool:
        """Whether each piece is a token: the two have the same, or are fed the same ids."""
        return self.alike or self.sides[0].run.text is None

    def at(self, i: int, side: int = 0) -> int:
        """The position of the first token of a piece."""
        return int(self.pair.starts[side][i]) + self.sides[side].run.prepended

    def text(self, labels: Sequence[str], i: int) -> str:
        """What stands in a piece, of the first model's tokens."""
        n = int(self.pair.stops[0][i] - self.pair.starts[0][i])
        return "".join(labels[self.at(i) : self.at(i) + n])

    def guess(self, i: int, side: int) -> str:
        """What a model expected most in the place of a piece's first token."""
        import numpy as np

        read = self.sides[side]
        rated = int(np.searchsorted(read.made.at, self.at(i, side)))
        return token_text(read.run.model, int(read.made.best[rated]))


def second_run(run: Run, source: Source, name: str) -> Run:
    """The second model and its tokens of the same text; without a text, the same ids.

    Raises:
        UsageError: it cannot read them.
    """
    from gptscope.engine.ids import in_vocabulary

    model = opened(name, source.dtype, verbose=source.verbose)
    if run.text is None:
        ids = tuple(in_vocabulary(model.spec, run.ids).tolist())
        return Run(model, ids, None, run.prepended, verbose=source.verbose)
    made = encoded(model, as_trained(run.text, model, name), bos=source.bos)
    if made.text != run.text:
        raise UsageError(
            f"{model.name} was trained on other characters, so it would not read the same text",
            hint=f"give the other one first: --model {name} --against {run.model.name}",
        )
    return replace(made, verbose=source.verbose)


def pair_parts(first: Read, second: Read, shown: Shown) -> tuple[Part, ...]:
    """The text by how much more surprised the second is, where they differ most, the sums."""
    import numpy as np

    two, labels = pairing(first, second), first.run.labels
    at = two.pair.starts[0] + first.run.prepended
    there = np.arange(len(at))
    if shown.part is not None:
        there = there[(at >= shown.part[0]) & (at <= shown.part[-1])]
    few = there if shown.top is None else there[:LONGEST_PASSAGE]
    text = Passage(
        "Bits that the second model needs more than the first",
        tuple(two.text(labels, i) for i in few.tolist()),
        two.pair.more[few].tolist(),
        "signed",
    )
    order, title = there, "Every token, in order" if two.by_token else "Every piece, in order"
    if shown.top is not None:
        far = np.argsort(-np.abs(two.pair.more[there]), kind="stable")[: shown.top]
        order, title = there[far], "Where the two differ most, in bits"
    table = Table(title, PIECES, [row(two, labels, i) for i in order.tolist()])
    said = notes(two, (len(there), len(few), len(order)))
    some = (text, table) if len(there) else ()
    return (*some, sums(two), *(Note(one) for one in said))


def pairing(first: Read, second: Read) -> Two:
    """The pieces of the text that both have in common: tokens, where all are the same."""
    import numpy as np

    from gptscope.analysis.surprise_pair import paired
    from gptscope.tokens import ends as ends_of

    runs = first.run, second.run
    own = [run.ids[run.prepended : len(run.ids) - run.appended] for run in runs]
    text, readers = runs[0].text, [run.model.tokenizer for run in runs]
    alike = own[0] == own[1] and same_words(runs)
    if alike or text is None or readers[0] is None or readers[1] is None:
        ends = [np.arange(1, len(ids) + 1) for ids in own]
    else:
        with progress(sum(map(len, own)), "tokens in the text") as tick:
            ends = [
                np.array(ends_of(reader, ids, text, tick), np.int64)
                for reader, ids in zip(readers, own, strict=True)
                if reader is not None
            ]
    made, prefix = (first.made, second.made), (runs[0].prepended, runs[1].prepended)
    return Two((first, second), paired((ends[0], ends[1]), made, prefix), alike)


def same_words(runs: tuple[Run, Run]) -> bool:
    """Whether the same ids are the same texts in both."""
    words = ({token_text(run.model, i) for i in set(runs[0].ids)} for run in runs)
    return next(words) == next(words)


def row(two: Two, labels: Sequence[str], i: int) -> tuple[Any, ...]:
    """A row of `PIECES`."""
    a, b = (float(bits[i]) for bits in two.pair.bits)
    guesses = two.guess(i, 0), two.guess(i, 1)
    at = two.at(i)
    return at, before(labels, at), two.text(labels, i), a, b, b - a, *guesses


def sums(two: Two) -> Table:
    """Both models on what both have numbers for."""
    import numpy as np

    from gptscope.analysis.surprise import BIT

    n_bytes = bytes_of_pair(two)
    rows = []
    for side, (read, which) in enumerate(zip(two.sides, ("first", "second"), strict=True)):
        n, bits = two.pair.n_tokens(side), two.pair.total(side)
        each = bits / n if n else None
        means = (None,) * 3 if each is None else (each, each * BIT, float(np.exp2(each)))
        by_byte = bits / n_bytes if n_bytes else None
        rows.append((f"{which}: {visible(read.run.model.name)}", n, bits, by_byte, *means))
    return Table("On the same text", SUMS, rows)


def bytes_of_pair(two: Two) -> int | None:
    """The bytes of all pieces, where there is a text."""
    if not two.alike:
        return two.pair.size if two.sides[0].run.text is not None else None
    return min((bytes_counted(read) or 0 for read in two.sides), default=0) or None


def of_each(one: list[str], other: list[str]) -> Iterator[str]:
    """What is true of both, then what is of one alone."""
    yield from (words for words in one if words in other)
    yield from (f"The first model: {words}" for words in one if words not in other)
    yield from (f"The second model: {words}" for words in other if words not in one)


def begun(run: Run) -> list[str]:
    """What stands before the text, and after it."""
    if run.prepended:
        begin = token_glyphs("".join(run.labels[: run.prepended]))
        said = [f"{begin} stands before the text and has no number."]
    else:
        hint = "" if run.model.bos_id is None else "; with --bos, the BOS token does"
        said = [f"Nothing stands before the text, so that its first token has no number{hint}."]
    if run.appended:
        said.append(f"What the tokenizer puts after the text ({run.appended}) is not compared.")
    return said


def what_counts(two: Two) -> str:
    """Which of the text's tokens are in the sums, of both."""
    runs = [read.run for read in two.sides]
    have = [len(run.ids) - run.prepended - run.appended for run in runs]
    n = [two.pair.n_tokens(side) for side in (0, 1)]
    if n == have:
        return "The sums are of all tokens of the text, in both."
    what = "tokens" if two.by_token else "pieces"
    if n[0] == n[1] and have[0] == have[1]:
        each = f"{n[0]:,} of {counted(have[0], 'token')}"
    else:
        each = " and ".join(
            f"{k:,} of the {which}'s {counted(m, 'token')}"
            for k, m, which in zip(n, have, ("first", "second"), strict=True)
        )
    return f"The sums of both are of the {what} that both have numbers for: {each}."


def notes(two: Two, shown: tuple[int, int, int]) -> list[str]:
    """What was compared, how each model read the text, and what is left out."""
    pair, (n, in_text, in_table) = two.pair, shown
    what = "tokens" if two.by_token else "pieces"
    said = ["Both models have the same tokens."]
    if not two.alike and two.by_token:
        said = ["Both are fed the same ids, which are not the same tokens to both."]
    elif not two.alike:
        cut = f"{counted(len(pair), 'piece')} at whose ends both cut"
        single = f"{pair.single:,} of them one token in both"
        unit = "bits per byte are comparable, those per token are not"
        said = [
            f"The two cut the text into different tokens. Compared are {cut}, {single}; {unit}."
        ]
    if two.sides[0].run.edits:
        said.append("The edits change the first model alone.")
    said += of_each(*(begun(read.run) for read in two.sides))
    said.append(what_counts(two))
    said += of_each(*(about(read) for read in two.sides))
    if in_text < n:
        said.append(f"{n - in_text:,} {what} are left out of the text: --all shows all of it.")
    if in_table < n:
        said.append(f"{n - in_table:,} more in the table with --top {n}; in order with --all.")
    return said
