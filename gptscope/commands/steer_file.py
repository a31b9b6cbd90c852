"""The file that `steer` writes, for `--edit NAME=+FILE`."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from gptscope import __version__
from gptscope.commands.output import chosen_format, emit, refuse_terminal, tell, write
from gptscope.errors import UsageError
from gptscope.glyphs import visible

if TYPE_CHECKING:
    from typing import BinaryIO

    from gptscope.commands.options import Target
    from gptscope.commands.steer_view import Made

SCHEMA = "gptscope/steer/1"
FILES = ("npz", "safetensors")


def file_format(target: Target) -> str | None:
    """`npz` or `safetensors` where the direction itself is to be written; None for a view alone.

    Raises:
        UsageError: the format is unknown, or a terminal cannot show it; or it is that of a file
            which would not hold the direction, and not named.
    """
    ending = target.output.suffix.lstrip(".").lower() if target.output else ""
    fmt = chosen_format(target, also=FILES)
    if ending in FILES and fmt not in FILES:
        return ending
    if fmt not in FILES:
        if target.output and target.format is None:
            raise UsageError(
                f"{target.output} would hold what is shown, and not the direction",
                f"-o steer.npz or steer.safetensors keeps it; --format {fmt} writes what is shown",
            )
        return None
    refuse_terminal(fmt, target)
    return fmt


def beside(target: Target) -> Target:
    """How the view is shown where the direction went to a file: as --format says."""
    fmt = None if target.format in FILES else target.format
    return replace(target, output=None, format=fmt)


def save(fmt: str, made: Made, target: Target) -> None:
    """The direction and what it was made of, in a file or in a pipe."""
    fill = fill_npz if fmt == "npz" else fill_safetensors
    if target.output is None:
        import io

        whole = io.BytesIO()
        fill(whole, made)
        emit(whole.getvalue())
        return
    write(target.output, lambda file: fill(file, made), force=target.force)
    tell(f"a direction of {len(made.direction):,} numbers -> {visible(str(target.output))}")


def fill_npz(file: BinaryIO, made: Made) -> None:
    """npz: `direction` [d]; `value`, `model` and `tokens` in words; the texts `from` and `to`."""
    from gptscope.render.as_npz import archive, column

    said = {"value": made.name, "model": made.model.name, "tokens": made.tokens}
    told = {name: column([text], "text")[0, ...] for name, text in said.items()}
    sides = zip(("from", "to"), made.texts, strict=True)
    texts = {name: column([text for _, text in side], "text") for name, side in sides}
    archive(file, {"direction": made.direction.astype(made.model.dtype), **told, **texts})


def fill_safetensors(file: BinaryIO, made: Made) -> None:
    """safetensors: `direction` [d]; all else stands in the metadata, texts as lists in JSON."""
    from gptscope.commands.trace import write_safetensors

    starts, ends = ([text for _, text in side] for side in made.texts)
    about = {
        "schema": SCHEMA,
        "gptscope": __version__,
        "value": made.name,
        "model": made.model.name,
        "tokens": made.tokens,
        "from": json.dumps(starts),
        "to": json.dumps(ends),
    }
    write_safetensors(file, {"direction": made.direction.astype(made.model.dtype)}, about)
