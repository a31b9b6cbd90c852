"""The answer of `check`: a row for each check, a sentence for each finding, numbers behind them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gptscope.commands.session import Run, counted
from gptscope.view import Column, Note, Part, Table, View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.analysis.check.against import Difference
    from gptscope.analysis.check.examine import Examined, Plan
    from gptscope.analysis.check.fit import Fit
    from gptscope.analysis.check.opening import Opening
    from gptscope.analysis.check.precision import Noise
    from gptscope.commands.check_text import Fed

CHECKS = (
    Column("check"),
    Column("figure", "number"),
    Column("limit", "number"),
    Column("verdict"),
    Column("looked at"),
)
FINDINGS = (Column("check"), Column("finding"))
NOISE = (
    Column("value"),
    Column("error", "number"),
    Column("rounding alone", "number"),
    Column("limit", "number"),
)
FITS = (
    Column("nats per token", "signed"),
    Column("gain", "signed"),
    Column("its error", "length"),
    Column("clearly better"),
    Column("with"),
)
DIFFERENCES = (
    Column("value"),
    Column("largest error", "number"),
    Column("mean error", "number"),
    Column("limit", "number"),
    Column("agrees"),
)
BEST = 3  # conventions that are shown
ROUNDING = 1e-4


def view(found: Opening, made: Examined, fed: Fed | None, plan: Plan | None) -> View:
    """All checks, then the findings, then the tables behind them."""
    parts: list[Part] = [Table(f"Checks of {found.name}", CHECKS, check_rows(made))]
    if made.findings:
        parts.append(Table("Found", FINDINGS, made.findings))
    parts.append(Note(summary(made, fed)))
    if made.noise:
        parts.append(
            Table("Float32 against float64, in parts of the scale", NOISE, noise_rows(made.noise))
        )
    if made.fits:
        parts.append(Table("Other conventions, the best", FITS, fit_rows(made.fits)))
    if made.differences and plan is not None and plan.saved is not None:
        rows = difference_rows(made.differences)
        parts.append(Table("Against the saved trace", DIFFERENCES, rows))
        parts.append(Note(names_of_one(made.differences, found, plan)))
    about: dict[str, Any] = {"model": None, "input": None}
    if found.model is not None and fed is not None:
        about = Run(found.model, fed.ids, fed.text, fed.prepended, fed.appended).about
    return View("check", tuple(parts), **about)


def check_rows(made: Examined) -> list[tuple[Any, ...]]:
    """A row for each check."""
    return [
        (r.check, rough(r.figure), rough(r.limit), r.verdict, r.looked_at) for r in made.results
    ]


def rough(x: float | None) -> float | None:
    """Three digits, of rounding errors one: they are known no better."""
    return None if x is None else brief(x) if abs(x) > ROUNDING else float(f"{x:.0e}")


def brief(x: float) -> float:
    """Three digits."""
    return float(f"{x:.3g}")


def summary(made: Examined, fed: Fed | None) -> str:
    """How many checks there were, and what was read."""
    n, possible = len(made.results), sum(r.possible for r in made.results)
    verdict = f"{counted(len(made.findings), 'finding')} in {counted(n, 'check')}"
    verdict += f", {n - possible} of which are not possible" if possible < n else ""
    return verdict if fed is None else f"{verdict}; the passes read {fed.origin}"


def noise_rows(noise: Sequence[Noise]) -> list[tuple[Any, ...]]:
    """How errors grow: the stream after every block, the logits, and what is beyond its limit."""
    ends = ("embeddings", ".output", "ln_final.out", "logits")
    shown = [n for n in noise if n.name.endswith(ends) or n.error > n.limit]
    return [(n.name, rough(n.error), rough(n.rounding), rough(n.limit)) for n in shown]


def fit_rows(fits: Sequence[Fit]) -> list[tuple[Any, ...]]:
    """The best conventions, and all that are clearly better."""
    shown = [fit for i, fit in enumerate(fits) if i < BEST or fit.clearly_better]
    return [(f.loss, f.gain, f.error, "yes" if f.clearly_better else "no", f.words) for f in shown]


def difference_rows(found: Sequence[Difference]) -> list[tuple[Any, ...]]:
    """A row for each value that both have."""
    return [
        (
            d.name,
            *map(brief, (d.largest, d.mean, d.limit)),
            d.wrong or ("yes" if d.agrees else "no"),
        )
        for d in found
    ]


def names_of_one(shared: Sequence[Difference], found: Opening, plan: Plan) -> str:
    """The names that only the file or only the pass has, those of all layers and heads as one."""
    from gptscope.engine.trace import trace

    assert found.model is not None  # noqa: S101 - for the types
    assert plan.saved is not None  # noqa: S101
    both = {one.name for one in shared}
    sides = {
        "the file": plan.saved.values,
        "the pass": trace(found.model, plan.saved_ids[:1]).names(),
    }
    known = {starred(name) for name in both}
    words = []
    for where, names in sides.items():
        alone = (name for name in names if name not in both)
        short = dict.fromkeys(n if starred(n) in known else starred(n) for n in alone)
        words += [f"only in {where}: {', '.join(short)}"] if short else []
    return "; ".join(words) or "the file and the pass have the same names"


def starred(name: str) -> str:
    """`layers.0.heads.1.q` as `layers.*.heads.*.q`."""
    return re.sub(r"\.\d+(?=\.)", ".*", name)
