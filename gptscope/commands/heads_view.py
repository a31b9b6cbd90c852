"""The answer of `heads`, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.analysis.heads.scores import SHARES
from gptscope.commands import heads_words as words
from gptscope.commands.heads_asked import COPYING, EIGEN, FEW, SHOWN, draw_of
from gptscope.commands.heads_choice import in_order
from gptscope.commands.heads_found import by_weights, measured
from gptscope.commands.heads_parts import (
    details,
    heat_map,
    of_overview,
    overview,
    strongest,
    verdict,
)
from gptscope.commands.heads_weights import copies, pairs
from gptscope.commands.session import Run, about_model, asked_edits, opened, start
from gptscope.errors import UsageError
from gptscope.model.shipped import EXAMPLES
from gptscope.view import Note, Part, View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gptscope.commands.heads import How
    from gptscope.commands.heads_asked import Asked, Draw, Score
    from gptscope.commands.heads_choice import Heads
    from gptscope.commands.heads_found import Found, Weights
    from gptscope.commands.options import Pass
    from gptscope.view import Kind


def view(source: Pass, asked: Asked, how: How) -> View:
    """The heads on a text and on random tokens.

    Raises:
        UsageError: there is neither.
    """
    run = begun(source)
    asked.every(run.model.spec)  # before anything is measured
    draw = draw_of(run, how.n_seeds, how.random_tokens, bos=source.bos)
    check_input(run, draw, how)
    rated = how.details or asked.one or COPYING in (how.score, asked.sort)
    raising = asked.layers(run.model.spec) if rated else ()
    found = measured(run, draw, composed=how.composition, raising=raising)
    parts = [] if run.ids else said(words.NO_TEXT)
    parts += maps(found, asked, how.score) if how.score else lists(found, asked, how)
    if how.composition:
        parts += composed(found.weights, asked)
    about = run.about if run.ids else run.about | {"input": None}
    return View("heads", tuple(parts), **about)


def begun(source: Pass) -> Run:
    """The model and the text; no text where none is given and the model has no example."""
    given = (source.text, source.file, source.ids)
    if source.model in EXAMPLES or any(one is not None for one in given):
        return start(source)
    model = opened(source.model, source.dtype, verbose=source.verbose)
    return Run(model, (), None, verbose=source.verbose, edits=asked_edits(model, source))


def check_input(run: Run, draw: Draw | None, how: How) -> None:
    """Refuse to look at nothing.

    Raises:
        UsageError: there is no text, and no random tokens either.
    """
    if run.ids or draw is not None:
        return
    n = run.model.spec.n_ctx
    why = f"a context of {n} has no room for random" if how.n_seeds else "--seeds 0 reads no random"
    given = 'a text in quotes: "Lily wanted to play"' if run.model.tokenizer else "ids: --ids 1,2,1"
    raise UsageError(f"there is no text, and {why} tokens", hint=f"give {given}")


def view_of_weights(source: Pass, asked: Asked) -> View:
    """The heads by their weights alone."""
    model = opened(source.model, source.dtype, verbose=source.verbose)
    asked.every(model.spec)
    found = by_weights(model, composed=True, raising=asked.layers(model.spec))
    heads, chosen = in_order(found, asked)
    parts = [*said(chosen), *copies(found, heads), *said(words.RULE_OF_COPIES)]
    parts += composed(found, asked)
    parts += said(*words.of_weights(found, both=True), words.left_out(model))
    return View("heads", tuple(parts), model=about_model(model))


def said(*texts: str) -> list[Part]:
    """A note for each text that says something."""
    return [Note(text) for text in texts if text]


def lists(found: Found, asked: Asked, how: How) -> list[Part]:
    """The heads that earn a name, and a row for each head; of one head alone, every number."""
    parts: list[Part] = []
    if not asked.one and found.random is not None:
        table, n_named = strongest(found, asked)
        parts = [table, *said(words.more_named(n_named, asked.top or FEW), words.RULE)]
    elif asked.one:
        parts = [verdict(found, asked.every(found.model.spec)[0]), *said(words.VERDICT)]
    heads, chosen = in_order(found, asked)
    parts += said(chosen)
    full = how.details or asked.one
    if full:
        parts += [*details(found, heads), *copies(found.weights, heads)]
        notes = [words.MEANING]
    else:
        parts += overviews(found, heads, asked)
        notes = [words.MEANING, words.ENTROPY, words.rows(found)]
    if found.random is None:
        notes.append(words.NO_ROOM if how.n_seeds else words.UNASKED)
    notes += words.of_weights(found.weights, both=full)
    return parts + said(*notes, words.left_out(found.model))


def overviews(found: Found, heads: Heads, asked: Asked) -> Iterable[Part]:
    """A grid of shares on random tokens and one on the text; of many heads, the first alone."""
    many = asked.layer is None and len(asked.every(found.model.spec)) > SHOWN
    if found.draw is not None:
        title = f"Shares on random tokens ({words.passes(found.draw)})"
        yield overview(title, of_overview(found, random=True), heads, "random_tokens")
    if not found.ids or (many and found.draw is not None):
        return
    scores, title = of_overview(found, random=False), "Shares on this text"
    if all(is_empty(scores[name], heads) for name in (*SHARES, "entropy")):
        yield Note(words.nothing(found, *SHARES))
        scores = {name: scores[name] for name in scores if name == found.weights.name}
        title = "By the weights"
    if scores:
        yield overview(title, scores, heads, "this_text")


def is_empty(score: Score, heads: Heads) -> bool:
    """Whether there was nothing to measure in any of these heads' layers."""
    return score.rows is not None and not any(score.rows[layer] for layer, _ in heads)


def maps(found: Found, asked: Asked, name: str) -> list[Part]:
    """One score of all heads as heat maps: on random tokens and on the text."""
    kind: Kind = "probability" if name in SHARES else "length"
    spec, parts = found.model.spec, list[Part]()
    if name in (COPYING, EIGEN):
        return map_of_weights(found.weights, asked, name)
    every = asked.every(spec)
    if found.draw is not None:
        drawn, title = found.best(name), f"{name}, random tokens"
        if is_empty(drawn, every):
            parts += said(f"{words.NOTHING} random tokens")
        else:
            how = kind, "random_tokens"
            parts.append(heat_map(titled(title, drawn), drawn, asked, spec, how))
            parts += said(words.random(found.draw, drawn))
    text = found.on_text(name)
    if found.ids and is_empty(text, every):
        parts += said(words.nothing(found, name))
    elif found.ids:
        title = titled(f"{name}, this text", text)
        parts.append(heat_map(title, text, asked, spec, (kind, "this_text")))
    return parts + said(words.MEANING)


def map_of_weights(weights: Weights, asked: Asked, name: str) -> list[Part]:
    """A score of the weights as a heat map."""
    score = weights.best(name)
    kind: Kind = "signed" if name == EIGEN else "probability"
    text = words.eigen(weights) if name == EIGEN else words.copying(weights)
    grid = heat_map(titled(name, score), score, asked, weights.model.spec, (kind, name))
    return [grid, *said(text, words.left_out(weights.model))]


def titled(what: str, score: Score) -> str:
    """A title with what chance gives, in all layers."""
    levels = dict.fromkeys(f"{one:.3g}" for one in sorted(score.chance[score.chance > 0]))
    if not levels:
        return what
    low, high = next(iter(levels)), list(levels)[-1]
    return f"{what} (chance {low}{'' if low == high else f' to {high}'})"


def composed(weights: Weights, asked: Asked) -> list[Part]:
    """The strongest compositions, where there are two layers."""
    table = pairs(weights, asked)
    return [table, *said(words.PAIRS)] if table else said("No head has an earlier one to read.")
