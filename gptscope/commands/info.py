"""What a model is: sizes, how it is built, its parameters, memory, files and tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands import completion
from gptscope.commands.options import ModelName, Target, Verbose, with_options
from gptscope.commands.output import show
from gptscope.errors import ModelError
from gptscope.view import Column, Facts, View

if TYPE_CHECKING:
    from gptscope.model.load import Opened
    from gptscope.model.weights import Model

ModelArgument = Annotated[
    str | None,
    typer.Argument(
        help="A shipped name, a folder or a file; --model does the same.",
        show_default=False,
        autocompletion=completion.models,
    ),
]


@with_options
def command(
    target: Target,
    model: ModelArgument = None,
    named: ModelName = "tiny",
    verbose: Verbose = False,
) -> None:
    """What a model is: sizes, how it is built, parameters, memory, files.

    gptscope info tiny

    gptscope info toy --format json

    Any folder or file goes as well: gptscope info path/to/Llama-3.2-1B

    Only headers are read, so a large file takes no longer than a small one.

    Of a model whose family is not understood it shows what the files say; so
    it does of a broken one, and ends with status 1.
    """
    from gptscope.commands.session import timed
    from gptscope.model.load import open_model

    name = named if model is None else model
    try:
        with timed(verbose) as say:
            opened = open_model(name)
            say(f"opened {opened.model.name}")
    except ModelError as fault:
        from gptscope.commands.info_files import view_of_files

        made, understood = view_of_files(name, fault)
        show(made, target)
        if understood:
            raise
    else:
        show(view(opened), target)


def view(opened: Opened) -> View:
    """All that is known of a model that can be run."""
    from gptscope.commands.info_built import built, layers, rotary
    from gptscope.commands.info_files import files, kinds
    from gptscope.commands.info_sums import load_report, memory, parameters, tokenizer
    from gptscope.commands.session import about_model

    model, checkpoint = opened.model, opened.checkpoint
    parts = (
        sizes(model),
        built(model),
        layers(model),
        *rotary(model, checkpoint),
        parameters(model),
        kinds(checkpoint),
        memory(model, checkpoint),
        files(checkpoint),
        *tokenizer(model),
        *load_report(opened),
    )
    return View("info", parts, model=about_model(model))


def sizes(model: Model) -> Facts:
    """Every size, with its letter."""
    s = model.spec
    pairs = {
        "parameters": model.n_params,
        "d, width": s.d_model,
        "L, blocks": s.n_layers,
        "H, heads in each": s.n_heads,
        "G, key-value heads": s.n_kv_heads,
        "d_h, width of a head": s.d_head,
        "F, feed-forward width": s.d_ff,
        "V, vocabulary": s.n_vocab,
        "ctx, longest text": s.n_ctx,
    }
    if model.project_in is not None:
        pairs["d_e, width of the token table"] = model.token_table.shape[1]
    counts = tuple((Column(name, "count"), n) for name, n in pairs.items())
    return Facts(f"The model {model.name}", ((Column("family"), s.family), *counts))
