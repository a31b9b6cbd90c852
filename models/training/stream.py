"""The endless stream of batches, a law of seed and place alone, so it can go on from anywhere."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple, Protocol

import numpy as np
from tokenizers import Tokenizer

from training.errors import InputError
from training.names import swap_names
from training.tokenizer import encode

PART = 8192
SWAPPED = 2 / 3


class Place(NamedTuple):
    """A place in the stream: the epoch, the part of it, and how many of its batches were seen."""

    epoch: int = 0
    part: int = 0
    batch: int = 0


class Batches(Protocol):
    """What the loop learns from: batches [batch, ctx + 1], the same again from the same place."""

    @property
    def batch(self) -> int:
        """Windows in a batch."""

    @property
    def ctx(self) -> int:
        """Tokens to predict in a window."""

    def batches(self, place: Place) -> Iterator[tuple[np.ndarray, Place]]:
        """The batches from a place on, each with the place after it."""


def cut(ids: np.ndarray, ctx: int) -> np.ndarray:
    """Row of ids -> windows [n, ctx + 1]; the last id of one is the first of the next."""
    count = max(0, len(ids) - 1) // ctx
    return ids[ctx * np.arange(count)[:, None] + np.arange(ctx + 1)]  # [ids] -> [n, ctx + 1]


@dataclass(frozen=True)
class Stream:
    """Stories, and how they become batches; an epoch is worked through in parts to save memory."""

    stories: list[str]
    tokenizer: Tokenizer
    ctx: int
    batch: int
    seed: int

    @property
    def parts(self) -> int:
        """How many parts an epoch has, each of at most 8,192 stories."""
        return ceil(len(self.stories) / PART)

    def batches(self, place: Place) -> Iterator[tuple[np.ndarray, Place]]:
        """The batches [batch, ctx + 1] from a place on, each with the place after it."""
        while True:
            windows = self.windows(place)
            for seen in range(place.batch, len(windows) // self.batch):
                chosen = windows[seen * self.batch : (seen + 1) * self.batch]
                yield chosen, place._replace(batch=seen + 1)
            place = self.next_part(place)

    def next_part(self, place: Place) -> Place:
        """The beginning of the part after this one, in the next epoch after the last part."""
        last = place.part + 1 == self.parts
        return Place(place.epoch + 1) if last else Place(place.epoch, place.part + 1)

    def windows(self, place: Place) -> np.ndarray:
        """The shuffled windows [n, ctx + 1] of a part, cut from a random offset on."""
        rng = np.random.default_rng([self.seed, place.epoch, place.part + 1])
        ids = encode(self.retold(place, rng), self.tokenizer)
        windows = rng.permutation(cut(ids[rng.integers(self.ctx) :], self.ctx))
        if len(windows) < self.batch:
            raise InputError(
                f"the text gives {len(windows)} windows of {self.ctx} tokens, "
                f"fewer than the {self.batch} of one batch"
            )
        return windows

    def retold(self, place: Place, rng: np.random.Generator) -> list[str]:
        """The stories of a part in the epoch's order, names swapped in two thirds of them."""
        order = np.random.default_rng([self.seed, place.epoch]).permutation(len(self.stories))
        part = np.array_split(order, self.parts)[place.part]
        stories = (self.stories[index] for index in part)
        return [swap_names(s, rng) if rng.random() < SWAPPED else s for s in stories]
