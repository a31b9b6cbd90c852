"""What must be said beside two models on the same text: how each read it, and what is left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.commands.surprise_view import IN_COLOURS, about
from gptscope.glyphs import token_glyphs
from gptscope.model.files import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gptscope.commands.surprise import Read
    from gptscope.commands.surprise_pair import Two


def of_each(two: Two, told: Callable[[Read], list[str]]) -> Iterator[str]:
    """What is true of both, then what is of one alone."""
    one, other = (told(read) for read in two.sides)
    yield from (words for words in one if words in other)
    yield from (f"{two.names[0]}: {words}" for words in one if words not in other)
    yield from (f"{two.names[1]}: {words}" for words in other if words not in one)


def begun(read: Read) -> list[str]:
    """What stands before the text, and after it."""
    run = read.run
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
            f"{k:,} of {counted(m, 'token')} of {name}"
            for k, m, name in zip(n, have, two.names, strict=True)
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
        said.append(f"The edits change {two.names[0]} alone.")
    said += of_each(two, begun)
    said.append(what_counts(two))
    said += of_each(two, about)
    if in_text < n:
        said.append(f"{n - in_text:,} {what} are left out of the text: --all shows all of it.")
    if in_table < n:
        said.append(f"{n - in_table:,} more in the table with --top {n}; in order with --all.")
        said.append(IN_COLOURS)
    return said
