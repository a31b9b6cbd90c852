"""Rotary positions: how fast each pair turns, and what stretches a model beyond its first length.

Su et al. 2021, "RoFormer", section 3.2.2, for the speeds. Configs say what changes them in
`rope_parameters` or, older, in `rope_scaling` beside `rope_theta`; the words are Hugging Face's.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gptscope.errors import ModelError
from gptscope.model.positions import BASE, turning_speeds
from gptscope.model.weights import Turning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gptscope.model.config import Config

PLACES = ("rope_parameters", "rope_scaling")
PARTIAL = "partial_rotary_factor"
FIRST_LENGTH = "original_max_position_embeddings"


@dataclass(frozen=True)
class Rope:
    """What every rule needs: the settings, the numbers that turn, the base, the longest text."""

    config: Config
    settings: Config
    dims: int  # 2 P
    base: float
    n_ctx: int  # as the config says it

    @property
    def speeds(self) -> tuple[float, ...]:
        """Without any stretching."""
        return turning_speeds(self.dims, self.base)

    @property
    def factor(self) -> float:
        """How many times longer texts become."""
        return self.settings.number("factor")

    @property
    def first_length(self) -> int:
        """The longest text of the first training."""
        inside = self.settings.whole(FIRST_LENGTH, default=self.n_ctx)
        return self.config.whole(FIRST_LENGTH, default=inside)  # where Phi-3 has it


def turning(
    config: Config,
    d_head: int,
    *,
    base: float = BASE,
    layers: str | None = None,
    share: float | None = None,
) -> Turning:
    """How heads of a model turn; `layers` names a kind of layers that has settings of its own.

    `share` is how much of a head turns where the config does not say it; None: all of it, always.

    Raises:
        ModelError: the settings name a rule that is not known, or lack what it needs.
    """
    settings = rope_settings(config, layers)
    base = either(settings, config, "rope_theta", base)
    part = either(settings, config, PARTIAL, share) if share else whole(settings, config)
    dims = int(d_head * part)
    if dims % 2 or not 0 < dims <= d_head:
        raise ModelError(f"{config.source}: {dims} of {d_head} numbers of a head cannot turn")
    return by_pair(config, ruled(Rope(config, settings, dims, base, said_length(config))))


def ruled(rope: Rope) -> Turning:
    """The turning by the rule that the settings name."""
    source, kind = rope.settings.source, rope.settings.word("rope_type", "type", default="default")
    if kind not in RULES:
        known = ", ".join(RULES)
        raise ModelError(f"{source}: the rope_type {kind!r} is not one of: {known}")
    try:
        return RULES[kind](rope)
    except ZeroDivisionError:
        why = f"with these numbers the rope_type {kind!r} divides by 0"
        raise ModelError(f"{source}: {why}") from None


def by_pair(config: Config, turning: Turning) -> Turning:
    """Each speed over a number of its own, where there is a list of them, as GGUF keeps it."""
    speeds = turning.speeds
    if not config.has("rope_factors"):
        return turning
    factors = config.numbers("rope_factors", len(speeds))
    return replace(turning, speeds=tuple(s / f for s, f in zip(speeds, factors, strict=True)))


def either(settings: Config, config: Config, key: str, default: float) -> float:
    """A number that the settings say or, older, the config itself."""
    return settings.number(key, default=config.number(key, default=default))


def whole(settings: Config, config: Config) -> float:
    """All of a head; a config that says otherwise is not understood, and refused in the end."""
    for said in (settings, config):
        if said.says(PARTIAL, 1):
            said.ask(PARTIAL)
    return 1.0


def rope_settings(config: Config, layers: str | None) -> Config:
    """The settings of a model's rotary positions, or those of one kind of layers."""
    found = next(
        (config.section(key) for key in PLACES if config.has(key)), config.section("rope_scaling")
    )
    if layers is not None and found.has(layers):
        return found.section(layers)
    return found


def default(rope: Rope) -> Turning:
    """The speeds as they are."""
    return Turning(rope.speeds)


def linear(rope: Rope) -> Turning:
    """All speeds over the factor. Chen et al. 2023, "Position Interpolation", section 2.3."""
    return Turning(tuple(speed / rope.factor for speed in rope.speeds))


def dynamic(rope: Rope) -> Turning:
    """A larger base, the longer the text is beyond the first length n.

    base (factor * length / n - (factor - 1))^(D / (D - 2)) with D = 2 P: Peng et al. 2023, "YaRN",
    section 3.3, after bloc97 and emozilla.
    """
    factor, n, dims = rope.factor, rope.n_ctx, rope.dims
    power = dims / (dims - 2)

    def stretched(length: int) -> tuple[float, ...]:
        grown = factor * max(length, n) / n - (factor - 1)
        return turning_speeds(dims, rope.base * grown**power)

    return Turning(rope.speeds, stretched=stretched)


def yarn(rope: Rope) -> Turning:
    """Slow pairs over the factor, fast ones as they are, a ramp between; scores sharpened.

    Peng et al. 2023, "YaRN", sections 3.2 and 3.4.
    """
    said, n = rope.settings, rope.first_length
    said.ask("finetuned")  # as YaRN's own models say, whose factor does not grow with the text
    factor = said.number("factor", default=rope.n_ctx / n)
    ends = [said.number(key, default=d) for key, d in (("beta_fast", 32.0), ("beta_slow", 1.0))]
    low, high = (
        rope.dims * math.log(n / (turns * 2 * math.pi)) / (2 * math.log(rope.base))
        for turns in ends
    )
    if said.flag("truncate", default=True):
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, rope.dims - 1)
    width = high - low if high != low else 0.001
    shares = [min(max((i - low) / width, 0), 1) for i in range(rope.dims // 2)]
    speeds = (
        speed / factor * share + speed * (1 - share)
        for speed, share in zip(rope.speeds, shares, strict=True)
    )
    return Turning(tuple(speeds), said.number("attention_factor", default=sharper(said, factor)))


def sharper(said: Config, factor: float) -> float:
    """What YaRN multiplies cos and sin by, where the config does not say it."""

    def grown(scale: float) -> float:
        return 1.0 if factor <= 1 else 0.1 * scale * math.log(factor) + 1.0

    if said.has("mscale") and said.has("mscale_all_dim"):
        return grown(said.number("mscale")) / grown(said.number("mscale_all_dim"))
    said.ask("mscale", "mscale_all_dim")
    return grown(1.0)


def longrope(rope: Rope) -> Turning:
    """Each pair's speed over a number of its own: one list for short texts, one for long ones.

    Ding et al. 2024, "LongRoPE", section 3.
    """
    said, n = rope.settings, rope.first_length
    short, long = (
        tuple(s / f for s, f in zip(rope.speeds, said.numbers(key, rope.dims // 2), strict=True))
        for key in ("short_factor", "long_factor")
    )
    factor = said.number("factor", default=rope.n_ctx / n)
    usual = 1.0 if factor <= 1 else math.sqrt(1 + math.log(factor) / math.log(n))
    return Turning(
        short,
        said.number("attention_factor", default=usual),
        lambda length: long if length > n else short,
    )


def llama3(rope: Rope) -> Turning:
    """Slow pairs over the factor, fast ones as they are, a smooth passage between.

    Grattafiori et al. 2024, "The Llama 3 Herd of Models", section 3.4.2; Llama 3.1's own code.
    """
    said, n, factor = rope.settings, rope.first_length, rope.factor
    low, high = said.number("low_freq_factor"), said.number("high_freq_factor")

    def slower(speed: float) -> float:
        turns = n * speed / (2 * math.pi)  # in a text of the first length
        if turns > high:
            return speed
        if turns < low:
            return speed / factor
        share = (turns - low) / (high - low)
        return (1 - share) * speed / factor + share * speed

    return Turning(tuple(map(slower, rope.speeds)))


# The names are those of `rope_type` in published configs.
RULES: Mapping[str, Callable[[Rope], Turning]] = {
    "default": default,
    "linear": linear,
    "dynamic": dynamic,
    "yarn": yarn,
    "longrope": longrope,
    "su": longrope,  # as the first Phi-3 called it
    "llama3": llama3,
}


def said_length(config: Config) -> int:
    """The longest text, as the config says it."""
    return config.whole("max_position_embeddings", default=2048)


def longest(config: Config) -> int:
    """The longest text of a model: some rules stretch what the config says."""
    n_ctx = said_length(config)
    settings = rope_settings(config, None)
    kind = settings.word("rope_type", "type", default="default")
    if kind in {"dynamic", "yarn"} and settings.has("factor"):
        first = settings.whole(FIRST_LENGTH, default=n_ctx)
        return max(n_ctx, int(settings.number("factor") * first))
    return n_ctx
