"""Mixtures of experts, which are refused: each token chooses which feed-forward layers it takes.

Shazeer et al. 2017, "Outrageously Large Neural Networks", section 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.errors import ModelError
from gptscope.model.files import short

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gptscope.model.config import Config

KEYS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts")


def refuse(config: Config, names: Iterable[str]) -> None:
    """Nothing, if this is a model without experts.

    Raises:
        ModelError: the config or the tensors speak of several.
    """
    told = next((key for key in KEYS if config.has(key) and not is_dense(config, key)), None)
    told = told or next((name for name in names if ".experts." in name), None)
    if told is not None:
        why = f"{short(told)} speaks of a mixture of experts, which is not supported"
        raise ModelError(f"{config.source}: {why}")


def is_dense(config: Config, key: str) -> bool:
    """Whether so many experts are none, or one that every token takes."""
    return any(config.says(key, n) for n in (0, 1))
