"""Colours for numbers: one scale from zero up, one that spreads from zero to both sides.

Both stay apart for colour-blind eyes: violet to yellow (after "viridis", van der Walt and Smith
2015), and blue against orange. Text on a colour is black or white, whichever reads better.
"""

from __future__ import annotations

from bisect import bisect_right

RGB = tuple[int, int, int]
Stops = tuple[tuple[float, RGB], ...]

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
UNSEEN = 0.02  # a share of the scale too small to colour


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


def _linear(channel: float) -> float:
    """A channel of sRGB without its gamma."""
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)
