"""What `check` feeds the passes: a text or ids that were given, or its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gptscope.commands.notices import as_trained
from gptscope.commands.session import encoded, parse_ids
from gptscope.errors import GptscopeError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gptscope.model.weights import Model
    from gptscope.tokens import Encoded

ENGLISH = (
    "Once upon a time, there was a little girl named Lily. She loved to play in the park with her "
    "mom and her dog. One day, she saw a big red ball under a tree. She ran to the ball and picked "
    'it up. Her mom smiled and said, "Let\'s play with the ball together!" They threw the ball to '
    "the dog, and the dog ran after it and brought it back. They played all day and were happy."
)


@dataclass(frozen=True)
class Fed:
    """The ids of the passes, and where they come from."""

    ids: tuple[int, ...]
    text: str | None
    origin: str
    prepended: int = 0
    appended: int = 0


def chosen(model: Model, name: str, text: str | None, ids: str | None) -> Fed:
    """What the passes are fed: what was given, a text of ours, or drawn ids.

    Raises:
        UsageError: the text or the ids are none that this model can read.
    """
    from gptscope.analysis.check.examine import drawn_ids
    from gptscope.engine.ids import checked_ids
    from gptscope.model.shipped import EXAMPLES

    if ids is not None:
        return Fed(tuple(checked_ids(model.spec, parse_ids(ids, model)).tolist()), None, "the ids")
    if text is not None:
        run = encoded(model, as_trained(text, model, name))
        checked_ids(model.spec, run.ids)
        return Fed(run.ids, run.text, "the text", run.prepended, run.appended)
    ours = readable(model, (ENGLISH, EXAMPLES.get(name, "")))
    if ours is None:
        return Fed(drawn_ids(model.spec), None, "ids drawn by chance, always the same")
    used, made = ours
    return Fed(tuple(made.ids), used, "a text of gptscope's own", made.prepended, made.appended)


def readable(model: Model, texts: Iterable[str]) -> tuple[str, Encoded] | None:
    """The first of these texts that the tokenizer can read, and its ids, as many as fit."""
    for text in texts:
        try:
            made = model.tokenizer.encoded(text) if model.tokenizer else None
        except GptscopeError:  # a word that it does not know
            continue
        if made and len(made.ids) > 1 and max(made.ids) < model.spec.n_vocab:
            return text, made._replace(ids=made.ids[: model.spec.n_ctx])
    return None
