"""Parameters counted from sizes, or in the tensors of a model."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from gptscope.commands.options import Target, Verbose, with_options
from gptscope.commands.output import show
from gptscope.errors import UsageError
from gptscope.model.params import ParameterCount, Sizes, count, rule_of_thumb
from gptscope.model.presets import PRESETS, Preset, preset
from gptscope.view import Column, Facts, Part, Table, View

NEEDED = ("d", "L")
OFF = Column("off, share of the total", "signed")


@with_options
def command(
    target: Target,
    name: Annotated[
        str | None,
        typer.Option(
            "--preset",
            help=f"Sizes of a known model: {', '.join(PRESETS)}.",
            autocompletion=lambda: list(PRESETS),
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", "-m", help="A shipped name, a folder or a file.")
    ] = None,
    d: Annotated[int | None, typer.Option("--d", min=1, help="Width: numbers per token.")] = None,
    n_layers: Annotated[int | None, typer.Option("--L", min=0, help="Blocks.")] = None,
    n_vocab: Annotated[
        int | None, typer.Option("--V", min=0, help="Vocabulary; 50257 if not given.")
    ] = None,
    ctx: Annotated[
        int | None,
        typer.Option(
            "--ctx",
            min=0,
            help="Longest text; 0 where positions have no table; 2048 if not given.",
        ),
    ] = None,
    ff: Annotated[
        int | None, typer.Option("--ff", min=1, help="Feed-forward width; 4 d if not given.")
    ] = None,
    untied: Annotated[
        bool, typer.Option("--untied", help="Count an output matrix beside the token table.")
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Parameters counted from sizes, or in the tensors of a model.

    gptscope params --d 768 --L 12

    gptscope params --preset gpt2   (124,439,808; its paper said 117 million)

    gptscope params --preset gpt3   (174,604,259,328; its paper: 175.0 billion)

    gptscope params --preset gpt2 --ctx 2048 --untied

    gptscope params --model tiny

    Sizes given beside a preset take the place of its own. Sources:

    Radford et al. 2018 (GPT-1) and 2019 (GPT-2), and their released weights.

    Brown et al. 2020, table 2.1: GPT-3, from 125 million to 175.0 billion.

    Kaplan et al. 2020, eq. 2.1: 12 L d^2, the matrices without embeddings.
    """
    numbers = {"d": d, "L": n_layers, "V": n_vocab, "ctx": ctx, "ff": ff}
    given: dict[str, Any] = {key: n for key, n in numbers.items() if n is not None}
    given |= {"tied": False} if untied else {}
    if model is None:
        show(view_of_sizes(name, given), target)
        return
    if name is not None or given:
        raise UsageError(
            "--model counts the tensors of a model: it takes no --preset and no sizes",
            hint=f"gptscope params --model {model}",
        )
    from gptscope.commands.params_of_model import view_of_model
    from gptscope.commands.session import opened

    show(view_of_model(opened(model, verbose=verbose)), target)


def view_of_sizes(name: str | None, given: dict[str, Any]) -> View:
    """Sizes alone: the table of parts, what the paper says, the rule of thumb."""
    known = None if name is None else preset(name)
    sizes = asked(known, given)
    counted = count(sizes)
    of = f" of {name}" if name else ""
    as_in_the_paper = known is not None and sizes == known.sizes
    parts = [
        facts_of(sizes, f"Sizes{of}{'' if as_in_the_paper or not name else ', changed'}"),
        table(sizes, counted),
        *(published(known, counted) if known and as_in_the_paper else ()),
        thumb(sizes, counted),
    ]
    return View("params", tuple(parts))


def asked(known: Preset | None, given: dict[str, Any]) -> Sizes:
    """The sizes of the preset, or none, with those that were given in their place.

    Raises:
        UsageError: width or blocks are not said.
    """
    if known is not None:
        return replace(known.sizes, **given)
    missing = [f"'--{key}'" for key in NEEDED if key not in given]
    if missing:
        raise UsageError(
            f"Missing option{'s' * (len(missing) > 1)} {' and '.join(missing)}.",
            hint="gptscope params --help; --preset gpt2 or --model tiny brings all sizes along",
        )
    return Sizes(**given)


def facts_of(sizes: Sizes, title: str) -> Facts:
    """What every letter stands for."""
    pairs = {
        "d, width": sizes.d,
        "L, blocks": sizes.L,
        "V, vocabulary": sizes.V,
        "ctx, rows of positions": sizes.ctx,
        "ff, feed-forward width": sizes.wide,
    }
    return Facts(title, tuple((Column(name, "count"), n) for name, n in pairs.items()))


def table(sizes: Sizes, by_formula: ParameterCount, in_file: ParameterCount | None = None) -> Table:
    """The lesson's table: part, formula, number, share; with a model, its own number as well."""
    counted = in_file or by_formula
    columns = [Column("part"), Column("formula")]
    columns += [Column("by the formula", "count")] if in_file else []
    columns += [Column("parameters", "count"), Column("share", "probability")]
    rows = []
    for part, formula in (formulas(sizes) | {"total": ""}).items():
        expected, n = getattr(by_formula, part), getattr(counted, part)
        numbers = (expected, n) if in_file else (n,)
        rows.append((part, formula, *numbers, share(n, counted.total)))
    return Table("", tuple(columns), rows)


def formulas(sizes: Sizes) -> dict[str, str]:
    """How each part is counted."""
    usual = sizes.wide == 4 * sizes.d
    found = {
        "embeddings": "V d + ctx d",
        "attention": "L (4 d^2 + 4 d)",
        "network": "L (8 d^2 + 5 d)" if usual else "L (2 d ff + ff + d)",
        "normalisations": "(4 L + 2) d" if sizes.final_norm else "4 L d",
    }
    return found if sizes.tied else found | {"unembedding": "V d"}


def published(known: Preset, counted: ParameterCount) -> tuple[Part, ...]:
    """What the paper says, and how far it is off."""
    if known.published is None:
        return ()
    pairs = (
        (Column("parameters", "count"), known.published),
        (OFF, off_by(known.published, counted.total)),
    )
    return (Facts(f"As published ({known.paper})", pairs),)


def thumb(sizes: Sizes, counted: ParameterCount) -> Facts:
    """Kaplan's estimate, and how far it is off."""
    rule = rule_of_thumb(sizes)
    formula = "12 L d^2" if sizes.wide == 4 * sizes.d else "L (4 d^2 + 2 d ff)"
    pairs = (
        (Column(formula, "count"), rule),
        (Column("all but the embeddings and the output", "count"), counted.non_embedding),
        (Column("off, share of these", "signed"), off_by(rule, counted.non_embedding)),
        (OFF, off_by(rule, counted.total)),
    )
    return Facts("The rule of thumb (Kaplan et al. 2020, eq. 2.1)", pairs)


def share(n: int, total: int) -> float | None:
    """A part of the total; None of nothing."""
    return n / total if total else None


def off_by(estimate: int, true: int) -> float | None:
    """How far an estimate is above (+) or below (-) the true number, as a share of that."""
    return (estimate - true) / true if true else None
