"""What an attribution is asked about, and the words and sums that all its views share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gptscope.commands.answers import APART
from gptscope.commands.attribute_question import account_of
from gptscope.commands.session import Run, token_text
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Facts, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gptscope.analysis.attribution import Account, Term
    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Model
    from gptscope.view import Part

    Named = tuple[str, float]
    Array = NDArray[np.floating[Any]]

GIVES = Column("gives", "contribution")
TOGETHER = {  # kinds of terms of layers that are summed where they are not shown one by one
    "head": "all heads",
    "attention bias": "attention biases",
    "feed forward": "feed-forward units",
    "feed-forward bias": "feed-forward biases",
    "norm shift": "shifts of norms in layers",
}


@dataclass(frozen=True)
class Asked:
    """A pass, the position and the tokens that are asked about, and how the answer is shown."""

    run: Run
    trace: Trace
    position: int
    wanted: Mapping[int, float]  # token id -> how often its logit counts
    layer: int | None
    head: int | None
    by_size: bool
    top: int | None

    @cached_property
    def account(self) -> Account:
        """The terms of the logit."""
        return account_of(self.run, self.trace, self.position, self.wanted)

    @property
    def model(self) -> Model:
        """The model that ran."""
        return self.run.model

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms in the order of the pass."""
        return self.account.terms

    @property
    def capped(self) -> bool:
        """Whether the account is of the logit before a cap."""
        return self.model.spec.logit_cap is not None

    @property
    def seen(self) -> int:
        """How many tokens can be read at the position."""
        return self.position + 1 if self.model.spec.causal else len(self.run.ids)

    @property
    def what(self) -> str:
        """The logit in words: `Logit of ·mom less that of ·dad after token 5 ·her`."""
        tokens = [token_glyphs(token_text(self.model, i)) for i in self.wanted]
        return f"Logit of {' less that of '.join(tokens)} after {self.run.place(self.position)}"

    @property
    def layers(self) -> Sequence[int]:
        """The layers that are asked about."""
        return range(self.model.spec.n_layers) if self.layer is None else [self.layer]

    @property
    def reads_all(self) -> bool:
        """Whether heads give what their weights, which sum to 1, read."""
        return not any(key in ("weights", "out", "attn_concat") for key, _ in self.trace.changed)

    @property
    def edited(self) -> bool:
        """Whether the pass was changed."""
        return bool(self.trace.edits)

    def of_kind(self, kind: str) -> list[Term]:
        """The terms of a kind."""
        return [term for term in self.terms if term.kind == kind]

    def in_order(self, numbers: Array | Sequence[float]) -> tuple[list[int], list[int]]:
        """Which numbers are shown, the largest, in the order that was asked for; and the others."""
        import numpy as np

        order = np.argsort(-np.abs(numbers), kind="stable")
        shown, left = np.split(order, [len(order) if self.top is None else self.top])
        return (shown if self.by_size else np.sort(shown)).tolist(), left.tolist()

    def whole(self, shown: Sequence[Named], but: Sequence[str]) -> list[Part]:
        """The sums of what a view shows, and of everything else, and what all add up to.

        `but` are the kinds of terms that are in the sums of `shown`.
        """
        pairs = [*shown, *rest(self.terms, but)]
        table = Table("The whole sum", (Column("part"), GIVES), pairs, "sums")
        return [table, self.closing()]

    def closing(self) -> Facts:
        """What all parts add up to, what the pass has, and what is left."""
        has = APART if len(self.wanted) > 1 else "logit"
        before = " before the cap" if self.capped else ""
        pairs = (
            (Column("all parts", "signed"), self.account.total),
            (Column(f"{has}{before}", "signed"), self.account.logit),
            (Column("remainder", "error"), self.account.remainder),
        )
        return Facts("", pairs, "total")


def rest(terms: Iterable[Term], but: Sequence[str]) -> list[Named]:
    """The sums of all terms but those of some kinds, in the order of the pass."""
    sums: dict[str, float] = {}
    for term in terms:
        if term.kind not in but:
            name = term.name if term.layer is None else TOGETHER.get(term.kind, term.name)
            sums[name] = sums.get(name, 0.0) + term.value
    return list(sums.items())


def left_out(numbers: Array | Sequence[float], what: str) -> list[Named]:
    """The sum of what is not shown as one more line: `87 other parts`; none if all is shown."""
    n = len(numbers)
    return [(f"{n:,} other {what}{'s' * (n > 1)}", math.fsum(numbers))] if n else []


def extremes(pairs: Sequence[Named]) -> str:
    """Which gives most and which takes most, in a sentence."""
    low, high = (pick(pairs, key=lambda pair: pair[1]) for pick in (min, max))
    said = [f"{high[0]} gives most ({high[1]:+.3g})"] if high[1] > 0 else ["nothing adds to it"]
    said += [f"{low[0]} takes most ({low[1]:+.3g})"] if low[1] < 0 else ["nothing takes from it"]
    return "; ".join(said)
