"""The hidden units that give most to an answer, or take most from it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gptscope.commands.attribute_question import ALIKE
from gptscope.commands.neurons_edits import edits, edits_after, told
from gptscope.commands.session import token_text
from gptscope.view import Column, Facts, Note, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gptscope.analysis.attribution import Account
    from gptscope.commands.neurons import Question

    Array = NDArray[Any]
    Unit = tuple[int, int]

COLUMNS = (
    Column("layer", "id"),
    Column("unit", "id"),
    Column("value", "signed"),
    Column("says", "signed"),
    Column("gives", "contribution"),
    Column("raises most", "token"),
)
UNITS, BIASES = "feed forward", "feed-forward bias"  # kinds of terms
AT_ONCE = 16  # units whose logits are computed together


def parts_of_strongest(asked: Question, layer: int | None) -> tuple[Any, ...]:
    """The strongest units of all layers or of one, and the whole sum that they are a part of."""
    import numpy as np

    from gptscope.analysis.neurons import contributions
    from gptscope.analysis.units import strongest

    model = asked.run.model
    layers = range(model.spec.n_layers) if layer is None else [layer]
    account = asked.account
    found = contributions(model, asked.trace, account.found, layers)
    values, says = np.moveaxis(found, -1, 0)  # [layers, F, 2] -> [layers, F] twice
    given = values * says
    order = [divmod(i, given.shape[1]) for i in strongest(given.reshape(-1), asked.top)]
    units = [(layers[row], i) for row, i in order]
    raised = raise_most(asked, units, [values[at] for at in order])
    rows = [
        (*unit, values[at], says[at], given[at], token)
        for unit, at, token in zip(units, order, raised, strict=True)
    ]
    of_layer = "" if layer is None else f" of layer {layer}"
    title = f"Units{of_layer} strongest for {asked.logit}, after {asked.place}"
    shown = np.array([given[at] for at in order])
    facts = (sums(asked, account, given, shown), shares(given, shown))
    after = edits_after(asked, account, [layer for layer, _ in units])
    said = (*told(after), *notes(asked))
    return (Table(title, COLUMNS, rows, "units"), *facts, *map(Note, said))


def raise_most(asked: Question, units: Sequence[Unit], values: Sequence[float]) -> list[str | None]:
    """The token whose logit each unit raises most at its value; None if there is none."""
    import numpy as np

    from gptscope.analysis.neurons import says

    found: list[str | None] = []
    for start in range(0, len(units), AT_ONCE):
        part = slice(start, start + AT_ONCE)
        logits = says(asked.run.model, asked.trace, units[part], asked.position)  # [k, V]
        for row, sign in zip(logits, np.sign(values[part]), strict=True):
            best = int((row * sign).argmax())  # NaN counts as the largest
            none = sign == 0 or np.isnan(row[best] * sign)
            found.append(None if none else token_text(asked.run.model, best))
    return found


def sums(asked: Question, account: Account, given: Array, shown: Array) -> Facts:
    """What the units shown, the other units and all other parts add up to, beside the pass."""
    units, inside = float(given.sum()), float(shown.sum())
    n, elsewhere = given.size - len(shown), of_kind(account, UNITS) - units
    pairs = [("units shown", inside)]
    pairs += [(f"{n:,} other units", units - inside)] if n else []
    pairs += [("units of other layers", elsewhere)] if len(given) < layers(asked) else []
    biases = of_kind(account, BIASES)
    pairs += [("feed-forward biases", biases)] if biases else []
    edited = [(term.name, term.value) for term in edits(account)]
    named = of_kind(account, UNITS) + biases + of_kind(account, "edit")
    pairs += [*edited, ("everything else", account.total - named), (asked.name, account.logit)]
    facts = [(Column(name, "signed"), value) for name, value in pairs]
    remainder = account.logit - math.fsum(value for _, value in pairs[:-1])
    return Facts("", (*facts, (Column("remainder", "error"), remainder)), "total")


def layers(asked: Question) -> int:
    """How many layers the model has."""
    return asked.run.model.spec.n_layers


def of_kind(account: Account, kind: str) -> float:
    """The sum of the terms of a kind."""
    return math.fsum(term.value for term in account.terms if term.kind == kind)


def shares(given: Array, shown: Array) -> Facts:
    """How many units there are, and how few of them do most."""
    import numpy as np

    from gptscope.analysis.neurons import n_for_half

    whole, part = float(np.abs(given).sum()), float(np.abs(shown).sum())
    pairs = (
        (Column("units", "count"), given.size),
        (Column("that give", "count"), int((given > 0).sum())),
        (Column("that take", "count"), int((given < 0).sum())),
        (Column("make half of it", "count"), n_for_half(given)),
        (Column("share of those shown", "probability"), part / whole if whole else None),
    )
    return Facts("", pairs, "shares")


def notes(asked: Question) -> Iterator[str]:
    """What the numbers are."""
    yield (
        "gives = value x says: the value of a unit after its activation, and what it adds to the "
        "logit at a value of 1, directly and with the scale of the norms frozen at this pass; "
        "raises most is the token whose logit it raises most at its value"
    )
    if len(asked.wanted) == 1 and asked.run.model.spec.logit_cap is None:
        yield ALIKE
    yield "Half and share are of all that the units give and take, signs aside"
    yield "--layer and --unit show what one of them reads and says"
