"""Eleven cards: a text on its way through the model."""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptscope.commands.options import Pass, Target, with_options
from gptscope.commands.output import show
from gptscope.commands.reading import read_text
from gptscope.commands.session import Run, start
from gptscope.view import Column, Facts, Note, View

if TYPE_CHECKING:
    from gptscope.commands.tour.card import Card


EDITED = "A line of Python gives what its step gives; where --edit puts another value, it differs."
FITS, PIECE = 42, 24  # characters of a text in one line of Python: alone, or in several lines


class CardName(StrEnum):
    """The cards in the order of the pass; each lives in a file of its name."""

    inputs = "inputs"
    embedding = "embedding"
    position = "position"
    add_and_norm = "add-and-norm"
    masked_attention = "masked-attention"
    feed_forward = "feed-forward"
    repeated_blocks = "repeated-blocks"
    final_norm = "final-norm"
    linear = "linear"
    softmax = "softmax"
    output = "output"


@with_options
def command(
    source: Pass,
    target: Target,
    card: Annotated[
        CardName | None, typer.Option("--card", help="This card alone.", show_default="all")
    ] = None,
) -> None:
    """Eleven cards: a text on its way through the model, step by step.

    gptscope tour "Lily wanted to play with her"

    gptscope tour "Lily wanted to play with her" --card masked-attention

    gptscope tour --model toy "the cat eats the fish"

    Every card has the step in words, what is different in the paper of 2017
    ("Attention is all you need"), the shapes, the formula, a line of Python,
    and the numbers of this very text.
    """
    run = start(source)
    show(view(run, setup(source, run), card), target)


def view(run: Run, lines: str, chosen: CardName | None) -> View:
    """The sizes, the lines that go before each line of Python, and all cards, or one."""
    from gptscope.commands.tour.card import Walk

    p, parts = Walk(run), list[Any]()
    for number, name in enumerate(CardName, 1):
        if chosen in (None, name):
            parts += made(name, p).parts(number)
    first = Facts("Each line of Python runs after these", ((Column("first"), lines),))
    if run.edits:
        parts.append(Note(EDITED))
    return View("tour", (sizes(run), first, *parts), **run.about)


def made(name: CardName, p: Any) -> Card:  # noqa: ANN401
    """The card of this name."""
    module = import_module(f"gptscope.commands.tour.{name.name}")
    card: Card = module.card(p)
    return card


def sizes(run: Run) -> Facts:
    """The sizes of text and model, with the letters that the shapes use."""
    s = run.model.spec
    counts = (
        ("tokens (T)", len(run.ids)),
        ("numbers per token (d)", s.d_model),
        ("blocks (L)", s.n_layers),
        ("heads (H)", s.n_heads),
        *([("key-value heads (G)", s.n_kv_heads)] if s.n_kv_heads != s.n_heads else []),
        ("numbers per head (d_h)", s.d_head),
        ("feed-forward width (F)", s.d_ff),
        ("vocabulary (V)", s.n_vocab),
        ("longest text", s.n_ctx),
    )
    return Facts("Sizes", tuple((Column(name, "count"), n) for name, n in counts))


def setup(source: Pass, run: Run) -> str:
    """The lines of Python that load this model and run it on this text."""
    dtype = "" if source.dtype == "float32" else f", {source.dtype!r}"
    modules, ids = "gptscope", str(list(run.ids))
    modules += "" if run.model.spec.logit_cap is None else ", numpy"
    bos = "" if source.bos is None else f", bos={source.bos}"
    if source.file is not None and str(source.file) != "-" and read_text(source) == run.text:
        modules += ", pathlib"
        ids = f"model.tokenizer.encode(\n    pathlib.Path({str(source.file)!r})\n"
        ids += f"    .read_bytes().decode(){bos}\n)"
    elif run.text is not None:
        ids = f"model.tokenizer.encode({literal(run.text)}{bos})"
    edits = f", edits={source.edit!r}" if source.edit else ""
    return "\n".join(
        (
            f"import {modules}",
            f"model = gptscope.load({source.model!r}{dtype})",
            f"ids = {ids}",
            f"trace = gptscope.trace(model, ids{edits})",
        )
    )


def literal(text: str) -> str:
    """The text as Python has it; a long one in pieces, so that no line breaks within quotes."""
    if len(repr(text)) <= FITS:
        return repr(text)
    pieces = [text[i : i + PIECE] for i in range(0, len(text), PIECE)]
    return "\n" + "\n".join(f"    {piece!r}" for piece in pieces) + "\n"
