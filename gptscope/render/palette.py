"""Colours for numbers: one scale from zero up, one that spreads from zero to both sides.

Each is there for dark and for light backgrounds, and in three makes: any colour, the 256 and the 16
of a terminal. The strongest value is the farthest from the background. All stay apart for
colour-blind eyes: violet to yellow ("viridis", van der Walt and Smith 2015), yellow to blue
("YlGnBu", Brewer 2002), and blue against orange. Text on a colour is black or white, whichever
reads better.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

RGB = tuple[int, int, int]
Stops = tuple[tuple[float, RGB], ...]
Steps = tuple[int | None, ...]  # numbers of colours, each for an equal share; None is no colour

SEQUENTIAL: Stops = (
    (0.0, (68, 1, 84)),
    (0.25, (59, 82, 139)),
    (0.5, (33, 145, 140)),
    (0.75, (94, 201, 98)),
    (1.0, (253, 231, 37)),
)
DIVERGING: Stops = (
    (-1.0, (94, 190, 255)),
    (-0.5, (33, 102, 172)),
    (0.0, (38, 38, 46)),
    (0.5, (178, 88, 16)),
    (1.0, (255, 179, 71)),
)
SEQUENTIAL_ON_LIGHT: Stops = (
    (0.0, (255, 255, 217)),
    (0.25, (199, 233, 180)),
    (0.5, (65, 182, 196)),
    (0.75, (34, 94, 168)),
    (1.0, (8, 29, 88)),
)
DIVERGING_ON_LIGHT: Stops = (
    (-1.0, (5, 48, 97)),
    (-0.5, (67, 147, 195)),
    (0.0, (247, 247, 247)),
    (0.5, (224, 130, 20)),
    (1.0, (127, 59, 8)),
)
SPREAD = ("signed", "contribution", "vector")  # kinds of numbers on both sides of zero
UNSEEN = 0.005  # a share of the scale too small to colour
LEVELS = (0, 95, 135, 175, 215, 255)  # of the cube of 216 colours among the 256
DARK = (0, 1, 4)  # of the 16, those that need white text, whatever the theme


@dataclass(frozen=True)
class Scale:
    """The colours of one kind of value, for terminals of many colours, of 256 and of 16."""

    stops: Stops
    many: Steps
    few: Steps

    @property
    def low(self) -> float:
        """Where the scale begins: at 0, or at -1."""
        return self.stops[0][0]

    def step(self, share: float, steps: Steps) -> int | None:
        """The number of the colour of a share."""
        at = (share - self.low) / (1 - self.low)
        return steps[int(min(max(at, 0.0), 1.0) * len(steps) * (1 - 1e-9))]


SCALES: Mapping[tuple[str, bool], Scale] = {  # what it is for, whether the background is light
    ("sequential", False): Scale(
        SEQUENTIAL, (53, 54, 60, 30, 36, 77, 113, 149, 185, 227), (4, 6, 14, 11)
    ),
    ("diverging", False): Scale(
        DIVERGING, (75, 68, 25, 24, 18, 234, 52, 94, 130, 172, 215), (6, 4, None, 1, 11)
    ),
    ("sequential", True): Scale(
        SEQUENTIAL_ON_LIGHT, (230, 193, 151, 115, 79, 37, 31, 25, 18, 17), (14, 6, 4, 0)
    ),
    ("diverging", True): Scale(
        DIVERGING_ON_LIGHT,
        (17, 25, 67, 110, 153, 255, 223, 215, 172, 130, 94),
        (4, 14, None, 11, 1),
    ),
}


def scale_for(kind: str, *, light: bool) -> Scale:
    """The scale of a kind of value on a background."""
    spread = "diverging" if kind in SPREAD else "sequential"
    return SCALES[spread, light]


def colour(fraction: float, stops: Stops) -> RGB:
    """The colour of a value given as a fraction of the largest."""
    at = [stop for stop, _ in stops]
    fraction = min(max(fraction, at[0]), at[-1])
    i = min(bisect_right(at, fraction), len(at) - 1)
    (low, a), (high, b) = stops[i - 1], stops[i]
    share = (fraction - low) / (high - low)
    r, g, blue = (round(x + share * (y - x)) for x, y in zip(a, b, strict=True))
    return r, g, blue


def ink(background: RGB) -> RGB:
    """Black or white, whichever has more contrast (WCAG 2.2, relative luminance)."""
    r, g, b = (_linear(channel / 255) for channel in background)
    light = 0.2126 * r + 0.7152 * g + 0.0722 * b
    return (0, 0, 0) if (light + 0.05) ** 2 > 0.05 * 1.05 else (255, 255, 255)


def numbered(number: int) -> RGB:
    """What one of the upper 240 of the 256 colours looks like: a cube of 216, and 24 greys."""
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return grey, grey, grey
    red, green, blue = (number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6
    return LEVELS[red], LEVELS[green], LEVELS[blue]


def ink_on(number: int) -> int:
    """The number of black or white, whichever reads better on a colour of the 256 or of the 16."""
    if number < 16:
        return 15 if number in DARK else 0
    return 16 if ink(numbered(number)) == (0, 0, 0) else 231


def _linear(channel: float) -> float:
    """A channel of sRGB without its gamma."""
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)
