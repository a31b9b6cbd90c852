"""The texts that `steer` is given, and the value that it looks at."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gptscope.commands.options import Pass, Source
from gptscope.commands.reading import read_text
from gptscope.commands.session import fed
from gptscope.errors import UsageError, check_index

if TYPE_CHECKING:
    from gptscope.analysis.steer import Fed
    from gptscope.model.weights import Model

Texts = list[tuple[str, str]]  # where each stands, and what it says
IDS = re.compile(r"ids:[\d, ]+", re.ASCII)
HINT = '--from "Tom was sad" --to "Tom was happy"'


@dataclass(frozen=True)
class Sides:
    """What the command line has of either side."""

    starts: list[str]
    ends: list[str]
    start_files: list[Path]
    end_files: list[Path]


def read_sides(sides: Sides) -> tuple[Texts, Texts]:
    """The texts of both sides, those of files after those of the command line.

    Raises:
        UsageError: a side has none, or one is empty; both sides read standard input.
        GptscopeError: a file cannot be read.
    """
    if len([one for one in (*sides.start_files, *sides.end_files) if str(one) == "-"]) > 1:
        raise UsageError("standard input is read once: - can be only one of the files")
    found = []
    for option, texts, files in (
        ("--from", sides.starts, sides.start_files),
        ("--to", sides.ends, sides.end_files),
    ):
        side = [(f"{option} {i}", text) for i, text in enumerate(texts, 1)]
        side += [pair for file in files for pair in lines_of(file)]
        if not side:
            raise UsageError(f"steer needs a text on either side: there is no {option}", HINT)
        found.append(side)
    return found[0], found[1]


def lines_of(file: Path) -> Texts:
    """Every line of a file but empty ones.

    Raises:
        UsageError: there is none.
        GptscopeError: the file cannot be read.
    """
    lines = [line.removesuffix("\r") for line in read_text(Source(file=file)).split("\n")]
    found = [(f"{file}, line {i}", line) for i, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise UsageError(f"{file} holds no text: one is wanted in each line")
    return found


def feed(model: Model, source: Pass, text: str, where: str) -> Fed:
    """A text as ids; `ids:5,2,7` for a model without a tokenizer.

    Raises:
        UsageError: it is empty, no text, or too long.
    """
    from gptscope.analysis.steer import Fed
    from gptscope.engine.ids import checked_ids

    asked = replace(source, text=text)
    if model.tokenizer is None:
        if IDS.fullmatch(text) is None:
            raise UsageError(
                f"{where}: {model.no_tokenizer}, so it cannot read a text", "--from ids:643,414"
            )
        asked = replace(source, ids=text.removeprefix("ids:"))
    try:
        run = fed(model, asked, may_be_empty=False)
        checked_ids(model.spec, run.ids)
    except UsageError as fault:
        raise UsageError(f"{where}: {fault.message}", fault.hint) from None
    own = slice(run.prepended, len(run.ids) - run.appended)
    if not run.ids[own]:
        raise UsageError(f"{where}: no token of it is left")
    return Fed(run.ids, own)


def value_name(model: Model, layer: int | None, value: str) -> str:
    """The full name of a value [T, n]: `mlp_out` in a layer, the one in the middle if none is said.

    Raises:
        UsageError: there is no such value, or it is no list for each token.
    """
    from gptscope.engine.hook_points import BY_KEY, parse
    from gptscope.engine.lacking import why_lacking

    n, whole = model.spec.n_layers, value.startswith(("layers.", "blocks."))
    chosen = check_index("layer", (n - 1) // 2 if layer is None else layer, n)
    outside = value in BY_KEY and "{l}" not in BY_KEY[value].name
    address = parse(value if whole or outside else f"layers.{chosen}.{value}")
    if (whole or outside) and layer is not None:
        raise UsageError(f"--value {value} is a whole name: leave --layer out")
    if address.layer is not None:
        check_index("layer", address.layer, n)
    points = address.candidates or (address.point,)
    reasons = {point: why_lacking(point.key, model, address.layer) for point in points}
    point = next((one for one, reason in reasons.items() if reason is None), None)
    if point is None:
        raise UsageError(f"--value {value}: {next(iter(reasons.values()))}")
    if point.per_head and address.head is None:
        raise UsageError(f"--value {value} is of all heads: name one, as heads.0.{point.key}")
    if point.axes.split()[1:] in ([], ["S"]):
        raise UsageError(f"--value {value} is no list of one width for each token")
    head = None if address.head is None else check_index("head", address.head, model.spec.n_heads)
    return point.name.format(l=address.layer, h=head)
