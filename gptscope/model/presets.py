"""Sizes of known models, by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gptscope.errors import UsageError
from gptscope.model.params import Sizes

if TYPE_CHECKING:
    from collections.abc import Mapping

GPT2 = "Radford et al. 2019, table 2"
GPT3 = "Brown et al. 2020, table 2.1"


@dataclass(frozen=True)
class Preset:
    """The sizes of one model, and the number of parameters that its paper prints."""

    sizes: Sizes
    published: int | None = None
    paper: str = ""


def _gpt2(d: int, L: int, published: int) -> Preset:
    return Preset(Sizes(d, L, V=50257, ctx=1024), published, GPT2)


def _gpt3(d: int, L: int, published: int) -> Preset:
    return Preset(Sizes(d, L, V=50257, ctx=2048), published, GPT3)


PRESETS: Mapping[str, Preset] = {
    # Radford et al. 2018, section 4.1, prints no total; vocabulary and parts are those of the
    # released checkpoint. Its norms follow each sum, so that none is left for the end.
    "gpt1": Preset(Sizes(768, 12, V=40478, ctx=512, final_norm=False)),
    "gpt2": _gpt2(768, 12, 117_000_000),
    "gpt2-medium": _gpt2(1024, 24, 345_000_000),
    "gpt2-large": _gpt2(1280, 36, 762_000_000),
    "gpt2-xl": _gpt2(1600, 48, 1_542_000_000),
    "gpt3-small": _gpt3(768, 12, 125_000_000),
    "gpt3-medium": _gpt3(1024, 24, 350_000_000),
    "gpt3-large": _gpt3(1536, 24, 760_000_000),
    "gpt3-xl": _gpt3(2048, 24, 1_300_000_000),
    "gpt3-2.7b": _gpt3(2560, 32, 2_700_000_000),
    "gpt3-6.7b": _gpt3(4096, 32, 6_700_000_000),
    # The table prints width 5140, held to be a misprint: its 40 heads of 128 make 5120.
    "gpt3-13b": _gpt3(5120, 40, 13_000_000_000),
    "gpt3": _gpt3(12288, 96, 175_000_000_000),
    "toy": Preset(Sizes(8, 2, V=12, ctx=0)),  # its positions are computed
    "tiny": Preset(Sizes(128, 4, V=4096, ctx=128)),
}


def preset(name: str) -> Preset:
    """The model of this name.

    Raises:
        UsageError: there is none.
    """
    if name not in PRESETS:
        raise UsageError(f"preset {name!r} is not one of: {', '.join(PRESETS)}")
    return PRESETS[name]
