"""Markdown: tables as GitHub reads them, with the numbers of the terminal and no colours.

Nothing of a text may become a link, a picture, a mention, a sign of the page or HTML.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gptscope.glyphs import token_glyphs, visible
from gptscope.render.fed import changed, fed
from gptscope.render.numbers import formatter
from gptscope.view import Column, Facts, Grid, Kind, Note, Part, Passage, Sheet, Table, View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from gptscope.render.screen import Screen

# Signs of Markdown, and what GitHub finds when that is done: mentions, emoji, issues, addresses.
SIGNS = re.compile(
    r"(?P<mark>[\\`*\[\]~]|(?<![^\W_])_|_(?![^\W_]))|(?P<sign>[&<|$])"
    r"|(?P<found>@(?=\w)|:(?=[\w+-]+:|//)|#(?=\d)|(?<=www)\.)",
    re.IGNORECASE,
)
FIRST = re.compile(r"^([-+=#>]|\d+[.)])")  # begins a list, a heading, a quotation or a line
WORDS: tuple[Kind, ...] = ("text", "token")


def render(view: View, screen: Screen) -> str:
    """What was fed and changed, then every part."""
    blocks = [f"## gptscope {plain(view.command)}"]
    if view.input:
        blocks.append(note(fed(view.model or {}, view.input)))
    if view.edits:
        blocks.append(note(changed(view.edits)))
    blocks += [block for part in view.parts for block in of(part, screen.precision)]
    return "\n\n".join(blocks) + "\n"


def of(part: Part, precision: int | None) -> Iterator[str]:
    """The blocks of one part."""
    if isinstance(part, Note):
        yield note(part.text)
        return
    if part.title:
        yield f"### {plain(part.title)}"
    match part:
        case Table():
            yield table(part, precision)
        case Grid():
            yield grid(part, precision)
        case Sheet(_, grids):
            for one in grids:
                yield from (block.replace("### ", "#### ", 1) for block in of(one, precision))
        case Passage():
            yield passage(part, precision)
        case Facts(_, pairs):
            rows = [[plain(column.name), fact(column, value, precision)] for column, value in pairs]
            yield "\n".join([row(["", ""]), row(["---", "---"]), *map(row, rows)])


def table(part: Table, precision: int | None) -> str:
    """Words to the left, numbers to the right."""
    heads = [plain(column.name) for column in part.columns]
    sides = ["---" if column.kind in WORDS else "---:" for column in part.columns]
    columns = [
        written([line[i] for line in part.rows], column.kind, precision)
        for i, column in enumerate(part.columns)
    ]
    rows = zip(*columns, strict=True) if part.rows else ()
    return "\n".join([row(heads), row(sides), *map(row, rows)])


def grid(part: Grid, precision: int | None) -> str:
    """A table with a label before every row; a position before every token, a token in a cell."""
    values = part.cells()
    seen = [v for line in values for v in line if v is not None]
    write = formatter(part.kind, seen, grid=True, precision=precision)
    above = part.cell_tokens() or [[None] * len(part.columns)] * len(part.rows)
    rows = [
        [label, *(paired(*both, write) for both in zip(words, line, strict=True))]
        for label, words, line in zip(
            labels(part.rows, part.row_kind, part.at_rows), above, values, strict=True
        )
    ]
    sides = ["---", *["---:"] * len(part.columns)]
    return "\n".join(
        [
            row(["", *labels(part.columns, part.column_kind, part.at_columns)]),
            row(sides),
            *map(row, rows),
        ]
    )


def passage(part: Passage, precision: int | None) -> str:
    """Every token and its number; a new line after every line end."""
    seen = [value for value in part.values if value is not None]
    write, text = formatter(part.kind, seen, grid=True, precision=precision), ""
    for words, value in zip(part.tokens, part.values, strict=True):
        text += paired(words, value, write) + ("<br>" if "\n" in words else ", ")
    return begun(text.removesuffix(", ").removesuffix("<br>"))


def paired(words: str | None, value: Any, write: Callable[[Any], str]) -> str:  # noqa: ANN401
    """A token, if there is one, and a number."""
    return f"{token(words or '')} {write(value)}".strip()


def labels(texts: Sequence[str], kind: Kind, at: Sequence[int]) -> list[str]:
    """The labels of one side, of tokens with their positions."""
    if kind == "token":
        return [f"{i} {token(text)}" for i, text in zip(at, texts, strict=True)]
    return [plain(text) for text in texts]


def row(cells: Iterable[str]) -> str:
    """One line of a table."""
    return f"| {' | '.join(cells)} |"


def written(values: Sequence[Any], kind: Kind, precision: int | None) -> list[str]:
    """The cells of one column."""
    if kind == "token":
        return ["" if value is None else token(value) for value in values]
    if kind == "vector":
        write = formatter("signed", [v for one in values for v in one], precision=precision)
        return [" ".join(map(write, one)) for one in values]
    numbers = [v for v in values if not isinstance(v, str)]
    write = formatter(kind, numbers, precision=precision)
    nothing = "" if kind in WORDS else "-"
    return [nothing if v is None else plain(v) if isinstance(v, str) else write(v) for v in values]


def fact(column: Column, value: Any, precision: int | None) -> str:  # noqa: ANN401
    """One value, which may have several lines."""
    if column.kind == "text" and isinstance(value, str):
        return "<br>".join(map(indented, value.split("\n")))
    return written([value], column.kind, precision)[0] or "-"


def indented(line: str) -> str:
    """A line with the spaces that it begins with."""
    rest = line.lstrip(" ")
    return "&nbsp;" * (len(line) - len(rest)) + plain(rest)


def note(text: str) -> str:
    """A paragraph, even where it begins like something else."""
    return begun(plain(text.strip()))


def begun(text: str) -> str:
    """A paragraph whose first sign makes nothing else of it."""
    return FIRST.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", text)


def plain(text: str) -> str:
    """Text that Markdown leaves as it is; a line end is shown by its number."""
    return SIGNS.sub(harmless, visible(text))


def harmless(found: re.Match[str]) -> str:
    """A sign that is only itself."""
    match found.lastgroup:
        case "mark":
            return f"\\{found[0]}"
        case "sign":
            return f"&#{ord(found[0])};"
        case _:
            return f"<span>{found[0]}</span>"


def token(text: str) -> str:
    """A piece of text as code, where Markdown and GitHub read nothing; an empty one is nothing."""
    shown = token_glyphs(text)
    if re.search(r"[`|\\]", shown):  # in HTML's own code only what has a number is safe
        coded = re.sub(r"[^\w ]", lambda found: f"&#{ord(found[0])};", shown)
        return f"<code>{coded}</code>"
    return f"`{shown}`" if shown else ""
