"""Options that several commands share, each declared once.

A command takes a `Source`, a `Pass` or a `Target`; `with_options` puts their fields on the
command line.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.models import ArgumentInfo

from gptscope.commands import completion
from gptscope.render import RENDERERS

ModelName = Annotated[
    str,
    typer.Option(
        "--model",
        "-m",
        envvar="GPTSCOPE_MODEL",
        help="A shipped name, a folder or a file.",
        autocompletion=completion.models,
    ),
]


Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Say what was loaded, and how long it took.")
]
Dtype = Annotated[str, typer.Option(help="Compute in float32, or in float64 for a check.")]
Bos = Annotated[
    bool | None,
    typer.Option(
        "--bos/--no-bos",
        help="Begin with the BOS token, or without; else as the tokenizer's own rules do.",
        show_default=False,
    ),
]
EditTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--edit",
        "-e",
        help="Change a value while the model runs: layers.2.heads.1.out=zero; repeatable.",
        show_default=False,
        autocompletion=completion.edits,
    ),
]


@dataclass(frozen=True)
class Source:
    """What is fed to which model."""

    text: Annotated[str | None, typer.Argument(help="The text to look at.", show_default=False)] = (
        None
    )
    file: Annotated[
        Path | None, typer.Option(help="Read the text from a file; - is standard input.")
    ] = None
    ids: Annotated[str | None, typer.Option(help="Token ids in place of a text: 643,414,266.")] = (
        None
    )
    bos: Bos = None
    model: ModelName = "tiny"
    dtype: Dtype = "float32"
    verbose: Verbose = False


@dataclass(frozen=True)
class Pass(Source):
    """What is fed to which model, and what is changed while it runs."""

    edit: EditTexts = None


class Theme(StrEnum):
    """The background that colours must be read on."""

    auto = "auto"
    dark = "dark"
    light = "light"


@dataclass(frozen=True)
class Target:
    """How the answer is written, and where."""

    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help=f"{', '.join(RENDERERS)}.",
            show_default="table",
            autocompletion=lambda: list(RENDERERS),
        ),
    ] = None
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to a file; its ending is a format.")
    ] = None
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False
    no_color: Annotated[bool, typer.Option("--no-color", help="Numbers without colours.")] = False
    theme: Annotated[Theme, typer.Option(help="Colours for a dark or a light background.")] = (
        Theme.auto
    )
    ascii: Annotated[bool, typer.Option("--ascii", help="Draw with plain characters.")] = False
    width: Annotated[
        int | None, typer.Option(min=20, help="Columns, in place of the terminal's own.")
    ] = None
    precision: Annotated[
        int | None, typer.Option(min=1, max=17, help="Significant digits of numbers.")
    ] = None


Layer = Annotated[
    int,
    typer.Option(
        "--layer",
        "-l",
        help="Which block, from 0; -1 is the last.",
        autocompletion=completion.layers,
    ),
]
Head = Annotated[
    int | None,
    typer.Option(
        "--head",
        "-H",
        help="Which head, from 0; all if not given.",
        autocompletion=completion.heads,
    ),
]
TokenAt = Annotated[
    int | None, typer.Option("--token", "-t", "--at", help="Which token, from 0; -1 is the last.")
]
At = Annotated[
    int, typer.Option("--at", "--token", "-t", help="After which token: from 0, -1 is the last.")
]
Answer = Annotated[
    str | None,
    typer.Option(
        "--answer", "-a", help='A token that could come next, as " girl".', show_default=False
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        "--against",
        help="A second token: what is asked is the answer's logit less its logit.",
        show_default=False,
    ),
]
Top = Annotated[int, typer.Option("--top", min=1, help="How many to show.")]


GROUPS: tuple[type, ...] = (Source, Pass, Target)


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """The command with every parameter that is a dataclass of options spread into its fields."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if hint in GROUPS}
    own = [p.replace(annotation=hints[n]) for n, p in parameters(command) if n not in groups]
    spread = {name: spread_out(group) for name, group in groups.items()}

    @wraps(command)
    def run(**given: Any) -> None:  # noqa: ANN401
        for name, group in groups.items():
            given[name] = group(**{p.name: given.pop(p.name) for p in spread[name]})
        command(**given)

    shared = [p for group in spread.values() for p in group]
    arguments = [p for p in shared if is_argument(p)]
    options = [p for p in shared if not is_argument(p)]
    run.__signature__ = inspect.Signature([*arguments, *own, *options])  # type: ignore[attr-defined]
    return run


def is_argument(parameter: inspect.Parameter) -> bool:
    """Whether it is given by its place."""
    (declared,) = parameter.annotation.__metadata__
    return isinstance(declared, ArgumentInfo)


def parameters(command: Callable[..., None]) -> list[tuple[str, inspect.Parameter]]:
    """The command's own parameters, by keyword."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    found = inspect.signature(command).parameters.items()
    return [(name, p.replace(kind=keyword)) for name, p in found]


def spread_out(group: type) -> list[inspect.Parameter]:
    """A parameter for each field of a dataclass of options."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name]
        )
        for f in fields(group)
    ]
