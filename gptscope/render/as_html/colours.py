"""The colours of a page: fine steps of each scale as classes, for a light and for a dark page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gptscope.render.palette import RGB, SPREAD, Stops, colour, ink, scale_for

STEPS = 64  # between neighbours, no eye sees a difference
WRONG = "wrong"  # not a number, or infinite


@dataclass(frozen=True)
class Steps:
    """The classes of one scale: `s0` to `s64`, or `d0` to `d64`."""

    letter: str
    kind: str
    low: float  # where the scale begins: at 0, or at -1

    def of(self, value: float, scale: float) -> str:
        """The class of a value, where `scale` has the strongest colour."""
        if not math.isfinite(value):
            return WRONG
        share = (float(value) / scale - self.low) / (1 - self.low)
        return f"{self.letter}{round(STEPS * min(max(share, 0.0), 1.0))}"

    def rules(self, *, light: bool) -> str:
        """Background and ink of every step, and the whole scale for a legend."""
        stops = scale_for(self.kind, light=light).stops
        span = 1 - self.low
        shades = [colour(self.low + span * i / STEPS, stops) for i in range(STEPS + 1)]
        rules = [
            f".{self.letter}{i}{{--c:{code(rgb)};--i:{code(ink(rgb))}}}"
            for i, rgb in enumerate(shades)
        ]
        return "\n".join([*rules, f".scale.{self.letter}{{background:{gradient(stops)}}}"])


SEQUENTIAL, DIVERGING = Steps("s", "probability", 0.0), Steps("d", "signed", -1.0)


def steps_for(kind: str) -> Steps:
    """The steps for a kind of number."""
    return DIVERGING if kind in SPREAD else SEQUENTIAL


def rules() -> str:
    """The rules of both scales, for a page on light and on dark."""
    on_light = "\n".join(steps.rules(light=True) for steps in (SEQUENTIAL, DIVERGING))
    on_dark = "\n".join(steps.rules(light=False) for steps in (SEQUENTIAL, DIVERGING))
    return f"{on_light}\n@media (prefers-color-scheme: dark) {{\n{on_dark}\n}}\n"


def gradient(stops: Stops) -> str:
    """A scale from its left end to its right one."""
    first, last = stops[0][0], stops[-1][0]
    points = ",".join(f"{code(rgb)} {(at - first) / (last - first):.0%}" for at, rgb in stops)
    return f"linear-gradient(90deg,{points})"


def code(rgb: RGB) -> str:
    """A colour as HTML writes it."""
    return "#{:02x}{:02x}{:02x}".format(*rgb)
