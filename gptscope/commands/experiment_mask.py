"""What a model learns that may look at the word it is to predict."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands.options import Target, Verbose, with_options
from gptscope.commands.output import show
from gptscope.commands.progress import progress
from gptscope.commands.retraining import NAMES, check_free, folder_of
from gptscope.commands.session import opened, timed
from gptscope.errors import UsageError
from gptscope.view import Column, Facts, Note, Table, View

if TYPE_CHECKING:
    from gptscope.analysis.grammar import Grammar
    from gptscope.analysis.mask import Drawn, Measured
    from gptscope.model.weights import Model

STEPS = 4000
NEAR = 0.01  # nats per word: how close to the entropy the masked model should come
SEEN = 0.01  # a chance below is not shown

LOSSES = (
    Column("measured"),
    Column("nats per word", "length"),
    Column("standard error", "length"),
    Column("compared"),
)
CHANCES = (
    Column("next word"),
    Column("grammar", "probability"),
    Column("masked", "probability"),
    Column("unmasked, looking ahead", "probability"),
    Column("unmasked, mask put on", "probability"),
)


@with_options
def command(
    target: Target,
    sentences: Annotated[
        int, typer.Option(min=2, max=1_000_000, help="How many sentences to draw.")
    ] = 4000,
    seed: Annotated[int, typer.Option(min=0, help="Which sentences are drawn.")] = 2017,
    models: Annotated[
        Path | None,
        typer.Option(
            help="A folder with toy and toy-unmasked in it.", show_default="those that are shipped"
        ),
    ] = None,
    retrain: Annotated[
        bool, typer.Option("--retrain", help="Train both anew first; into --models if given.")
    ] = False,
    steps: Annotated[
        int | None,
        typer.Option(min=1, help="With --retrain: for each model.", show_default=str(STEPS)),
    ] = None,
    train_seed: Annotated[
        int | None,
        typer.Option(min=0, help="With --retrain: which weights and order.", show_default="0"),
    ] = None,
    verbose: Verbose = False,
) -> None:
    """What a model learns that may look at the word it is to predict.

    gptscope experiment mask

    gptscope experiment mask --sentences 500 --seed 3

    A grammar with known chances makes sentences of 18 words, out of twelve
    different ones. Two models learned them: one with the mask, which hides the words that are to be
    predicted; the other saw them. Both are measured on sentences that neither
    was trained on. --retrain trains both anew, which takes a minute and
    needs PyTorch.
    """
    if not retrain and (steps, train_seed) != (None, None):
        raise UsageError("--steps and --train-seed go with --retrain")
    if retrain and models is not None and not target.force:
        check_free(models)
    origin = "trained anew" if retrain else "shipped with gptscope"
    with folder_of(models, retrain, steps or STEPS, train_seed or 0) as folder:
        answer = view(folder, sentences, seed, str(models or origin), verbose=verbose)
    show(answer, target)


def view(folder: Path | None, count: int, seed: int, origin: str, *, verbose: bool = False) -> View:
    """The losses beside what they are to be compared with, why, and one place of a sentence."""
    from gptscope.analysis.grammar import nats_per_word, toy_grammar
    from gptscope.analysis.mask import check_fit, fresh, measure, place_and_last_word

    grammar = toy_grammar()
    toy, unmasked = (
        opened(name if folder is None else str(folder / name), verbose=verbose) for name in NAMES
    )
    check_fit(toy, unmasked, grammar)
    drawn, every = fresh(grammar, count, seed), grammar.sentences()
    with timed(verbose) as say, progress(4 * drawn.n_words) as tick:
        found = measure(toy, unmasked, drawn, tick)
        say(f"measured {len(drawn.counts):,} different sentences in four ways")
    entropy, last, n_words = nats_per_word(every), place_and_last_word(every), len(grammar.words)
    parts = (
        losses(found, entropy, last, n_words),
        Note(why(found, entropy, math.log(n_words))),
        chances(toy, unmasked, grammar),
        measured_on(drawn, seed, origin),
    )
    return View("experiment mask", parts)


def measured_on(drawn: Drawn, seed: int, origin: str) -> Facts:
    """Which models, and which sentences."""
    n_words = drawn.sentences.shape[1] - 1
    pairs = (
        (Column("models"), origin),
        (Column("sentences drawn", "count"), int(drawn.counts.sum())),
        (Column("different ones among them", "count"), len(drawn.counts)),
        (Column("seed of the draw", "id"), seed),
        (Column("kept out of training", "count"), drawn.kept_out),
        (Column("words predicted in each", "count"), n_words),
    )
    return Facts("What was measured on", pairs)


def losses(found: Measured, entropy: float, last: float, n_words: int) -> Table:
    """Every loss, and what it is in the terms of the lesson."""
    even, ahead, writing = math.log(n_words), found.ahead, found.writing
    near = said(abs(found.masked.mean - entropy) < NEAR, f"within {NEAR} of the entropy")
    low = said(ahead.mean < entropy / 2, "far below the entropy")
    high, alone = (
        said(one.mean > even, f"worse than ln {n_words}") for one in (writing, found.absent)
    )
    rows = (
        ("masked model", found.masked.mean, found.masked.error, near),
        ("entropy of the grammar", entropy, None, "the least that is possible"),
        ("place and last word alone", last, None, "the least without looking further back"),
        ("unmasked, looking ahead", ahead.mean, ahead.error, f"{low} (the lesson has 0.059)"),
        ("unmasked, mask put on", writing.mean, writing.error, f"{high} (the lesson has 3.088)"),
        ("unmasked, later words absent", found.absent.mean, found.absent.error, alone),
        (f"all {n_words} words alike, ln {n_words}", even, None, "knowing nothing"),
    )
    title = "Loss: -ln of the chance that was given to the word that came, mean per word"
    return Table(title, LOSSES, rows)


def said(true: bool, words: str) -> str:
    """The words, or that it is not so."""
    return words if true else f"not {words}"


def why(found: Measured, entropy: float, even: float) -> str:
    """What the losses of the model without a mask come from."""
    if not found.ahead.mean < entropy:
        return (
            "The model without a mask is not below the entropy: it has not learned yet to copy the "
            "word that it is to predict. More steps of training would teach it."
        )
    copied = (
        "While the model without a mask learned, it saw the word that it was to predict, and it "
        "learned to copy it. A loss below the entropy gives that away: no model can know the next "
        "word better than the grammar that draws it."
    )
    lost = " When it writes, that word is not there yet, and there is nothing to copy"
    worse = ": what it says is worse than to take all words as equally likely."
    return copied + lost + (worse if found.writing.mean > even else ".")


def chances(toy: Model, unmasked: Model, grammar: Grammar) -> Table:
    """What the grammar and each model say of the next word, at one place of one sentence."""
    from gptscope.analysis.mask import EXAMPLE, PLACE, example

    words = EXAMPLE.split()
    rows = [(word, *given) for word, given in example(toy, unmasked, grammar) if max(given) >= SEEN]
    before, after = " ".join(words[:PLACE]), words[PLACE]
    title = f"After '{before}' comes '{after}': the chance of each word ({SEEN:.0%} or more)"
    return Table(title, CHANCES, rows)
