"""One hidden unit: where in the text it is on, what it reads, and what it says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.commands.neurons_edits import edits_after, told
from gptscope.commands.session import token_text
from gptscope.view import Column, Facts, Note, Passage, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gptscope.analysis.attribution import Term
    from gptscope.commands.neurons import Question

    Array = NDArray[Any]
    Unit = tuple[int, int]

TOKEN = (Column("id", "id"), Column("token", "token"))
SAID = (*TOKEN, Column("says", "signed"), Column("gives", "contribution"))
FEW = 3  # norms that are named one by one
MANY = 24  # tokens up to which all have a row


def parts_of_unit(asked: Question, unit: Unit) -> tuple[Any, ...]:
    """Its value at every token, the tokens it reads, promotes and suppresses, and its share."""
    from gptscope.analysis.neurons import says

    logits = says(asked.run.model, asked.trace, [unit], asked.position)[0]
    value, after = value_at(asked, unit), changed(asked, unit[0])
    return (
        *on_the_text(asked, unit),
        *read(asked, unit),
        *said(asked, logits, value),
        facts(asked, unit, logits, after),
        *map(Note, (*told(after), *notes(asked, unit))),
    )


def changed(asked: Question, layer: int) -> list[Term]:
    """What edits made of the values that hold what the units of a layer gave."""
    if not asked.trace.edits:
        return []
    return edits_after(asked, asked.account, [layer])


def value_at(asked: Question, unit: Unit) -> float:
    """Its value after the activation at the position that is asked about."""
    layer, i = unit
    return float(asked.trace.values["mlp_act", layer][asked.position, i])


def on_the_text(asked: Question, unit: Unit) -> tuple[Passage, Table]:
    """Its value at every token of the text, as colours and step by step."""
    from gptscope.analysis.units import steps, strongest

    layer, i = unit
    made = {name: values[:, i] for name, values in steps(asked.trace, layer).items()}
    labels = asked.run.labels
    columns = (
        Column("position", "id"),
        Column("token", "token"),
        *(Column(name, "signed") for name in made),
    )
    title, after = how(asked, layer, gated="gate" in made), made["after"]
    shown: Sequence[int] = range(len(labels))
    if len(labels) > max(MANY, asked.top):
        shown = strongest(after, asked.top)
        title += f": the {asked.top} of {len(labels):,} tokens where it is farthest from zero"
    rows = [(t, labels[t], *(values[t] for values in made.values())) for t in shown]
    whole = f"Unit {i} of layer {layer}: its value at every token"
    text = Passage(whole, labels, [float(x) for x in after], "signed", "values")
    return text, Table(title, columns, rows, "steps")


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
    ways = [("reads", "it reads", mlp.up)]
    if mlp.gate is not None:
        ways = [("gate", "opens its gate", mlp.gate), ("up", "its up column reads", mlp.up)]
    for name, what, matrix in ways:
        cosines = likeness(model, reads_along(model, asked.trace, matrix, unit))
        order = nearest(cosines, asked.top)
        rows = [(j, token_text(model, j), cosines[j]) for j in order]
        title = f"The tokens nearest to what {what}"
        if rows:  # a direction of zeros is near nothing
            yield Table(title, (*TOKEN, Column("cosine", "signed")), rows, name)


def said(asked: Question, logits: Array, value: float) -> Iterator[Table]:
    """The tokens whose logits it raises most at a value of 1, and those that it lowers most."""
    from gptscope.analysis.neighbours import nearest

    raises, lowers = ": the logits that it raises most", ": those that it lowers most"
    if value < 0:
        here = f"here, at {value:.4g}, it {{}} these"
        raises, lowers = f": {here.format('lowers')}", f": {here.format('raises')}"
    for verb, words, sign in (("Promotes", raises, 1), ("Suppresses", lowers, -1)):
        order = nearest(sign * logits, asked.top)
        rows = [(j, token_text(asked.run.model, j), logits[j], value * logits[j]) for j in order]
        if rows:  # where the pass holds NaN, nothing is largest
            yield Table(f"{verb}{words}", SAID, rows, verb.lower())


def facts(asked: Question, unit: Unit, logits: Array, after: Sequence[Term]) -> Facts:
    """Its share of the logit that is asked about, and what edits made of what it is a part of."""
    (layer, i), value = unit, value_at(asked, unit)
    per_one = sum(weight * float(logits[token]) for token, weight in asked.wanted.items())
    pairs = {
        "value": value,
        "says": per_one,
        "gives": value * per_one,
        **{term.name: term.value for term in after},
        "mean says of all tokens": float(logits.mean()),
    }
    title = f"Unit {i} of layer {layer} in {asked.logit}, after {asked.place}"
    return Facts(title, tuple((Column(name, "signed"), x) for name, x in pairs.items()), "unit")


def notes(asked: Question, unit: Unit) -> Iterator[str]:
    """What the numbers are, and which scales were frozen."""
    from gptscope.analysis.neurons import norms_after, norms_before

    model, layer = asked.run.model, unit[0]
    after = norms_after(asked.trace, layer)
    frozen = f"with {scales(asked, after)} frozen at {asked.place}" if after else "no norm follows"
    yield (
        f"says is what the unit adds to a logit at a value of 1, directly: {frozen}; gives is "
        "that times its value there"
    )
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
    from gptscope.analysis.attribution.directions import sigma

    if len(norms) > FEW:
        return f"the scales of {named(norms)}"
    each = [f"{name} ({sigma(asked.trace, name, asked.position):.4g})" for name in norms]
    return f"the scale{'s' * (len(norms) > 1)} of {' and '.join(each)}"


def named(norms: Sequence[str]) -> str:
    """Norms by their names, or how many where they are many."""
    return " and ".join(norms) if len(norms) <= FEW else f"{len(norms)} norms"
