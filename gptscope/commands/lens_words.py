"""What must be said beside the lens: where the answer comes up, what is left out, what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.commands.lens_look import COLUMNS, Look, Show
from gptscope.view import Note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.commands.session import Run

RATED = (Show.prob, Show.rank)
KL = "KL(last row || row) is how far a row is from the end: 0 bits where both say the same"


def notes(look: Look, what: Show | None, more: Sequence[str]) -> list[Note]:
    """What is to be said of the last column that is shown, and of all; `more` is of the columns."""
    said = [comes_up(look)]
    end = look.lens.positions[-1] + 1 == len(look.run.ids)
    if look.answer is None and what in RATED and end and look.answer_at(-1) is not None:
        said.append(last_rated(look))
    if what == Show.kl:
        said.append(KL)
    said += [*more, *edited(look.run), meaning(look)]
    return [Note(text) for text in said]


def comes_up(look: Look) -> str:
    """Where the answer comes up, after the last token that is shown, and whether it stays."""
    after = look.after(-1)
    ranks = look.lens.rank[:, -1].tolist()
    if 0 in ranks:
        where = look.lens.rows[ranks.index(0)]
        rated = "" if look.answer_at(-1) is not None else ", and no answer can be rated there"
        return f"{after[0].upper()}{after[1:]}, the logits of {where} are not numbers{rated}"
    token = look.named(look.lens.answers[-1])
    return f"{after[0].upper()}{after[1:]}, {token} is {on_top(ranks, look.lens.rows)}"


def on_top(ranks: Sequence[int], names: Sequence[str]) -> str:
    """In which rows a token is the likeliest, in words."""
    from gptscope.analysis.lens import on_top_from

    first, end = on_top_from(ranks), f"at the end it has rank {ranks[-1]:,}"
    begun = ranks.index(1) if 1 in ranks else len(ranks)
    if first is None and begun < len(ranks):
        return f"on top at {names[begun]}, but does not stay so: {end}"
    if first is None:
        best = ranks.index(min(ranks))
        return f"never on top: its best rank is {ranks[best]:,}, at {names[best]}, and {end}"
    if first == 0:
        return "on top in every row"
    where = "in the last row alone" if first == len(names) - 1 else f"from {names[first]} on"
    return f"on top {where}" if begun == first else f"on top {where}, and before at {names[begun]}"


def last_rated(look: Look) -> str:
    """What is rated where nothing came next."""
    token = look.named(look.lens.answers[-1])
    return f"Nothing came after the last token: there the model's own {token} is rated"


def left_out(look: Look) -> str:
    """Which tokens are shown, and how to see the others."""
    n, first = len(look.run.ids), look.lens.positions[0]
    return (
        f"These are the tokens {first} to {n - 1} of 0 to {n - 1}; --last {n} shows all, --last 6 "
        "fewer, --at one of them as a table"
    )


def many(look: Look) -> list[str]:
    """How to see fewer tokens, where there are many."""
    n = len(look.lens.positions)
    few = f"--last {COLUMNS // 2} shows the last ones alone, --at one of them as a table"
    return [f"These are {n} tokens: {few}"] if n > COLUMNS else []


def edited(run: Run) -> list[str]:
    """What a change of the model's end does here."""
    end = run.edits is not None and run.edits.at_the_end
    return ["A change after the last block is one of the last row alone"] if end else []


def meaning(look: Look) -> str:
    """What a row is, and what it is not."""
    end = "output matrix" if look.run.model.ln_final is None else "last norm and output matrix"
    return (
        f"A row is what the model's own {end} read in the stream at that place, as if no layer "
        "came after it (the logit lens): what can be read there already, not what the layers after "
        "it make of it"
        f"{repeats(look)}"
    )


def repeats(look: Look) -> str:
    """Why the first row says the tokens themselves, where the tables are tied."""
    lens, ids = look.lens, look.run.ids
    same = sum(
        ids[at] == top for at, top in zip(lens.positions, lens.top_ids[0, :, 0], strict=True)
    )
    if not look.run.model.tied or 2 * same <= len(lens.positions):
        return ""
    return ". The first row repeats the tokens, since one table makes and reads them"
