"""HTML: one page by itself, for slides and lessons; readable on dark and on light, without scripts.

Every text is escaped, and characters that would move or vanish are shown by their numbers. The page
is pure ASCII, and well-formed as XML too.
"""

from __future__ import annotations

from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from gptscope.glyphs import token_glyphs, visible
from gptscope.render.as_html.bars import BARS, NO_BAR, bar_of
from gptscope.render.as_html.colours import rules
from gptscope.render.as_html.passages import passage
from gptscope.render.as_html.pictures import (
    grid,
    largest_in,
    sheet,
    strip,
    strip_legend,
)
from gptscope.render.fed import around, changed, summary
from gptscope.render.numbers import formatter
from gptscope.view import Column, Facts, Grid, Note, Part, Passage, Sheet, Table, View

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gptscope.render.screen import Screen

PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8" />
<meta name="viewport" content="width=device-width, initial-scale=1" />
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
NUMBERS = ("id", "count", "probability", "signed", "length", "number", "error", "contribution")


def render(view: View, screen: Screen) -> str:
    """The page; the same in every encoding."""
    style = files(__package__).joinpath("style.css").read_text("utf-8") + rules()
    model = (view.model or {}).get("name")
    title = " · ".join(visible(part) for part in (f"gptscope {view.command}", model) if part)
    parts = [of(part, f"part-{i}", screen.precision) for i, part in enumerate(view.parts, 1)]
    body = "\n".join([header(view), *parts])
    page = PAGE.format(title=escape(title), style=style, body=body)
    return page.encode("ascii", "xmlcharrefreplace").decode()


def header(view: View) -> str:
    """The command, the model, and every token that was fed with its id."""
    lines = ["<header>", f"<h1>gptscope {text(view.command)}</h1>"]
    if view.input:
        told = f"{summary(view.model or {}, view.input)} ({around(view.input)})"
        lines.append(f'<p class="fed">{escape(told)}</p>')
        pairs = zip(view.input["tokens"], view.input["ids"], strict=True)
        items = "".join(f"<li>{token(t)}<small>{i}</small></li>" for t, i in pairs)
        lines.append(f'<ol class="tokens" aria-label="Tokens and their ids">{items}</ol>')
    if view.edits:
        lines.append(f'<p class="changed">{escape(changed(view.edits))}</p>')
    return "\n".join([*lines, "</header>"])


def of(part: Part, name: str, precision: int | None) -> str:
    """One part, under its title if it has one; what is wide scrolls in its own box."""
    if isinstance(part, Note):
        return f'<p class="note">{text(part.text)}</p>'
    known = f'aria-labelledby="{name}"' if part.title else f'aria-label="{KINDS[type(part)]}"'
    title = f'<figcaption><h2 id="{name}">{text(part.title)}</h2></figcaption>'
    match part:
        case Table():
            inner, below = table(part, known, precision), legend_of(part, precision)
        case Grid():
            inner, below = grid(part, known, precision)
        case Sheet():
            inner, below = sheet(part, precision)
        case Passage():
            inner, below = passage(part, precision)
        case Facts():
            return f"<figure>\n{title if part.title else ''}\n{facts(part, precision)}\n</figure>"
    box = f'<div class="scroll" tabindex="0" role="region" {known}>\n{inner}\n</div>'
    return f"<figure>\n{title if part.title else ''}\n{box}\n{below}</figure>"


KINDS = {
    Table: "table",
    Grid: "grid",
    Sheet: "sheet of grids",
    Passage: "passage",
    Facts: "facts",
}


def table(part: Table, known: str, precision: int | None) -> str:
    """Words to the left, numbers to the right, some with a bar; a list as a strip."""
    classes = [class_of(column) for column in part.columns]
    heads = "".join(
        f'<th scope="col" class="{one}">{text(column.name)}</th>'
        for one, column in zip(classes, part.columns, strict=True)
    )
    writers = [
        writer(column, [row[i] for row in part.rows], precision)
        for i, column in enumerate(part.columns)
    ]
    rows = [
        "".join(
            f'<td class="{one}">{write(value)}</td>'
            for one, write, value in zip(classes, writers, row, strict=True)
        )
        for row in part.rows
    ]
    body = "\n".join(f"<tr>{row}</tr>" for row in rows)
    return f"<table {known}>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def class_of(column: Column) -> str:
    """How the cells of a column look."""
    if column.kind in BARS:
        return "number bars"
    return "number" if column.kind in NUMBERS else column.kind


def writer(column: Column, values: Sequence[Any], precision: int | None) -> Callable[[Any], str]:
    """The function that writes one cell of this column."""
    if column.kind == "vector":
        scale = largest_in(values)
        return lambda value: strip(value, scale)
    if column.kind == "token":
        return lambda value: "" if value is None else token(value)
    numbers = [v for v in values if not isinstance(v, str)]
    write = formatter(column.kind, numbers, precision=precision)
    bar = bar_of(column.kind, numbers)

    def cell(value: Any) -> str:  # noqa: ANN401
        if value is None:
            return "" if column.kind == "text" else f"-{NO_BAR if column.kind in BARS else ''}"
        if isinstance(value, str):
            return text(value)
        return escape(write(value)) + bar(value)

    return cell


def legend_of(part: Table, precision: int | None) -> str:
    """What the colours of strips mean, if there are any."""
    lists = [
        v
        for i, c in enumerate(part.columns)
        if c.kind == "vector"
        for v in (r[i] for r in part.rows)
    ]
    return strip_legend(lists, precision) if lists else ""


def facts(part: Facts, precision: int | None) -> str:
    """Names and values; words keep their lines; a part of a sum has nothing to be compared with."""
    lines = []
    for column, value in part.pairs:
        if column.kind == "contribution":
            column = Column(column.name, "signed")  # noqa: PLW2901
        shown = escape(visible(value, keep="\n")) if isinstance(value, str) else None
        if shown is None or column.kind == "token":
            shown = writer(column, [value], precision)(value) or "-"
        lines.append(f'<dt>{text(column.name)}</dt><dd class="{class_of(column)}">{shown}</dd>')
    return "<dl>\n" + "\n".join(lines) + "\n</dl>"


def text(words: str) -> str:
    """Text as HTML shows it, every character visible."""
    return escape(visible(words))


def token(words: str) -> str:
    """A piece of text with its spaces and line ends visible."""
    return f'<span class="token">{escape(token_glyphs(words))}</span>'
