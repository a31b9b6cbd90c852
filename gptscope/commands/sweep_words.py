"""The tokens that a sweep asks about, and what its numbers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.analysis.sweep_choices import KINDS, REPLACEMENTS
from gptscope.commands.answers import APART, POSITION, asked_table, rated_token
from gptscope.commands.session import token_text
from gptscope.commands.sweep_asked import Asked, Direction
from gptscope.model.files import counted
from gptscope.view import Column, Facts, Note, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.view import Part

SCORES = (
    "0 is as the corrupt run, 1 as the clean one: (number - corrupt) / (clean - corrupt). What "
    "overshoots is above 1 or below 0."
)
MEANINGS = {
    Direction.denoise: "Near 1: this value alone is enough to restore the answer.",
    Direction.noise: "Near 0: without the clean value here, the answer is lost; near 1: it is not "
    "needed, or something else stands in for it.",
}
ALIKE = (
    "Both runs find the same token likeliest, and its logit alone says little of what differs: "
    "name two tokens between which the texts decide, with --answer and --against."
)
LATER = "Unlike in attribute, everything after the change is computed anew."


def question(asked: Asked, *, data: bool = False) -> list[Part]:
    """The tokens that are asked about, in each run.

    For programs with the position as well, which people read in the title.
    """
    rows: list[tuple[Any, ...]] = []
    for run, logits in zip(("clean", "corrupt"), asked.logits, strict=False):
        named = zip(asked.roles, asked.wanted, strict=False)
        rows += [(run, *rated_token(asked.model, one, logits)) for one in named]
    if asked.apart and asked.corrupt is None and asked.metric == "logit":
        rows.append(("clean", APART, None, None, *asked.ends, None, None))
    before = [Column("run")]
    if asked.corrupt is None:
        before, rows = [], [row[1:] for row in rows]
    if data:
        before, rows = [POSITION, *before], [(asked.position, *row) for row in rows]
    table = asked_table(asked.where[0].upper() + asked.where[1:], rows, *before)
    return [table] if asked.corrupt is None else [table, between(asked), differences(asked)]


def between(asked: Asked) -> Facts:
    """The numbers of both runs, between which the others are set."""
    clean, corrupt = asked.ends
    numbers = {"clean": clean, "corrupt": corrupt, "clean - corrupt": clean - corrupt}
    pairs = tuple((Column(name, "signed"), value) for name, value in numbers.items())
    return Facts(asked.what[0].upper() + asked.what[1:], pairs, name="runs")


def differences(asked: Asked) -> Table:
    """The tokens in which the two texts differ."""
    other = asked.run if asked.corrupt is None else asked.corrupt
    pairs = enumerate(zip(asked.run.ids, other.ids, strict=True))
    rows = [
        (i, token_text(asked.model, one), token_text(asked.model, two))
        for i, (one, two) in pairs
        if one != two
    ]
    columns = (Column("position", "id"), Column("clean", "token"), Column("corrupt", "token"))
    n = len(asked.run.ids)
    return Table(f"The texts differ in {len(rows)} of {n} tokens", columns, rows, name="texts")


def of_removal(asked: Asked, replacement: str) -> list[str]:
    """What a change is, when a value is taken away."""
    meaning = REPLACEMENTS[replacement].meaning.format(n=len(asked.run.ids))
    return of_one_token(asked, replacement) or [meaning, LATER]


def of_one_token(asked: Asked, replacement: str) -> list[str]:
    """Why nothing changes where there is one token."""
    alone = REPLACEMENTS[replacement].alone
    return [alone] if alone and len(asked.run.ids) == 1 else []


def of_patches(asked: Asked, directions: Sequence[Direction]) -> list[str]:
    """What a score is."""
    said = [SCORES, *(MEANINGS[one] for one in directions)]
    alike = len(asked.logits) > 1 and len(asked.wanted) == 1 and asked.roles[0] != "answer"
    return said + [ALIKE] * (alike and not asked.is_distance)


def of_tokens(asked: Asked) -> list[str]:
    """Which tokens are left out, and why."""
    tokens, n = asked.tokens, len(asked.run.ids)
    said = []
    if tokens[0] > 0:
        before = "token 0 is" if tokens[0] == 1 else f"tokens 0 to {tokens[0] - 1} are"
        said.append(f"{before} the same in both runs and see nothing that differs")
    if tokens[-1] < n - 1:
        said.append(f"tokens after {tokens[-1]} are not seen from there")
    return [f"Left out, as their effect is 0: {'; '.join(said)}."] if said else []


def of_rows(what: str) -> list[str]:
    """What the rows are, where that must be said."""
    return [KINDS[what].rows] if KINDS[what].rows else []


def of_paths(asked: Asked, gives: str, *, freeze_mlp: bool, to_logits: bool) -> list[str]:
    """What is changed, what is frozen, and what is read."""
    mlps = ", and so does each feed-forward layer" if freeze_mlp else ""
    anew = "norms" if freeze_mlp else "feed-forward layers and norms"
    first = (
        f"In a first pass the sender gives {gives}. Each attention head after it gives exactly "
        f"what it gave before (frozen){mlps}; {anew} are computed anew."
    )
    if to_logits:
        return [f"{first} The logits of this pass are the answer: there is no second one."]
    second = (
        "What the receiver makes there of its input (queries, keys, values; hidden units) is put "
        "into a second pass, in which nothing else is changed and all after it is computed anew."
    )
    return [f"{first} {second}", *shared(asked)]


def given_instead(asked: Asked, replacement: str, directions: Sequence[Direction]) -> str:
    """What a sender gives, in words."""
    if asked.corrupt is None:
        tokens = counted(len(asked.run.ids), "token")
        return REPLACEMENTS[replacement].given.format(tokens=tokens)
    other = ["clean" if one == Direction.denoise else "corrupt" for one in directions]
    return f"what it gives in the {' or '.join(other)} run"


def shared(asked: Asked) -> list[str]:
    """What heads with the same keys and values receive."""
    spec = asked.model.spec
    if spec.n_kv_heads == spec.n_heads:
        return []
    n = spec.n_heads // spec.n_kv_heads
    return [f"{n} heads share their keys and values: what one is told there, all of them read."]


def edited(asked: Asked) -> list[str]:
    """What --edit does here."""
    return ["The edits are made in every pass, before its own change."] if asked.run.edits else []


def notes(said: Sequence[str]) -> list[Note]:
    """Sentences for the reader."""
    return [Note(text) for text in said]


def answer_note(asked: Asked) -> list[str]:
    """What the number says, where that must be said."""
    return [asked.formula.meaning] if asked.formula.meaning else []
