"""The lesson's toy: a GPT-2 whose differences from the 2017 paper can each be switched.

Its config.json says `positions` (sinusoidal, learned, rotary with `rope_theta`, or none), `norm`
(pre, or post as in the paper), `norm_type` (layer_norm or rms_norm) and `causal` (false: every
token sees the whole text).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gptscope.errors import ModelError
from gptscope.model.families import gpt2
from gptscope.model.positions import BASE, sinusoidal_positions, turning_speeds
from gptscope.model.weights import Turning

if TYPE_CHECKING:
    from collections.abc import Container

    from gptscope.model.config import Config
    from gptscope.model.spec import Spec
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Model, Table

WIRINGS = {"pre": "pre_norm", "post": "post_norm"}
POSITIONS = ("sinusoidal", "learned", "rotary", "none")
LARGEST_TABLE = 1 << 22  # numbers; nothing in the file bears out a table that is not in it
NORM_TYPES = ("layer_norm", "rms_norm")


def matches(config: Config, names: Container[str]) -> bool:  # noqa: ARG001
    """Whether the config says so."""
    return config.says("model_type", "toy")


rename = gpt2.rename


def build(config: Config, tensors: Tensors) -> Model:
    """Take every tensor to its place; sinusoidal positions are computed."""
    s = replace(
        gpt2.spec(config),
        family="toy",
        wiring=WIRINGS[one_of(config, "norm", tuple(WIRINGS))],
        norm=one_of(config, "norm_type", NORM_TYPES),
        positions=one_of(config, "positions", POSITIONS),
        causal=config.flag("causal", default=True),
    )
    if s.positions != "learned" and s.n_ctx * s.d_model > LARGEST_TABLE:
        sizes = f"{s.n_ctx} positions of width {s.d_model}"
        raise ModelError(f"{config.source}: {sizes} are more than are computed")
    return gpt2.assemble(config, tensors, s, position_table(tensors, s), turning(config, s))


def position_table(tensors: Tensors, s: Spec) -> Table | None:
    """The table of positions [ctx, d], or None."""
    if s.positions == "learned":
        return tensors.table("wpe.weight", s.n_ctx, s.d_model)
    return sinusoidal_positions(s.n_ctx, s.d_model) if s.positions == "sinusoidal" else None


def turning(config: Config, s: Spec) -> Turning | None:
    """The speed of every pair of a head's numbers, where positions are rotary.

    Raises:
        ModelError: a head has an odd number of them.
    """
    if s.positions != "rotary":
        return None
    if s.d_head % 2:
        raise ModelError(f"{config.source}: rotary positions need heads of even width")
    return Turning(turning_speeds(s.d_head, config.number("rope_theta", default=BASE)))


def one_of(config: Config, key: str, choices: tuple[str, ...]) -> str:
    """A word of the config that must be one of these; the first if it is not said.

    Raises:
        ModelError: it is another.
    """
    word = config.word(key, default=choices[0])
    if word not in choices:
        raise ModelError(f"{config.source}: {key} is {word!r}, not one of: {', '.join(choices)}")
    return word
