"""The token that a question is about: `--answer " girl"`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gptscope.commands.output import tell
from gptscope.commands.session import token_text
from gptscope.errors import GptscopeError, UsageError
from gptscope.glyphs import token_bytes, visible
from gptscope.view import Column, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.model.weights import Model
    from gptscope.tokens import Tokenizer

POSITION = Column("position", "id")
APART = "answer - against"


def answer_id(model: Model, text: str, option: str = "--answer") -> int:
    """The id of a token given by its text or as `<id 643>`; without a tokenizer, by its id.

    That it is the first of several, or also exists with or without a space, is told on standard
    error.

    Raises:
        UsageError: it is empty, or no token of this model.
    """
    numbered = re.fullmatch(r"<id (\d{1,9})>" if model.tokenizer else r"(?:<id )?(\d{1,9})>?", text)
    if numbered:
        from gptscope.engine.ids import in_vocabulary

        return int(in_vocabulary(model.spec, [int(numbered[1])])[0])
    if model.tokenizer is None:
        last = model.spec.n_vocab - 1
        raise UsageError(
            f"{option} {text!r}: {model.no_tokenizer}, so a token is given by its id",
            hint=f"an id from 0 to {last}: {last}, or '<id {last}>'",
        )
    if not text:
        raise UsageError(f"{option} is empty")
    return first_token(model.tokenizer, text, option)


def likeliest(logits: Any, where: str) -> int:  # noqa: ANN401
    """The id with the highest logit [V], where there is one.

    Raises:
        GptscopeError: the logits are no numbers; `where` says whose they are.
    """
    if not drawable(logits):
        most = float(logits.max())
        what = {float("inf"): "infinity", -float("inf"): "-infinity alone"}.get(most, "NaN")
        raise GptscopeError(f"the logits {where} hold {what}, so no token can be rated")
    return int(logits.argmax())


def drawable(logits: Any) -> bool:  # noqa: ANN401
    """Whether the logits of a token give probabilities: -inf may be among them."""
    import numpy as np

    return bool(np.isfinite(logits.max()))


def wanted(
    model: Model, best: Sequence[int], answer: str | None, against: str | None
) -> dict[int, float]:
    """How often the logit of each token counts: 1 for the answer, -1 for the one against it.

    `best` is the likeliest of each run. Without an answer it is that of the run; with two runs and
    neither token given, the other is the likeliest of the second run, if it is another.

    Raises:
        UsageError: one is no token of this model, or both are the same.
    """
    first = best[0] if answer is None else answer_id(model, answer)
    if answer is None and against is None:
        return {first: 1.0} | {i: -1.0 for i in best[1:] if i != first}
    if against is None:
        return {first: 1.0}
    second = answer_id(model, against, "--against")
    if first == second:
        raise UsageError(f"the answer and --against are the same token, {first}")
    return {first: 1.0, second: -1.0}


def rated_token(
    model: Model,
    named: tuple[str, int],
    logits: Any,  # noqa: ANN401
    held: Any = None,  # noqa: ANN401
) -> tuple[Any, ...]:
    """A row of `asked_table`: a token and what it is, rated by logits [V].

    `held` are the logits that are told, where they are others: those before their cap.
    """
    from gptscope.engine.sampling import probabilities, rank

    role, i = named
    logit = float((logits if held is None else held)[i])
    return role, token_text(model, i), i, logit, float(probabilities(logits)[i]), rank(logits, i)


def asked_table(
    title: str, rows: Sequence[Sequence[Any]], *more: Column, logit: str = "logit"
) -> Table:
    """The tokens that are asked about; `more` are columns before those of `rated_token`."""
    token = Column("asked"), Column("token", "token"), Column("id", "id")
    rating = Column(logit, "signed"), Column("probability", "probability"), Column("rank", "id")
    return Table(title, (*more, *token, *rating), rows, name="asked")


def first_token(tokenizer: Tokenizer, text: str, option: str) -> int:
    """The token of a text, or of one as it is shown, or with a space before it; or its first."""
    own = single(tokenizer, text)
    copied = shown_as(tokenizer, text) if own is None else None
    if copied is not None:
        what = f"{option} is {tokenizer.text_of(copied)!r} (id {copied})"
        tell(visible(f"note: {what}, which tables show as {text!r}"))
        return copied
    pieces = spelled(tokenizer, text)
    other = text[1:] if text.startswith(" ") else f" {text}"
    twin = single(tokenizer, other) if other else None
    if own is None and twin is None and not pieces:
        raise UsageError(f"{option} {text!r} is no token of this model")
    if own is not None and twin is not None:
        tell(visible(f"note: {option} is {text!r} (id {own}); {other!r} is another token, {twin}"))
    elif own is None and twin is not None:
        tell(visible(f"note: {option} is {other!r} (id {twin}): {text!r} is no single token"))
    elif own is None:
        each = ", ".join(repr(tokenizer.text_of(i)) for i in pieces)
        what = f"{option} {text!r} is {len(pieces)} tokens, {each}: the first is looked at"
        tell(visible(f"warning: {what}" if len(pieces) > 1 else f"note: {option} is {each}"))
    return next(i for i in (own, twin, pieces[0]) if i is not None)


def shown_as(tokenizer: Tokenizer, text: str) -> int | None:
    """The first token that tables show as this text, if it is not as it is: `·mom`, `<0x0A>`."""
    meant = token_bytes(text)
    if not meant or meant == text.encode(errors="surrogatepass"):
        return None
    return next((i for i in range(tokenizer.size) if tokenizer.bytes_of(i) == meant), None)


def spelled(tokenizer: Tokenizer, text: str) -> list[int]:
    """The tokens of a text in the middle of another; some tokenizers put a space before any."""
    for one in (text, text.removeprefix(" ")):
        own = tokenizer.encoded(one).own if one else []
        if own and tokenizer.joined(own, goes_on=True) == text.encode():
            return own
    return tokenizer.encoded(text).own


def single(tokenizer: Tokenizer, text: str) -> int | None:
    """The one token that is this text in the middle of another, if there is one."""
    try:
        own = spelled(tokenizer, text)
    except UsageError:  # a word that it does not know
        return None
    if tokenizer.joined(own, goes_on=True) == text.encode():
        return own[0] if len(own) == 1 else None
    return next((i for i in range(tokenizer.size) if tokenizer.text_of(i) == text), None)
