"""The pieces that the model reads."""

from __future__ import annotations

from gptscope.commands.notices import changed
from gptscope.commands.options import Source, Target, with_options
from gptscope.commands.output import show
from gptscope.commands.session import Run, start
from gptscope.glyphs import token_glyphs
from gptscope.tokens import Token
from gptscope.view import Column, Note, Table, View

COLUMNS = (
    Column("position", "id"),
    Column("id", "id"),
    Column("token", "token"),
    Column("bytes"),
    Column("start", "id"),
    Column("end", "id"),
)
NOWHERE = (None, None)


@with_options
def command(source: Source, target: Target) -> None:
    """The pieces that the model reads: ids, bytes, places in the text.

    gptscope tokens "Lily wanted to play with her"

    gptscope tokens --file story.txt --format csv
    """
    run = start(source)
    show(view(run), target)


def view(run: Run) -> View:
    """A row for each token; places are counted in bytes of UTF-8."""
    tokens = run.tokens
    rows = [
        (i, token.id, token.text, token.bytes.hex(" "), *place)
        for i, (token, place) in enumerate(zip(tokens, places(run, tokens), strict=True))
    ]
    table = Table("", COLUMNS, rows)
    return View("tokens", (table, Note(what_was_done(run, tokens))), **run.about)


def places(run: Run, tokens: list[Token]) -> list[tuple[int | None, int | None]]:
    """Where each token stands in the text, in bytes; nowhere, if it was put around it."""
    own = tokens[run.prepended : len(tokens) - run.appended]
    if run.text is not None and run.model.tokenizer is not None:
        found = run.model.tokenizer.places(run.text)
    else:
        found = [(token.start - own[0].start, token.end - own[0].start) for token in own]
    return [*[NOWHERE] * run.prepended, *found, *[NOWHERE] * run.appended]


def what_was_done(run: Run, tokens: list[Token]) -> str:
    """What was put around the text, and whether it comes back from its tokens."""
    end = len(tokens) - run.appended
    around = {"before": tokens[: run.prepended], "after": tokens[end:]}
    named = {
        where: " ".join(token_glyphs(t.text) for t in which) for where, which in around.items()
    }
    put = " and ".join(f"{which} {where}" for where, which in named.items() if which)
    if run.text is None or run.model.tokenizer is None:
        added = f"{put} them was added" if put else "nothing was added"
        return f"Ids were given: no text was read, and {added}"
    own = [token.id for token in tokens[run.prepended : end]]
    added = f"Put around the text: {put} it" if put else "Nothing was added"
    return f"{added}; {changed(run.model.tokenizer, run.text, own) or given_back(run, own)}"


def given_back(run: Run, own: list[int]) -> str:
    """That the text comes back, and which space of the tokens is no part of it."""
    said = "the tokens give back the text byte for byte"
    tokenizer = run.model.tokenizer
    if tokenizer is None:
        return said
    back, whole = tokenizer.joined(own), tokenizer.between.join(map(tokenizer.bytes_of, own))
    where = "before" if whole.endswith(back) else "after"
    return said if whole == back else f"{said}, but for a space that they have {where} it"
