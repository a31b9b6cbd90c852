"""The mask experiment: what a model learns that may look at the word it is to predict.

n sentences, T words to predict in each: all but the first, which is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.grammar import nats_knowing, split
from gptscope.engine.forward import forward
from gptscope.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gptscope.analysis.grammar import Chances, Grammar
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]
Ids = NDArray[np.int64]

# One of those kept out of training. The word at PLACE depends on the animal, three words before.
EXAMPLE = "the cat eats the fish and the dog sees the bird but the bird eats the seed ."
PLACE = 4
AT_ONCE = 136  # words in one pass: fewer would wait for Python, more for pairs that are hidden


@dataclass(frozen=True)
class Loss:
    """Mean over sentences of their nats per word, and its standard error."""

    mean: float
    error: float


@dataclass(frozen=True, eq=False)
class Drawn:
    """The different sentences of a draw [n, T + 1], and how often each of them came [n]."""

    sentences: Ids
    counts: Ids
    kept_out: int  # how many different ones there are to draw from

    @property
    def n_words(self) -> int:
        """How many words are to be predicted in the different sentences, n T."""
        return int(self.sentences[:, 1:].size)


@dataclass(frozen=True)
class Measured:
    """The losses of both models, in nats per word."""

    masked: Loss  # the model trained with the mask
    ahead: Loss  # the other, shown the whole sentence
    writing: Loss  # the other with the mask put on
    absent: Loss  # the other without a mask, given only the words before each


def fresh(grammar: Grammar, count: int, seed: int) -> Drawn:
    """`count` sentences drawn by their chances from those kept out of training."""
    kept = split(grammar)[1]
    chances = np.array(list(kept.values()))
    rng = np.random.default_rng(seed)
    drawn = rng.choice(len(kept), size=count, p=chances / chances.sum())
    different, counts = np.unique(drawn, return_counts=True)
    return Drawn(grammar.ids(list(kept))[different], counts, len(kept))


def measure(toy: Model, unmasked: Model, drawn: Drawn, tick: Callable[[int], None]) -> Measured:
    """All losses; `tick` is told how many words are done, 4 n T in the end."""
    sentences, counts = drawn.sentences, drawn.counts
    return Measured(
        masked=loss(losses(toy, sentences, tick), counts),
        ahead=loss(losses(unmasked, sentences, tick), counts),
        writing=loss(losses(with_mask(unmasked), sentences, tick), counts),
        absent=loss(losses_alone(unmasked, sentences, tick), counts),
    )


def loss(nats: Array, counts: Ids) -> Loss:
    """The loss from every word's nats [n, T] and how often each sentence came [n].

    The words of one sentence are not independent, so the error is that over sentences.
    """
    each = nats.mean(axis=1, dtype=np.float64)  # [n, T] -> [n]
    total = int(counts.sum())
    mean = float(np.average(each, weights=counts))
    variance = float(counts @ (each - mean) ** 2) / (total - 1)
    return Loss(mean, math.sqrt(variance / total))


def with_mask(model: Model) -> Model:
    """The same weights with the mask put on."""
    return replace(model, spec=replace(model.spec, causal=True))


def losses(model: Model, sentences: Ids, tick: Callable[[int], None]) -> Array:
    """-ln of the chance of each next word, each sentence shown but for its last: [n, T]."""
    found = empty(sentences)
    for rows in batches(len(sentences), sentences.shape[1] - 1):
        nats = nats_of(model, sentences[rows, :-1])  # -> [rows, T, V]
        found[rows] = np.take_along_axis(nats, sentences[rows, 1:, None], axis=2)[..., 0]
        tick(found[rows].size)
    return found


def losses_alone(model: Model, sentences: Ids, tick: Callable[[int], None]) -> Array:
    """-ln of the chance of each next word when only the words before it are there: [n, T]."""
    found = empty(sentences)
    for at in range(sentences.shape[1] - 1):
        texts, which = np.unique(sentences[:, : at + 1], axis=0, return_inverse=True)
        packs = [texts[rows] for rows in batches(len(texts), at + 1)]
        last = np.concatenate([nats_of(model, pack)[:, -1] for pack in packs])
        found[:, at] = last[which.reshape(-1), sentences[:, at + 1]]
        tick(len(found))
    return found


def empty(sentences: Ids) -> Array:
    """Room for a number for each word that is to be predicted: [n, T + 1] -> [n, T]."""
    n, length = sentences.shape
    return np.empty((n, length - 1))


def batches(n: int, length: int) -> list[slice]:
    """Which of n texts of this length go through the model in one pass."""
    step = max(1, AT_ONCE // length)
    return [slice(start, start + step) for start in range(0, n, step)]


def nats_of(model: Model, texts: Ids) -> Array:
    """-ln of the chance of every word after every word: texts [n, T] -> [n, T, V].

    They go through as one long text in which every place counts from the start of its own text, and
    what stands in another text is hidden: the same as one by one, but for rounding.
    """
    n, length = texts.shape
    own = np.repeat(np.arange(n), length)
    others = own[:, None] != own  # [n T, n T]

    def apart(key: str, value: Array, layer: int | None = None) -> Array:  # noqa: ARG001
        return np.where(others, -np.inf, value) if key == "scaled_masked" else value

    table = model.position_table
    if table is not None:
        model = replace(model, position_table=np.tile(table[:length], (n, 1)))
    logits = forward(model, texts.ravel(), apart).astype(np.float64)
    logits -= logits.max(axis=-1, keepdims=True)
    nats: Array = np.log(np.exp(logits).sum(axis=-1, keepdims=True)) - logits
    return nats.reshape(n, length, -1)


def place_and_last_word(chances: Chances) -> float:
    """The least loss of a model that knows the place of a word and the one word before it."""
    return nats_knowing(chances, lambda before: (len(before), before[-1]))


def check_fit(toy: Model, unmasked: Model, grammar: Grammar) -> None:
    """Refuse models that are not what they are taken for, or that cannot read the sentences.

    Raises:
        ModelError: one has a mask or lacks it, knows other words, or has too few places.
    """
    words, longest = len(grammar.words), len(grammar.sentence) - 1
    for model, causal in ((toy, True), (unmasked, False)):
        if model.spec.causal != causal:
            has, other = ("no mask", "a mask") if causal else ("a mask", "none")
            raise ModelError(f"{model.name} has {has}; it should be a model with {other}")
        if model.spec.n_vocab != words or model.spec.n_ctx < longest:
            raise ModelError(
                f"{model.name} knows {model.spec.n_vocab} words and reads {model.spec.n_ctx}; "
                f"the sentences have {words} different words, and {longest} are read of each"
            )


def example(toy: Model, unmasked: Model, grammar: Grammar) -> list[tuple[str, list[float]]]:
    """Each word and its chance at `PLACE` of `EXAMPLE`, the likeliest by the grammar first.

    The chances are those of the grammar, of the masked model, of the other looking ahead, and of
    that with the mask put on.
    """
    words = tuple(EXAMPLE.split())
    texts, right = grammar.ids([words])[:, :-1], grammar.after(words[:PLACE])
    nats = [nats_of(m, texts)[0, PLACE - 1] for m in (toy, unmasked, with_mask(unmasked))]
    rows = [
        (word, [right.get(word, 0.0), *(float(np.exp(-each[i])) for each in nats)])
        for i, word in enumerate(grammar.words)
    ]
    return sorted(rows, key=lambda row: -row[1][0])
