"""Given names swapped within a story, so that a model must look back at the name, not guess it."""

import re
from itertools import chain

import numpy as np

GIRLS = (
    "Lily Sue Mia Lucy Anna Amy Sally Sara Jane Sarah Daisy Lila Jill Molly Bella Mimi Emma Mary "
    "Jen Lisa Jenny Luna Ella Ann Emily Lulu Susie Polly Kim Betty Lola Tina Ellie Kate Millie "
    "Sophie Claire Milly Alice Ruby Julie Maria Lilly Zoe Mandy Maggie Annie Clara Chloe Abigail"
)
BOYS = (
    "Tim Tom Ben Sam Bob Timmy Jack John Billy Joe Tommy Leo Benny Jerry Bobby Sammy Jimmy Fred "
    "Jake Andy Jim Pete Peter Bill Toby Freddy Danny Alex Dave Charlie Joey Johnny Henry James "
    "Mike Tony Harry Frank George Paul David Luke Oliver Dan Steve Adam Thomas Michael Nick Brian"
)
PETS = "Max Spot Kitty Fluffy Buddy Whiskers Rex Mittens Snowy Rover"
# Each in the order of how often TinyStories uses the name.
KINDS = [names.split() for names in (GIRLS, BOYS, PETS)]

NAME = re.compile(rf"\b(?:{'|'.join(chain(*KINDS))})\b")


def weights(count: int) -> np.ndarray:
    """Chances proportional to 1 / (rank + 2), ranks from 0, so that common names stay common."""
    chances = 1 / (np.arange(count) + 2)
    return chances / chances.sum()


def draw_names(names: list[str], kind: list[str], rng: np.random.Generator) -> dict[str, str]:
    """A different new name of the kind for each of the names (by chance it may be its own)."""
    drawn = rng.choice(len(kind), size=len(names), replace=False, p=weights(len(kind)))
    return {name: kind[rank] for name, rank in zip(names, drawn, strict=True)}


def swap_names(story: str, rng: np.random.Generator) -> str:
    """The story with every given name replaced, everywhere alike, by another of the same kind."""
    found = dict.fromkeys(NAME.findall(story))
    new: dict[str, str] = {}
    for kind in KINDS:
        new |= draw_names([name for name in found if name in kind], kind, rng)
    return NAME.sub(lambda match: new[match[0]], story)
