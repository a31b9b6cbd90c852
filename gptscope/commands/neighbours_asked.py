"""Tokens and sums of tokens as they are written: `" mom"`, `<id 643>`, `king - man + woman`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gptscope.commands.answers import answer_id, single
from gptscope.commands.output import tell
from gptscope.commands.session import token_text
from gptscope.errors import UsageError
from gptscope.glyphs import token_glyphs, visible

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gptscope.analysis.neighbours import Space
    from gptscope.model.weights import Model

SIGN = re.compile(r"(?<=.) ([+-]) (?=.)", re.DOTALL)
SIGNS = {"+": 1, "-": -1}


@dataclass(frozen=True)
class Asked:
    """A token, or a sum of tokens."""

    label: str  # its text; of a sum, with signs, as it is shown
    weights: dict[int, int]  # how often each token is added

    @property
    def is_sum(self) -> bool:
        """Whether it is more than a token."""
        return list(self.weights.values()) != [1]

    @property
    def shown(self) -> str:
        """How a title names it."""
        return self.label if self.is_sum else token_glyphs(self.label)


@dataclass(frozen=True)
class Term:
    """A token as it was written, and its sign."""

    sign: str
    written: str

    @property
    def text(self) -> str:
        """What stands in double quotes, or all of it."""
        quoted = len(self.written) > 2 and self.written[0] == self.written[-1] == '"'
        return self.written[1:-1] if quoted else self.written

    @property
    def bare(self) -> bool:
        """Whether it is a word alone: no quotes, no space before it, no id."""
        return self.text == self.written != "" and not self.text.startswith((" ", "·", "<id "))


def every_asked(model: Model, texts: Sequence[str]) -> list[Asked]:
    """Tokens by their texts or ids; those with `+` and `-` between them are one sum.

    A sign stands between two arguments or, between spaces, within one.

    Raises:
        UsageError: one of them is no token of this model.
    """
    left, found = list(texts), []
    while left:
        terms = list(terms_of("+", left.pop(0)))
        while len(left) > 1 and left[0] in SIGNS:
            terms += terms_of(left.pop(0), left.pop(0))
        found.append(asked(model, terms))
    return found


def terms_of(sign: str, text: str) -> Iterator[Term]:
    """The terms of one argument, with the sign that stands before it."""
    first, *rest = SIGN.split(text)
    yield Term(sign, first)
    yield from map(Term, rest[::2], rest[1::2])


def asked(model: Model, terms: Sequence[Term]) -> Asked:
    """A token, or a sum of them.

    Raises:
        UsageError: one of them is no token of this model.
    """
    spaced = with_spaces(model, terms)
    ids = [
        spaced[t.text] if t.bare and spaced else answer_id(model, t.text, "TOKEN") for t in terms
    ]
    weights = dict.fromkeys(ids, 0)
    for term, i in zip(terms, ids, strict=True):
        weights[i] += SIGNS[term.sign]
    if len(terms) == 1:
        return Asked(token_text(model, ids[0]), weights)
    pairs = zip(terms, ids, strict=True)
    words = [f" {term.sign} {token_glyphs(token_text(model, i))}" for term, i in pairs]
    return Asked("".join(words).removeprefix(" + "), weights)


def with_spaces(model: Model, terms: Sequence[Term]) -> dict[str, int]:
    """The ids of a sum's bare words with a space before each, if every one is such a token.

    What a text has in its middle; it is told on standard error.
    """
    words = list(dict.fromkeys(term.text for term in terms if term.bare))
    if model.tokenizer is None or len(terms) == 1:
        return {}
    found = {word: single(model.tokenizer, f" {word}") for word in words}
    ids = {word: i for word, i in found.items() if i is not None}
    if not words or len(ids) < len(words):
        return {}
    listed = ", ".join(repr(f" {word}") for word in words)
    tell(
        visible(f"note: words of a sum are taken with a space before them, as in a text: {listed}")
    )
    return ids


def direction(seen: Space, one: Asked) -> Any:  # noqa: ANN401
    """The row of a token, or the sum of rows: [d].

    Raises:
        UsageError: it has no direction.
    """
    from gptscope.analysis.neighbours import combined, has_direction

    if not all(seen.known[i] for i in one.weights):
        what = f"the row of {one.shown} is all zeros, or holds NaN or infinity"
        raise UsageError(f"{what}: it has no direction")
    found = combined(seen, one.weights)
    if not has_direction(seen, found):
        what = "is the mean of all rows" if seen.centred and not one.is_sum else "adds up to zeros"
        raise UsageError(f"{one.shown} {what}: it has no direction")
    return found
