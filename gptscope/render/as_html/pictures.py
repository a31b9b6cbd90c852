"""What has colours in a page: grids, sheets, strips, and the legends that explain them."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from gptscope.glyphs import token_glyphs, visible
from gptscope.render.as_html.colours import Steps, steps_for
from gptscope.render.numbers import brief, formatter, largest_of
from gptscope.render.palette import UNSEEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gptscope.view import Grid, Kind, Sheet

SIDE = 9.0  # rem: the longest side of a small picture
LEAST = 4.0


def grid(part: Grid, known: str, precision: int | None) -> tuple[str, str]:
    """Every number on its colour, with its labels on two sides; and the legend."""
    write = formatter(part.kind, seen([part]), grid=True, precision=precision)
    scale, steps = scale_of([part]), steps_for(part.kind)
    heads = "".join(
        f'<th scope="col" title="{one}">{place}{one}</th>'
        for place, one in labels(part.columns, part.column_kind, part.at_columns)
    )
    rows = []
    sides = labels(part.rows, part.row_kind, part.at_rows)
    above = part.cell_tokens() or [[None] * len(part.columns)] * len(part.rows)
    for (place, name), words, line in zip(sides, above, part.cells(), strict=True):
        pairs = zip(words, line, strict=True)
        inner = "".join(cell(word, value, write(value), scale, steps) for word, value in pairs)
        rows.append(f'<tr><th scope="row" title="{name}">{place}{name}</th>{inner}</tr>')
    body = "\n".join(rows)
    whole = f'<table class="grid" {known}>\n<thead><tr><td></td>{heads}</tr></thead>\n'
    return f"{whole}<tbody>\n{body}\n</tbody>\n</table>", legend([part], precision)


def labels(texts: Sequence[str], kind: Kind, at: Sequence[int]) -> list[tuple[str, str]]:
    """Position, which tokens have, and text of every label."""
    if kind == "token":
        return [
            (f"<small>{i}</small> ", escape(token_glyphs(words)))
            for i, words in zip(at, texts, strict=True)
        ]
    return [("", escape(visible(words))) for words in texts]


def cell(word: str | None, value: Any, shown: str, scale: float, steps: Steps) -> str:  # noqa: ANN401
    """A number, under a token if it has one, on its colour; what is hidden looks like nothing else.

    Nor does what is no number.
    """
    if value is None:
        return '<td class="number hidden"><span aria-label="hidden">-</span></td>'
    look = look_of(value, scale, steps)
    if word is None:
        return f'<td class="number{look}">{escape(shown)}</td>'
    token = escape(token_glyphs(word))
    inner = f'<span class="token">{token}</span> {escape(shown)}'
    return f'<td class="number{look}" title="{token}">{inner}</td>'


def look_of(value: float, scale: float, steps: Steps) -> str:
    """The classes of a number on its colour; next to nothing has none."""
    return "" if abs(value) / scale < UNSEEN else f" step {steps.of(value, scale)}"


def sheet(part: Sheet, precision: int | None) -> tuple[str, str]:
    """Every grid as a small picture under its title; and the legend of them all."""
    scale = scale_of(part.grids)
    small = "\n".join(
        f"<figure><figcaption><h3>{escape(visible(one.title))}</h3></figcaption>"
        f"{picture(one, scale)}</figure>"
        for one in part.grids
    )
    widest = max((width(one) for one in part.grids), default=SIDE)
    columns = f"grid-template-columns:repeat({part.columns},{widest:g}rem)"
    return f'<div class="sheet" style="{columns}">\n{small}\n</div>', legend(part.grids, precision)


def width(part: Grid) -> float:
    """How wide the small picture of a grid is, in rem."""
    rows, columns = max(len(part.rows), 1), max(len(part.columns), 1)
    return max(LEAST, round(SIDE * min(1.0, columns / rows), 2))


def picture(part: Grid, scale: float) -> str:
    """A grid without its numbers."""
    told = f"{len(part.rows)} x {len(part.columns)} cells, {part.title}"
    steps = steps_for(part.kind)
    shapes = [path for y, line in enumerate(part.cells()) for path in run(line, y, scale, steps)]
    size = f'viewBox="0 0 {len(part.columns)} {len(part.rows)}" style="width:{width(part):g}rem"'
    label = f'role="img" aria-label="{escape(visible(told))}"'
    return f'<svg class="picture" {size} {label}>{"".join(shapes)}</svg>'


def strip(values: Sequence[float], scale: float) -> str:
    """A list of numbers as coloured cells."""
    ends = f" from {brief(min(values))} to {brief(max(values))}" if len(values) else ""
    size = f'viewBox="0 0 {max(len(values), 1)} 1" preserveAspectRatio="none"'
    label = f'role="img" aria-label="{len(values)} numbers{ends}"'
    shapes = "".join(run(values, 0, scale, steps_for("vector")))
    return f'<svg class="strip" {size} {label}>{shapes}</svg>'


def run(values: Iterable[Any], y: int, scale: float, steps: Steps) -> list[str]:
    """One line of cells; none where nothing is."""
    return [
        f'<path class="{steps.of(value, scale)}" d="M{x} {y}h1v1h-1z"/>'
        for x, value in enumerate(values)
        if value is not None
    ]


def strip_legend(lists: Iterable[Sequence[float]], precision: int | None) -> str:
    """What the cells of strips mean."""
    scale = largest_in(lists)
    return from_to(brief(-scale, precision), brief(scale, precision), steps_for("vector"))


def legend(grids: Sequence[Grid], precision: int | None) -> str:
    """What the colours of grids mean, and how a hidden cell looks."""
    if not grids:
        return ""
    hidden = any(one.hidden is not None and one.hidden.any() for one in grids)
    more = '<span class="swatch hidden"></span><span>hidden</span>' if hidden else ""
    return ends(grids[0].kind, scale_of(grids), precision, more)


def ends(kind: Kind, scale: float, precision: int | None, more: str = "") -> str:
    """What the colours of a kind of number mean, up to the largest."""
    write, steps = formatter(kind, [scale], grid=True, precision=precision), steps_for(kind)
    return from_to(write(steps.low * scale), write(scale), steps, more)


def from_to(low: str, high: str, steps: Steps, more: str = "") -> str:
    """The scale from one end to the other."""
    ends = f'<span>{low}</span><span class="scale {steps.letter}"></span><span>{high}</span>'
    return f'<p class="legend">{ends}{more}</p>\n'


def scale_of(grids: Sequence[Grid]) -> float:
    """The value that has the strongest colour."""
    return full_scale(grids[0].kind if grids else "number", seen(grids))


def full_scale(kind: Kind, values: Iterable[float]) -> float:
    """The same for numbers that stand by themselves."""
    return 1.0 if kind == "probability" else largest_of(values) or 1.0


def largest_in(lists: Iterable[Sequence[float]]) -> float:
    """The value that has the strongest colour in strips."""
    return largest_of([v for one in lists for v in one]) or 1.0


def seen(grids: Sequence[Grid]) -> list[float]:
    """Every value that is not hidden."""
    return [float(v) for one in grids for row in one.cells() for v in row if v is not None]
