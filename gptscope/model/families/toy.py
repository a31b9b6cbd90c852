"""The lesson's toy: a GPT-2 whose differences from the 2017 paper can each be switched.

Its config.json says `positions` (sinusoidal, learned or none), `norm` (pre, or post as in the
paper) and `causal` (false: every token sees the whole text).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gptscope.errors import ModelError
from gptscope.model.families import gpt2
from gptscope.model.positions import sinusoidal_positions

if TYPE_CHECKING:
    from collections.abc import Container

    from numpy.typing import NDArray

    from gptscope.model.checkpoint import Tensors
    from gptscope.model.config import Config
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Model

WIRINGS = {"pre": "pre_norm", "post": "post_norm"}
POSITIONS = ("sinusoidal", "learned", "none")


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
        positions=one_of(config, "positions", POSITIONS),
        causal=config.flag("causal", default=True),
    )
    return gpt2.assemble(config, tensors, s, position_table(tensors, s))


def position_table(tensors: Tensors, s: Spec) -> NDArray[Any] | None:
    """The table of positions [ctx, d], or None."""
    if s.positions == "learned":
        return tensors.take("wpe.weight", s.n_ctx, s.d_model)
    return sinusoidal_positions(s.n_ctx, s.d_model) if s.positions == "sinusoidal" else None


def one_of(config: Config, key: str, choices: tuple[str, ...]) -> str:
    """A word of the config that must be one of these; the first if it is not said.

    Raises:
        ModelError: it is another.
    """
    word = config.word(key, default=choices[0])
    if word not in choices:
        raise ModelError(f"{config.source}: {key} is {word!r}, not one of: {', '.join(choices)}")
    return word
