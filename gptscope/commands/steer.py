"""A direction from some texts to others, to add while the model runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from gptscope.commands import completion
from gptscope.commands.options import (
    Bos,
    Dtype,
    EditTexts,
    ModelName,
    Pass,
    Target,
    Verbose,
    with_options,
)
from gptscope.commands.output import refuse_existing, show
from gptscope.commands.session import asked_edits, opened, timed
from gptscope.commands.steer_file import beside, file_format, save
from gptscope.commands.steer_texts import Sides, read_sides, value_name
from gptscope.commands.steer_view import Made, view
from gptscope.errors import UsageError
from gptscope.model.files import counted


class Tokens(StrEnum):
    """Which tokens of a text give its activation."""

    last = "last"
    all = "all"


Texts = Annotated[
    list[str] | None,
    typer.Option("--from", help="A text to steer away from; repeatable.", show_default=False),
]
Files = Annotated[
    list[Path] | None,
    typer.Option(
        "--from-file",
        help="Such texts from a file, one in each line; - is standard input.",
        show_default=False,
    ),
]


@with_options
def command(
    target: Target,
    starts: Texts = None,
    ends: Annotated[
        list[str] | None,
        typer.Option("--to", help="A text to steer towards; repeatable.", show_default=False),
    ] = None,
    start_files: Files = None,
    end_files: Annotated[
        list[Path] | None,
        typer.Option(
            "--to-file",
            help="Texts to steer towards from a file, one in each line.",
            show_default=False,
        ),
    ] = None,
    layer: Annotated[
        int | None,
        typer.Option(
            "--layer",
            "-l",
            help="Which block, from 0; -1 is the last.",
            show_default="in the middle",
            autocompletion=completion.layers,
        ),
    ] = None,
    value: Annotated[
        str, typer.Option(help="Which value of it: output, mlp_out, heads.0.out, ...")
    ] = "output",
    tokens: Annotated[
        Tokens,
        typer.Option(help="A text's last token, or the mean over all of them; BOS never counts."),
    ] = Tokens.last,
    top: Annotated[
        int, typer.Option("--top", min=1, help="How many tokens either way, and how many texts.")
    ] = 10,
    model: ModelName = "tiny",
    dtype: Dtype = "float32",
    bos: Bos = None,
    edit: EditTexts = None,
    verbose: Verbose = False,
) -> None:
    """A direction from some texts to others, to add while the model runs.

    gptscope steer --from "Tom was happy" --to "Tom was sad"

    gptscope steer --from "Tom was happy" --to "Tom was sad" -o steer.npz

    Then: gptscope generate "She was" --edit 'layers.1.output=+steer.npz*0.5'

    Files: gptscope steer --from-file happy.txt --to-file sad.txt -o steer.npz

    The mean of the values at the texts --to less the mean at those --from. With
    -o FILE.npz or FILE.safetensors the direction goes to that file, and what is
    known of it is shown beside; --format csv -o FILE.csv writes what is shown.
    """
    fmt = file_format(target)
    if fmt and target.output:
        refuse_existing(target.output, force=target.force)
    source = Pass(model=model, dtype=dtype, bos=bos, edit=edit, verbose=verbose)
    sides = Sides(starts or [], ends or [], start_files or [], end_files or [])
    texts = read_sides(sides)
    loaded = opened(model, dtype, verbose=verbose)
    name = value_name(loaded, layer, value)
    made = measured(loaded, source, texts, (name, str(tokens)))
    if fmt:
        save(fmt, made, target)
    if not fmt or target.output:
        show(view(made, top, target.output if fmt else None), beside(target) if fmt else target)


def measured(model: Any, source: Pass, texts: Any, asked: tuple[str, str]) -> Made:  # noqa: ANN401
    """The activations of every text, with a bar.

    Raises:
        UsageError: a text cannot be read, or is longer than the model reads.
    """
    from gptscope.analysis.steer import activations
    from gptscope.commands.progress import progress
    from gptscope.commands.steer_texts import feed

    name, tokens = asked
    edits = asked_edits(model, source)
    fed = [[feed(model, source, text, where) for where, text in side] for side in texts]
    n = sum(map(len, fed))
    with timed(source.verbose) as say, progress(n, "texts") as tick:
        rows = [activations(model, side, name, tokens, edits or (), tick) for side in fed]
        say(f"ran {counted(n, 'text')}")
    if not all(map(finite, rows)):
        raise UsageError(f"{name} holds NaN or infinity on these texts: there is no direction")
    return Made(model, name, tokens, texts, rows, fed, edits.texts if edits else ())


def finite(rows: Any) -> bool:  # noqa: ANN401
    """Whether all of these are numbers."""
    import numpy as np

    return bool(np.isfinite(rows).all())
