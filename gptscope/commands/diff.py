"""Two models: which tensors differ and how far, and where their passes part."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands import completion
from gptscope.commands.diff_view import pass_parts, tensor_parts
from gptscope.commands.notices import as_trained
from gptscope.commands.options import Target, Top, with_options
from gptscope.commands.output import show
from gptscope.commands.progress import progress
from gptscope.commands.session import Run, encoded, opened, parse_ids
from gptscope.errors import Status, UsageError
from gptscope.view import View

if TYPE_CHECKING:
    from gptscope.model.weights import Model

Compared = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A shipped name, a folder or a file.",
        show_default=False,
        autocompletion=completion.models,
    ),
]


@with_options
def command(
    target: Target,
    first: Compared,
    second: Compared,
    sentence: Annotated[
        str | None, typer.Option("--text", help="Run both on a text as well, value by value.")
    ] = None,
    ids: Annotated[str | None, typer.Option("--ids", help="The same with token ids.")] = None,
    top: Top = 20,
) -> None:
    """Which tensors of two models differ, and where their passes part.

    gptscope diff tiny tiny

    gptscope diff toy toy --text "the cat eats the fish and"

    After a training: gptscope diff models/before models/after --top 5

    Tensors are matched by the names that the family gives them, so that a
    prefix of an export changes nothing. How far: the root mean square of the
    difference over that of the first.

    Ends as diff does: with 0 where the two are the same, with 1 where not.
    """
    from gptscope.analysis import diff

    if sentence is not None and ids is not None:
        raise UsageError("give one of --text and --ids, not both")
    a, b = diff.sides(first, second)
    with progress(len(a.tables)) as tick:
        found = diff.tensor_differences(a, b, lambda: tick(1))
    settings = diff.other_settings(a, b)
    same = all(one.same for one in found) and a.tables.keys() == b.tables.keys() and not settings
    parts, about = tensor_parts((a, b), found, settings, top), {}
    if sentence is not None or ids is not None:
        models = opened(first, verbose=False), opened(second, verbose=False)
        run = fed(models[0], first, sentence, ids)
        check_same_text(models[1], run)
        made = diff.passes(*models, run.ids)
        parts += pass_parts(made, models, (first, second), top)
        about, same = run.about, same and all(one.agrees for one in made.values)
    show(View("diff", parts, **about), target)
    if not same:
        raise typer.Exit(Status.FAILED)


def fed(model: Model, name: str, text: str | None, ids: str | None) -> Run:
    """The ids that were given, or the text as the first model's tokenizer reads it."""
    if text is None:
        return Run(model, parse_ids(ids or "", model), None)
    return encoded(model, as_trained(text, model, name))


def check_same_text(other: Model, run: Run) -> None:
    """Both must read the text in the same way.

    Raises:
        UsageError: the second model's tokenizer makes other ids of it.
    """
    if run.text is None or other.tokenizer is None:
        return
    if tuple(other.tokenizer.encode(run.text)) != run.ids:
        raise UsageError(
            "the tokenizers of the two models make different ids of this text",
            hint="give ids, which both are then fed: --ids 643,414,266",
        )
