"""One number, taken apart."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptscope.commands.completion import addresses
from gptscope.commands.options import Pass, Target, Top, with_options
from gptscope.commands.output import show
from gptscope.commands.sampling import Temperature, TopK, TopP
from gptscope.commands.session import Run, start
from gptscope.errors import UsageError
from gptscope.glyphs import token_glyphs
from gptscope.view import Column, Facts, Note, Table, View

if TYPE_CHECKING:
    from gptscope.analysis.explain.records import Explanation, Softmax, Sum, Term

STEPS = (Column("step"), Column("how"), Column("value", "number"))
WHOLE = ("part", "head")  # sums of which every term is shown, in order
SHARES = (
    Column("position", "id"),
    Column("token", "token"),
    Column("scaled", "signed"),
    Column("exp(scaled - maximum)", "length"),
    Column("weight", "probability"),
)

ROUNDED = "Rounded for display; every digit is in --format json"
UNGATED = "hidden units after activation"
GATED = "hidden units after their gates: the activated gate times the unit"


@with_options
def command(
    source: Pass,
    target: Target,
    address: Annotated[
        str | None,
        typer.Argument(
            help="Which number: a value's name and its place.",
            show_default=False,
            autocompletion=addresses,
        ),
    ] = None,
    top: Top = 8,
    temperature: Temperature = 1.0,
    top_k: TopK = None,
    top_p: TopP = None,
) -> None:
    """One printed number, taken apart until it adds up again.

    gptscope explain "Lily wanted to play with her" "layers.0.heads.0.weights[5,0]"

    gptscope explain "Lily wanted to play with her" "layers.1.ln1.out[5,3]"

    gptscope explain "Lily wanted to play with her" "layers.2.mlp_act[5,17]"

    gptscope explain "Lily wanted to play with her" "layers.3.output[5,0]"

    gptscope explain "Lily wanted to play with her" "probabilities[5]" --top-k 40

    The names are those of docs/hook-points.md; in brackets the token and, where there is one, the
    token read from, the dimension, the unit or the token id. Without an id, logits and
    probabilities take the likeliest token's.
    """
    from gptscope.analysis.explain import explain
    from gptscope.analysis.explain.address import read
    from gptscope.engine.sampling import Sampling

    if address is None:  # TEXT is not needed with --ids, --file, or a model's own example
        address, source = source.text, replace(source, text=None)
    if address is None:
        raise UsageError(
            "there is no address of a number", hint="for example layers.0.heads.0.weights[5,0]"
        )
    if "[" not in address and source.text and source.text.endswith("]"):
        raise UsageError("the address comes after the text", hint="gptscope explain TEXT ADDRESS")
    how, wanted = Sampling(temperature, top_k, top_p), read(address)
    if how != Sampling() and wanted.address is not None:
        raise UsageError("--temperature, --top-k and --top-p count for probabilities alone")
    run = start(source)
    trace = run.trace(*wanted.keep(run.model.spec))
    made = explain(run.model, trace, address, how)
    show(view(made, run, top), target)


def view(made: Explanation, run: Run, top: int) -> View:
    """The number, then a table for every sum and softmax, and for the steps between them."""
    from gptscope.analysis.explain.records import Softmax, Step, Sum

    parts: list[Any] = [Facts(made.name, facts(made, run))]
    steps: list[tuple[str, str, float]] = []
    for part in made.parts:
        if not isinstance(part, Step) and steps:
            parts, steps = [*parts, Table("", STEPS, steps)], []
        match part:
            case Step(name, formula, value):
                steps.append((name, formula, value))
            case Sum():
                parts.append(summed(part, run, top))
                steps = last_of_sum(part)
            case Softmax():
                parts.append(shared(part, run, top))
                steps = last_steps(part)
    notes = [Note(text) for text in (*sharing(made, run), *edited(made, run), ROUNDED)]
    return View("explain", (*parts, Table("", STEPS, steps), *notes), **run.about)


def sharing(made: Explanation, run: Run) -> list[str]:
    """Which heads read the same keys and values, where a number comes of them."""
    from gptscope.commands.attention_built import shared

    head = re.search(r"\.heads\.(\d+)\.(?!q)", made.name)
    text = shared(run.model.spec, [int(head[1])]) if head else ""
    return [text] if text else []


def edited(made: Explanation, run: Run) -> list[str]:
    """That a number does not follow from its steps, where --edit put another in its place."""
    from gptscope.analysis.explain.address import PROBABILITIES
    from gptscope.engine.hook_points import parse

    at = parse(made.name.partition("[")[0].replace(PROBABILITIES, "logits"))
    changed = run.edits is not None and (at.point.key, at.layer) in run.edits.places
    return ["--edit changes this value: the steps are what it would be"] if changed else []


def facts(made: Explanation, run: Run) -> tuple[tuple[Column, Any], ...]:
    """What the number is, of which tokens, and how near the arithmetic comes to it."""
    wheres = [(Column(word), token(run, i)) for word, i in made.tokens]
    return (
        (Column("value", "number"), made.value),
        (Column("what it is"), meaning(made, run)),
        *wheres,
        (Column("the steps below give", "number"), made.computed),
        (Column("difference", "number"), made.value - made.computed),
    )


def meaning(made: Explanation, run: Run) -> str:
    """What the number is in this model, of all that its name may mean."""
    first = run.model.blocks[0]
    if re.match(r"layers\.\d+\.mlp_act\[", made.name):
        return GATED if first.mlp.gate is not None else UNGATED
    return made.meaning if first.ln1.shift is not None else made.meaning.replace(" + shift", "")


def token(run: Run, i: int) -> str:
    """Position and text."""
    return f"{i} {token_glyphs(run.labels[i])}"


def summed(made: Sum, run: Run, top: int) -> Table:
    """The largest terms, the rest together, the bias, the total and what it leaves."""
    counted = [term for term in made.terms if term.name != "bias"]
    shown = counted
    if made.axis not in WHOLE and len(counted) > top + 1:
        shown = sorted(counted, key=lambda term: -abs(term.value))[:top]
    blank = (None,) * len(made.factors)
    rows = [(label(term, made, run), *(term.factors or blank), term.value) for term in shown]
    if len(shown) < len(counted):
        rest = math.fsum(term.value for term in counted if term not in shown)
        rows.append((f"the other {len(counted) - len(shown)}", *blank, rest))
    rows += [("bias", *blank, term.value) for term in made.terms if term.name == "bias"]
    rows.append(("sum", *blank, made.value))
    names = (*made.factors, "product" if made.factors else "value")
    columns = (Column(made.axis), *(Column(name, "signed") for name in names))
    counted_as = "the one term" if len(counted) == 1 else f"a sum of {len(counted)} terms"
    return Table(f"{made.name}: {counted_as}, {made.source}", columns, rows)


def last_of_sum(made: Sum) -> list[tuple[str, str, float]]:
    """The sum itself, and what it leaves of the value that the model holds."""
    if made.held is None or made.remainder is None:
        return [(made.name, "the sum", made.value)]
    return [
        (made.name, "the sum", made.value),
        ("remainder", "what the model has, less that: rounding", made.remainder),
    ]


def label(term: Term, made: Sum, run: Run) -> str:
    """A token with its text, a dimension by its number."""
    return token(run, int(term.name)) if made.axis == "token" else term.name


def shared(made: Softmax, run: Run, top: int) -> Table:
    """The whole masked row through the softmax."""
    order = list(range(len(made.scores)))
    if len(order) > 2 * top:  # the largest, and the one that is explained
        order = sorted({*sorted(order, key=lambda i: -made.shares[i])[: 2 * top - 1], made.at})
    rows = [
        (i, run.labels[i], *hide(made.scores[i], made.exponentials[i], made.shares[i]))
        for i in order
    ]
    left = len(made.scores) - len(order)
    words = f", {left} smaller ones left out (--top shows more)" if left else ""
    return Table(f"The whole row{words}", SHARES, rows)


def last_steps(made: Softmax) -> list[tuple[str, str, float]]:
    """How the share that is explained comes out of its row."""
    return [
        ("maximum", "the largest of the row", made.maximum),
        ("exponential", "exp(scaled - maximum)", float(made.exponentials[made.at])),
        ("sum", "of all exponentials", made.total),
        ("weight", "exponential / sum", made.value),
    ]


def hide(score: float, *more: float) -> tuple[float | None, ...]:
    """Nothing where the score is hidden."""
    return (None, *(None for _ in more)) if score == -math.inf else (score, *more)
