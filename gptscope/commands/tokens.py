"""The pieces that the model reads."""

from __future__ import annotations

from gptscope.commands.options import Source, Target, with_options
from gptscope.commands.output import show
from gptscope.commands.session import Run, start
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
        (i, token.id, token.text, token.bytes.hex(" "), *place(run, tokens, i))
        for i, token in enumerate(tokens)
    ]
    table = Table("", COLUMNS, rows)
    return View("tokens", (table, Note(what_was_done(run, tokens))), **run.about)


def place(run: Run, tokens: list[Token], i: int) -> tuple[int | None, int | None]:
    """Where a token stands in the text, in bytes; nowhere, if the tokenizer put it there."""
    if not run.prepended <= i < len(tokens) - run.appended:
        return None, None
    first = tokens[run.prepended].start
    return tokens[i].start - first, tokens[i].end - first


def what_was_done(run: Run, tokens: list[Token]) -> str:
    """What the tokenizer added, and whether the text comes back from its tokens."""
    if run.text is None:
        return "Ids were given: no text was read, and nothing was added"
    around = {"before": run.prepended, "after": run.appended}
    put = " and ".join(f"{n} {where} the text" for where, n in around.items() if n)
    added = f"The tokenizer put {put}" if put else "Nothing was added"
    own = tokens[run.prepended : len(tokens) - run.appended]
    between = run.model.tokenizer.between if run.model.tokenizer else b""
    if between.join(token.bytes for token in own) == run.text.encode():
        return f"{added}; the tokens give back the text byte for byte"
    return f"{added}; the text is not the same any more"
