"""A grammar of a few words as data: every sentence and its chance, and a perfect model's loss.

A perfect model gives each word the chance that the grammar gives it. Its loss is counted as every
model's: -ln of that chance, for all words but the first, which is given.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.errors import ModelError
from gptscope.model.shipped import shipped_folders

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

Sentence = tuple[str, ...]
Chances = dict[Sentence, float]


@dataclass(frozen=True)
class Grammar:
    """The words, what stands at each place of a sentence, the tables, the places that hold out."""

    words: list[str]
    sentence: list[Any]
    tables: dict[str, dict[str, Any]]
    held_out: list[int]

    def after(self, before: Sequence[str]) -> dict[str, float]:
        """The chance of every word that may come after these: a perfect model's answer."""
        place = self.sentence[len(before)]
        if isinstance(place, str):
            return {place: 1.0}
        table, given = self.tables[place["table"]], place.get("given", [])
        return table[" ".join(before[at] for at in given)] if given else table

    def sentences(self) -> Chances:
        """Every sentence with its chance, the product of its words' chances."""
        return dict(self._sentences)

    @cached_property
    def _sentences(self) -> Chances:
        grown: Chances = {(): 1.0}
        for _ in self.sentence:
            grown = {
                (*before, word): chance * share
                for before, chance in grown.items()
                for word, share in self.after(before).items()
            }
        return grown

    def sample(self, rng: np.random.Generator) -> Sentence:
        """One sentence, drawn word by word."""
        words: Sentence = ()
        while len(words) < len(self.sentence):
            choices = self.after(words)
            words += (str(rng.choice(list(choices), p=list(choices.values()))),)
        return words

    def is_held_out(self, sentence: Sentence) -> bool:
        """Whether SHA-256(the other words) modulo the number of ways to fill the places is its way.

        The places are filled evenly and freely, so that the held-out sentences keep the chances of
        all other words, and a perfect model's loss on them is the entropy, exactly.
        """
        way, ways = 0, 1
        for at in self.held_out:
            choices = list(self.after(sentence[:at]))
            way, ways = way * len(choices) + choices.index(sentence[at]), ways * len(choices)
        rest = " ".join(word for at, word in enumerate(sentence) if at not in self.held_out)
        return int(sha256(rest.encode()).hexdigest(), 16) % ways == way

    def ids(self, sentences: Sequence[Sentence]) -> NDArray[np.int64]:
        """The words' numbers [n, T + 1], in the order of `words`."""
        number = {word: index for index, word in enumerate(self.words)}
        return np.array([[number[word] for word in sentence] for sentence in sentences], np.int64)


def nats_per_word(chances: Mapping[Sentence, float]) -> float:
    """A perfect model's loss on these sentences: -sum(p ln p) / (T sum(p)), T words predicted.

    Over all sentences it is the conditional entropy of a word given those before it.
    """
    nats = math.fsum(-p * math.log(p) for p in chances.values())
    return nats / math.fsum(p * (len(sentence) - 1) for sentence, p in chances.items())


def nats_knowing(chances: Mapping[Sentence, float], seen: Callable[[Sentence], object]) -> float:
    """The least loss of a model that knows only seen(words before) of what came before."""
    both: dict[tuple[object, str], float] = defaultdict(float)
    known: dict[object, float] = defaultdict(float)
    for sentence, p in chances.items():
        for at in range(1, len(sentence)):
            before = seen(sentence[:at])
            both[before, sentence[at]] += p
            known[before] += p
    nats = math.fsum(-p * math.log(p / known[pair[0]]) for pair, p in both.items())
    return nats / math.fsum(known.values())


def split(grammar: Grammar) -> tuple[Chances, Chances]:
    """The sentences to learn from, and those held out."""
    sides: tuple[Chances, Chances] = ({}, {})
    for sentence, chance in grammar.sentences().items():
        sides[grammar.is_held_out(sentence)][sentence] = chance
    return sides


def toy_grammar() -> Grammar:
    """The grammar that the shipped toy learned."""
    return read_grammar(shipped_folders()["toy"] / "grammar.json")


def read_grammar(path: Path) -> Grammar:
    """The grammar of a JSON file.

    Raises:
        ModelError: it cannot be read, or is not a grammar.
    """
    try:
        data = json.loads(path.read_text("utf-8"))
        grammar = Grammar(data["words"], data["sentence"], data["tables"], data["held_out"])
        sentences = grammar.sentences()
        grammar.ids(list(sentences))
    except KeyError as error:
        raise ModelError(f"{path} does not say {error}") from error
    except (OSError, ValueError, TypeError, AttributeError, IndexError) as error:
        raise ModelError(f"cannot read {path}: {error}") from error
    if not math.isclose(total := math.fsum(sentences.values()), 1):
        raise ModelError(f"{path}: the chances of all sentences add up to {total:.6g}, not to 1")
    return grammar
