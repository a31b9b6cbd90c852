"""The models that come with gptscope."""

from __future__ import annotations

from gptscope.commands.options import Target, with_options
from gptscope.commands.output import show
from gptscope.commands.session import about_model
from gptscope.view import Column, Note, Table, View

HEADS = {
    "name": Column("name"),
    "family": Column("family"),
    "n_layers": Column("blocks", "count"),
    "n_heads": Column("heads", "count"),
    "d_model": Column("width", "count"),
    "d_ff": Column("feed-forward", "count"),
    "n_vocab": Column("vocabulary", "count"),
    "n_ctx": Column("longest text", "count"),
    "n_params": Column("parameters", "count"),
}


@with_options
def command(target: Target) -> None:
    """The models that come with gptscope.

    gptscope models

    gptscope models --format json
    """
    show(view(), target)


def view() -> View:
    """A row for each model."""
    from gptscope.model.load import load
    from gptscope.model.shipped import shipped_folders

    about = [about_model(load(name)) for name in shipped_folders()]
    rows = [tuple(model[key] for key in HEADS) for model in about]
    words = "Name one with --model; a folder, a file or org/name works as well: docs/models.md"
    return View("models", (Table("", tuple(HEADS.values()), rows), Note(words)))
