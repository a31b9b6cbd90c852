"""What `surprise --against` shows: two models on the same text, and where they differ most."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gptscope.commands.notices import as_trained
from gptscope.commands.progress import progress
from gptscope.commands.session import Run, about_model, encoded, opened, token_text
from gptscope.commands.surprise_view import LONGEST_PASSAGE, before, best_guess, bytes_counted
from gptscope.errors import UsageError
from gptscope.glyphs import visible
from gptscope.view import Column, Facts, Note, Part, Passage, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@dataclass(frozen=True, eq=False)
class Two:
    """Two models on the same text."""

    sides: tuple[Read, Read]
    pair: Pair
    alike: bool  # whether both have the same tokens

    @cached_property
    def names(self) -> tuple[str, str]:
        """The names of the models, told apart where both have one name."""
        first, second = (visible(read.run.model.name) for read in self.sides)
        if first != second:
            return first, second
        if self.sides[0].run.edits:
            return f"{first} (edited)", second
        return f"{first} (first)", f"{second} (second)"

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

    def guess(self, i: int, side: int) -> str | None:
        """What a model expected most in the place of a piece's first token."""
        import numpy as np

        read = self.sides[side]
        return best_guess(read, int(np.searchsorted(read.made.at, self.at(i, side))))

    @property
    def columns(self) -> tuple[Column, ...]:
        """What is told of each piece, with the names of the models."""
        first, second = self.names
        return (
            Column("position", "id"),
            Column("just before", "token"),
            Column("token" if self.by_token else "text", "token"),
            *(Column(f"{name}, bits", "length") for name in (first, second)),
            Column("bits more", "signed"),
            *(Column(f"{name}, guess", "token") for name in (first, second)),
        )


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


def pair_parts(
    first: Read, second: Read, shown: Shown, *, for_people: bool = True
) -> tuple[Part, ...]:
    """The sums, the text by how much more surprised the second is, where they differ most.

    Programs are told what the second model is as well.
    """
    import numpy as np

    from gptscope.commands.surprise_pair_words import notes

    two, labels = pairing(first, second), first.run.labels
    at = two.pair.starts[0] + first.run.prepended
    there = np.arange(len(at))
    if shown.part is not None:
        there = there[(at >= shown.part[0]) & (at <= shown.part[-1])]
    few = there if shown.top is None else there[:LONGEST_PASSAGE]
    text = Passage(
        "Bits that {1} needs more than {0}".format(*two.names),
        tuple(two.text(labels, i) for i in few.tolist()),
        two.pair.more[few].tolist(),
        "signed",
        name="text",
    )
    table = differences(two, labels, there, shown.top)
    said = notes(two, (len(there), len(few), len(table.rows)))
    told = (sums(two),) if for_people else (sums(two), second_model(second))
    some = (text, narrower(table, shown) if for_people else table) if len(there) else ()
    return (*told, *some, *(Note(one) for one in said))


def differences(two: Two, labels: Sequence[str], there: Any, top: int | None) -> Table:  # noqa: ANN401
    """All of these pieces in order, or those where the two differ most."""
    import numpy as np

    order, title = there, f"Every {'token' if two.by_token else 'piece'}, in order"
    if top is not None:
        order = there[np.argsort(-np.abs(two.pair.more[there]), kind="stable")[:top]]
        title = "Where the two differ most"
    meaning = f"bits, and how many more {two.names[1]} needs"
    every = [row(two, labels, i) for i in order.tolist()]
    return Table(f"{title}: {meaning}", two.columns, every, name="differences")


def narrower(table: Table, shown: Shown) -> Table:
    """The same for a page: in order without what stands just before, else without the guesses."""
    left = [0, *range(2, 8)] if shown.top is None else range(6)
    columns = tuple(table.columns[i] for i in left)
    return replace(table, columns=columns, rows=[[row[i] for i in left] for row in table.rows])


def second_model(read: Read) -> Facts:
    """The name and sizes of the second model, as every view tells those of the first."""
    about = about_model(read.run.model)
    pairs = ((Column(k, "count" if isinstance(v, int) else "text"), v) for k, v in about.items())
    return Facts("The second model", tuple(pairs), name="second_model")


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
    """A row of `Two.columns`."""
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
    for side, name in enumerate(two.names):
        n, bits = two.pair.n_tokens(side), two.pair.total(side)
        each = bits / n if n else None
        means = (None,) * 3 if each is None else (each, each * BIT, float(np.exp2(each)))
        by_byte = bits / n_bytes if n_bytes else None
        rows.append((name, n, bits, by_byte, *means))
    return Table("Both models on the same text", SUMS, rows, name="sums")


def bytes_of_pair(two: Two) -> int | None:
    """The bytes of all pieces, where there is a text."""
    if not two.alike:
        return two.pair.size if two.sides[0].run.text is not None else None
    return min((bytes_counted(read) or 0 for read in two.sides), default=0) or None
