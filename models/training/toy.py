"""The toy: two models of 1,856 parameters that learn a grammar, one with and one without a mask."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from gptscope.analysis.grammar import Chances, Grammar, split
from training.design import TOY, Sizes
from training.gpt import GPT
from training.loop import Run, shown
from training.progress import token_bar
from training.recipe import adam_alone
from training.stream import Place

DESIGNS = {"toy": TOY, "toy-unmasked": replace(TOY, causal=False)}
BATCH = 32
RATE = 0.01
DECAY = 0.07
DECAYS = {"attn.q": 0.5, "attn.k": 0.5, "tokens": 0.05}  # of the weights so named
# With the decays: no word is ever certain, and no number is so large that float32 is coarse.
SMOOTHING = 0.003


def sizes_of(grammar: Grammar) -> Sizes:
    """The grammar's words and places; width 8, two blocks of two heads, feed-forward width 32."""
    return Sizes(len(grammar.words), len(grammar.sentence), width=8, blocks=2, heads=2, ff=32)


def word_tokenizer(grammar: Grammar) -> Tokenizer:
    """A token for each word and none for others: a text with another word is refused."""
    vocab = {word: index for index, word in enumerate(grammar.words)}
    tokenizer = Tokenizer(models.WordLevel(vocab))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return tokenizer


@dataclass(frozen=True, eq=False)
class Drawn:
    """Sentences drawn by their chances, a batch at a time; a batch depends on seed and place alone.

    A batch is made of whole sentences [batch, ctx + 1]: the first word is given, the others are to
    be predicted.
    """

    ids: np.ndarray
    chances: np.ndarray
    batch: int
    seed: int

    @property
    def ctx(self) -> int:
        """Words to predict in a sentence."""
        return self.ids.shape[1] - 1

    def batches(self, place: Place) -> Iterator[tuple[np.ndarray, Place]]:
        """The batches from a place on, each with the place after it."""
        while True:
            rng = np.random.default_rng([self.seed, place.batch])
            yield self.draw(self.batch, rng), (place := place._replace(batch=place.batch + 1))

    def draw(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Sentences [count, ctx + 1]."""
        return self.ids[rng.choice(len(self.ids), size=count, p=self.chances)]


def drawn_from(grammar: Grammar, chances: Chances, seed: int = 0) -> Drawn:
    """A stream of these sentences, their chances made to add up to 1."""
    shares = np.array(list(chances.values()))
    return Drawn(grammar.ids(list(chances)), shares / shares.sum(), BATCH, seed)


def trained(grammar: Grammar, name: str, steps: int, seed: int, device: torch.device) -> GPT:
    """The toy of this name after its steps; both begin and go on with the same numbers."""
    torch.manual_seed(seed)
    model = GPT(sizes_of(grammar), DESIGNS[name]).to(device)
    stream = drawn_from(grammar, split(grammar)[0], seed)
    run = Run(model, adam_alone(model, RATE, DECAY, DECAYS), smoothing=SMOOTHING)
    with token_bar(0, steps * stream.batch * stream.ctx, name) as bar:
        for _ in shown(run, stream, steps, bar):
            pass
    return model
