"""The answer of `heads`, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.analysis.heads.scores import SHARES
from gptscope.commands import heads_words as words
from gptscope.commands.heads_asked import (
    COPYING,
    FEW,
    Found,
    Weights,
    by_weights,
    draw_of,
    measured,
)
from gptscope.commands.heads_parts import (
    details,
    heat_map,
    in_order,
    of_overview,
    overview,
    strongest,
)
from gptscope.commands.heads_weights import copies, pairs
from gptscope.commands.session import about_model, opened, start
from gptscope.view import Note, Part, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gptscope.commands.heads import How
    from gptscope.commands.heads_asked import Asked, Score
    from gptscope.commands.options import Pass
    from gptscope.view import Kind


def view(source: Pass, asked: Asked, how: How) -> View:
    """The heads on a text and on random tokens."""
    run = start(source)
    asked.every(run.model.spec)  # before anything is measured
    draw = draw_of(run, how.seeds, how.random_tokens, bos=source.bos)
    raising = how.details or how.score == COPYING or asked.one
    found = measured(run, draw, composed=how.composition, raising=raising)
    parts = maps(found, asked, how.score) if how.score else lists(found, asked, how)
    if how.composition:
        parts += composed(found.weights, asked)
    return View("heads", tuple(parts), **run.about)


def view_of_weights(source: Pass, asked: Asked) -> View:
    """The heads by their weights alone."""
    model = opened(source.model, source.dtype, verbose=source.verbose)
    asked.every(model.spec)
    found = by_weights(model, composed=True, raising=True)
    heads, chosen = in_order(found, asked)
    parts = [*said(chosen), *copies(found, heads), *said(words.RULE_OF_COPIES)]
    parts += composed(found, asked)
    parts += said(*words.copying(found), words.left_out(model))
    return View("heads", tuple(parts), model=about_model(model))


def said(*texts: str) -> list[Part]:
    """A note for each text that says something."""
    return [Note(text) for text in texts if text]


def lists(found: Found, asked: Asked, how: How) -> list[Part]:
    """The heads that earn a name, and a row for each head."""
    parts: list[Part] = []
    if found.random is not None:
        table, n_named = strongest(found, asked)
        parts = [table, *said(words.more_named(n_named, asked.top or FEW), words.RULE)]
    heads, chosen = in_order(found, asked)
    parts += said(chosen)
    if how.details or asked.one:
        parts += [*details(found, heads), *copies(found.weights, heads)]
        notes = [words.MEANING]
    else:
        parts += overviews(found, heads)
        notes = [words.MEANING, words.ENTROPY, words.rows(found)]
    if found.random is None:
        notes.append(words.NO_ROOM if how.seeds else words.UNASKED)
    return parts + said(*notes, *words.copying(found.weights), words.left_out(found.model))


def overviews(found: Found, heads: Sequence[tuple[int, int]]) -> Iterable[Part]:
    """A grid of shares on random tokens, and one on the text."""
    if found.draw is not None:
        title = f"Shares on random tokens ({words.passes(found.draw)})"
        yield overview(title, of_overview(found, random=True), heads)
    yield overview("Shares on this text", of_overview(found, random=False), heads)


def maps(found: Found, asked: Asked, name: str) -> list[Part]:
    """One score of all heads as heat maps: on random tokens and on the text."""
    kind: Kind = "probability" if name in (*SHARES, COPYING) else "length"
    if name == COPYING:
        return [
            heat_map(titled("copying", found.best(name)), found.best(name), asked, found, kind),
            *said(words.tokens(found.weights), words.left_out(found.model)),
        ]
    parts: list[Part] = []
    if found.draw is not None:
        drawn = found.best(name)
        parts.append(heat_map(titled(f"{name}, random tokens", drawn), drawn, asked, found, kind))
        parts += said(words.random(found.draw, drawn))
    text = found.on_text(name)
    parts.append(heat_map(titled(f"{name}, this text", text), text, asked, found, kind))
    return parts + said(words.MEANING)


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
