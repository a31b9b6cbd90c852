"""The mask experiment: what a model learns that may look at the word it is to predict."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from training.gpt import GPT
from training.grammar import Grammar, nats_knowing, nats_per_word, split
from training.toy import drawn_from

FRESH = 4000
FRESH_SEED = 2017


@dataclass(frozen=True)
class Loss:
    """Mean over sentences of their nats per word, and its standard error."""

    mean: float
    error: float

    def __str__(self) -> str:
        """The mean to four decimals, the error to two figures."""
        return f"{self.mean:.4f} +- {self.error:.2g} nats per word"


def fresh(grammar: Grammar, count: int = FRESH) -> np.ndarray:
    """Sentences [count, T + 1] drawn by their chances from those kept out of training."""
    return drawn_from(grammar, split(grammar)[1]).draw(count, np.random.default_rng(FRESH_SEED))


def over_sentences(nats: Tensor) -> Loss:
    """The loss from every word's nats [n, T]; words of one sentence are not independent."""
    each = nats.double().mean(dim=1)  # [n, T] -> [n]
    return Loss(each.mean().item(), each.std().item() / math.sqrt(len(each)))


def masked(model: GPT) -> GPT:
    """A model with the same weights and the mask put on."""
    other = GPT(model.sizes, replace(model.design, causal=True))
    other.load_state_dict(model.state_dict())
    return other.to(model.tokens.weight.device)


def nats_of(model: GPT, ids: Tensor, last: int = 0) -> Tensor:
    """-ln of the chance given to each next word, of the `last` words alone if asked for."""
    logits = model(ids[:, :-1])[:, -last:]  # [n, T + 1] -> [n, last, V]
    return functional.cross_entropy(logits.mT, ids[:, 1:][:, -last:], reduction="none")


@torch.no_grad()
def loss_on(model: GPT, sentences: np.ndarray) -> Loss:
    """The loss of all words, each sentence shown whole but for its last word."""
    return over_sentences(nats_of(model, on_device(model, sentences)))


@torch.no_grad()
def loss_when_writing(model: GPT, sentences: np.ndarray) -> Loss:
    """The loss of each word when only the words before it are there, as when text is written."""
    ids = on_device(model, sentences)
    ends = range(2, ids.shape[1] + 1)
    return over_sentences(torch.cat([nats_of(model, ids[:, :end], 1) for end in ends], dim=1))


def on_device(model: GPT, sentences: np.ndarray) -> Tensor:
    """Ids where the model is."""
    return torch.from_numpy(sentences).long().to(model.tokens.weight.device)


def report(grammar: Grammar, toy: GPT, unmasked: GPT) -> str:
    """The four numbers of the lesson, beside what they are to be compared with."""
    sentences = fresh(grammar)
    chances = grammar.sentences()
    last = nats_knowing(chances, lambda before: (len(before), before[-1]))
    return "\n".join(
        (
            f"{len(sentences):,} sentences drawn from those kept out of training",
            f"masked                        {loss_on(toy, sentences)}",
            f"  a perfect model: entropy    {nats_per_word(chances):.4f}",
            f"  from place and last word    {last:.4f}",
            f"unmasked, looking ahead       {loss_on(unmasked, sentences)}",
            f"unmasked, the mask put on     {loss_on(masked(unmasked), sentences)}",
            f"  no mask, later words absent {loss_when_writing(unmasked, sentences)}",
            f"spread evenly, ln {len(grammar.words)}          {math.log(len(grammar.words)):.4f}",
        )
    )
