"""The answer of `check`: a row for each check, a sentence for each finding, numbers behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.commands.diff_values import value_parts
from gptscope.commands.session import Run
from gptscope.model.files import counted
from gptscope.view import Column, Note, Part, Table, View

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gptscope.analysis.check.against import Against
    from gptscope.analysis.check.examine import Examined, Plan
    from gptscope.analysis.check.fit import Fit
    from gptscope.analysis.check.opening import Opening
    from gptscope.analysis.check.precision import Noise
    from gptscope.analysis.check.result import Result
    from gptscope.commands.check_text import Fed

RESULTS = (
    Column("check"),
    Column("found", "error"),
    Column("limit", "error"),
    Column("verdict"),
    Column("what was looked at"),
)
FINDINGS = (Column("check"), Column("finding"))
DOUBTS = (Column("check"), Column("doubt"))
ADVICE = (Column("check"), Column("what to do"))
NOISE = (
    Column("value"),
    Column("error", "error"),
    Column("rounding alone", "error"),
    Column("limit", "error"),
)
FITS = (
    Column("nats per token", "signed"),
    Column("gain", "signed"),
    Column("its error", "length"),
    Column("clearly better"),
    Column("with"),
)
BEST = 3  # conventions that are shown


def view(found: Opening, made: Examined, plan: Plan | None, fed: Fed | None, top: int) -> View:
    """All checks, then the findings, then the tables behind them."""
    parts = [
        Table(f"Checks of {found.name}", RESULTS, [row(result) for result in made.results]),
        *sentences(made),
        Note(summary(made, fed)),
        *numbers(made, top),
    ]
    about: dict[str, Any] = {"model": None, "input": None}
    if plan is not None and fed is not None:
        about = Run(plan.model, fed.ids, fed.text, fed.prepended, fed.appended).about
    return View("check", tuple(parts), **about)


def row(r: Result) -> tuple[Any, ...]:
    """One check; what a figure counts is said where it is none of faults."""
    unit = f"{r.about.unit}: " if r.possible and r.about.unit != "faults" else ""
    return r.check, r.found, r.limit, r.verdict, unit + r.looked_at


def sentences(made: Examined) -> Iterator[Part]:
    """What was found, what is doubtful, and what to do about either."""
    if made.findings:
        yield Table("Found", FINDINGS, made.findings)
    if made.doubts:
        yield Table("Doubtful", DOUBTS, made.doubts)
    advice = [(r.check, r.about.advice) for r in made.results if r.findings or r.doubts]
    if advice:
        yield Table("What to do", ADVICE, advice)


def numbers(made: Examined, top: int) -> Iterator[Part]:
    """The tables behind the checks that compare many values."""
    if made.noise:
        title = "Float32 against float64, in parts of the scale"
        yield Table(title, NOISE, noise_rows(made.noise))
    if made.fits:
        yield Table("Other conventions, the best", FITS, fit_rows(made.fits))
    if made.against is not None:
        yield from value_parts(made.against.values, "Against the saved trace", top)
        yield Note(names_of_one(made.against))


def summary(made: Examined, fed: Fed | None) -> str:
    """How many checks there were, and what was read."""
    n, possible = len(made.results), sum(r.possible for r in made.results)
    verdict = f"{counted(len(made.findings), 'finding')} in {counted(n, 'check')}"
    verdict += f", {len(made.doubts)} of which is doubtful" if made.doubts else ""
    verdict += f", {n - possible} of which are not possible" if possible < n else ""
    return verdict if fed is None else f"{verdict}; the passes read {fed.origin}"


def noise_rows(noise: Sequence[Noise]) -> list[tuple[Any, ...]]:
    """How errors grow: the stream after every block, the logits, what is nearest its limit."""
    from gptscope.analysis.check.precision import nearest

    ends, worst = ("embeddings", ".output", "ln_final.out", "logits"), nearest(noise)
    shown = [(n.name, n) for n in noise if n.name.endswith(ends) or n.error > n.limit]
    rows = [*shown, ("nearest its limit", worst)]  # which one that is, the row of the check says
    return [(name, n.error, n.rounding, n.limit) for name, n in rows]


def fit_rows(fits: Sequence[Fit]) -> list[tuple[Any, ...]]:
    """The best conventions, and all that are clearly better."""
    shown = [fit for i, fit in enumerate(fits) if i < BEST or fit.clearly_better]
    return [(f.loss, f.gain, f.error, "yes" if f.clearly_better else "no", f.words) for f in shown]


def names_of_one(found: Against) -> str:
    """The names that only the file or only the pass has."""
    sides = {"the file": found.only_saved, "the pass": found.only_made}
    words = [f"only in {where}: {', '.join(names)}" for where, names in sides.items() if names]
    return "; ".join(words) or "the file and the pass have the same names"
