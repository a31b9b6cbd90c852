"""One hidden unit: where in the text it is on, what it reads, and what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.commands.session import token_text
from gptscope.view import Column, Facts, Note, Passage, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gptscope.commands.neurons import Question

    Array = NDArray[Any]
    Unit = tuple[int, int]

TOKEN = (Column("id", "id"), Column("token", "token"))
SAID = (*TOKEN, Column("per 1", "signed"), Column("gives", "contribution"))
FEW = 3  # norms that are named one by one


def parts_of_unit(asked: Question, unit: Unit) -> tuple[Any, ...]:
    """Its value at every token, the tokens it reads, promotes and suppresses, and its share."""
    from gptscope.analysis.neurons import says

    logits = says(asked.run.model, asked.trace, [unit], asked.position)[0]
    value = value_at(asked, unit)
    return (
        *on_the_text(asked, unit),
        *read(asked, unit),
        *said(asked, logits, value),
        facts(asked, unit, logits, value),
        *map(Note, notes(asked, unit, value)),
    )


def value_at(asked: Question, unit: Unit) -> float:
    """Its value after the activation at the position that is asked about."""
    layer, i = unit
    return float(asked.trace.values["mlp_act", layer][asked.position, i])


def on_the_text(asked: Question, unit: Unit) -> tuple[Passage, Table]:
    """Its value at every token of the text, as colours and step by step."""
    from gptscope.analysis.units import steps

    layer, i = unit
    made = {name: values[:, i] for name, values in steps(asked.trace, layer).items()}
    labels = asked.run.labels
    columns = (
        Column("position", "id"),
        Column("token", "token"),
        *(Column(name, "signed") for name in made),
    )
    rows = [(t, label, *(values[t] for values in made.values())) for t, label in enumerate(labels)]
    title = f"Unit {i} of layer {layer}: its value at every token"
    after = [float(x) for x in made["after"]]
    return Passage(title, labels, after, "signed"), Table(
        how(asked, layer, gated="gate" in made), columns, rows
    )


def how(asked: Question, layer: int, *, gated: bool) -> str:
    """How the columns of a unit follow from each other."""
    name = asked.run.model.spec.activation
    edited = ", then changed by --edit" * (("mlp_act", layer) in asked.trace.changed)
    return (f"after = {name}(gate) x up" if gated else f"after = {name}(before)") + edited


def read(asked: Question, unit: Unit) -> Iterator[Table]:
    """The tokens nearest to the direction that it reads along, and that of its gate if any."""
    from gptscope.analysis.neighbours import nearest
    from gptscope.analysis.neurons import likeness, reads_along

    model, mlp = asked.run.model, asked.run.model.blocks[unit[0]].mlp
    ways = (
        {"it reads": mlp.up}
        if mlp.gate is None
        else {"opens its gate": mlp.gate, "its up column reads": mlp.up}
    )
    for what, matrix in ways.items():
        cosines = likeness(model, reads_along(model, asked.trace, matrix, unit))
        order = nearest(cosines, asked.top)
        rows = [(j, token_text(model, j), cosines[j]) for j in order]
        title = f"The tokens nearest to what {what}"
        if rows:  # a direction of zeros is near nothing
            yield Table(title, (*TOKEN, Column("cosine", "signed")), rows)


def said(asked: Question, logits: Array, value: float) -> Iterator[Table]:
    """The tokens whose logits it raises most at a value of 1, and those that it lowers most."""
    from gptscope.analysis.neighbours import nearest

    titles = {
        "Promotes: the logits that it raises most": 1,
        "Suppresses: those that it lowers most": -1,
    }
    for title, sign in titles.items():
        order = nearest(sign * logits, asked.top)
        rows = [(j, token_text(asked.run.model, j), logits[j], value * logits[j]) for j in order]
        if rows:  # where the pass holds NaN, nothing is largest
            yield Table(title, SAID, rows)


def facts(asked: Question, unit: Unit, logits: Array, value: float) -> Facts:
    """Its share of the logit that is asked about."""
    layer, i = unit
    per_one = sum(weight * float(logits[token]) for token, weight in asked.wanted.items())
    pairs = {
        "value": value,
        "per 1": per_one,
        "gives": value * per_one,
        "mean per 1 of all tokens": float(logits.mean()),
    }
    title = f"Unit {i} of layer {layer} in {asked.logit}, after {asked.place}"
    return Facts(title, tuple((Column(name, "signed"), x) for name, x in pairs.items()))


def notes(asked: Question, unit: Unit, value: float) -> Iterator[str]:
    """What the numbers are, and which scales were frozen."""
    from gptscope.analysis.neurons import norms_after, norms_before

    model, layer = asked.run.model, unit[0]
    after = norms_after(model, asked.trace, layer)
    frozen = f"with {scales(asked, after)} frozen at {asked.place}" if after else "no norm follows"
    yield (
        f"per 1 is what the unit adds to a logit at a value of 1, directly: {frozen}; gives is "
        "that times its value there"
    )
    if value < 0:
        yield "Its value there is below zero: it lowers what it promotes, and raises the others"
    before = norms_before(asked.trace, layer)
    folded = f", with the gain of {named(before)} folded in" if before else ""
    yield (
        "cosine is that of a token's embedding with the unit's column of the matrix that it reads "
        f"by{folded}; what attention adds to the embedding is not in it"
    )
    if model.spec.logit_cap is not None:
        yield "Logits are those before their cap"


def scales(asked: Question, norms: Sequence[str]) -> str:
    """The scales of norms in words, with their numbers where they are few."""
    from gptscope.analysis.neurons import sigma

    if len(norms) > FEW:
        return f"the scales of {named(norms)}"
    each = [f"{name} ({sigma(asked.trace, name, asked.position):.4g})" for name in norms]
    return f"the scale{'s' * (len(norms) > 1)} of {' and '.join(each)}"


def named(norms: Sequence[str]) -> str:
    """Norms by their names, or how many where they are many."""
    return " and ".join(norms) if len(norms) <= FEW else f"{len(norms)} norms"
