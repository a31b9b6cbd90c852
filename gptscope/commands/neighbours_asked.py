"""Tokens and sums of tokens as they are written: `" mom"`, `<id 643>`, `king - man + woman`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gptscope.commands.answers import answer_id
from gptscope.commands.session import token_text
from gptscope.errors import UsageError
from gptscope.glyphs import token_glyphs

if TYPE_CHECKING:
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


def asked(model: Model, text: str) -> Asked:
    """A token by its text or its id, or several with ` + ` and ` - ` between them.

    Raises:
        UsageError: one of them is no token of this model.
    """
    first, *rest = SIGN.split(text)
    terms = [("+", first), *zip(rest[::2], rest[1::2], strict=True)]
    ids = [(sign, answer_id(model, unquoted(term), "TOKEN")) for sign, term in terms]
    weights = {i: 0 for _, i in ids}
    for sign, i in ids:
        weights[i] += SIGNS[sign]
    if not rest:
        return Asked(token_text(model, ids[0][1]), weights)
    words = [f" {sign} {token_glyphs(token_text(model, i))}" for sign, i in ids]
    return Asked("".join(words).removeprefix(" + "), weights)


def unquoted(term: str) -> str:
    """What stands in double quotes, or the term as it is."""
    quoted = len(term) > 2 and term[0] == term[-1] == '"'
    return term[1:-1] if quoted else term


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
