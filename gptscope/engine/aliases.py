"""Values as TransformerLens has them: positions first, then heads; a norm's scale. No batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from gptscope.engine.hook_points import HookPoint

Array = NDArray[np.floating[Any]]
SCALES = (".variance", ".mean_square")


def as_transformer_lens(point: HookPoint, value: Array, eps: float) -> Array:
    """The value of a hook point as TransformerLens has it, without the batch."""
    if point.key.endswith(SCALES):
        scale: Array = np.sqrt(value + eps)[:, None]  # [T] -> [T, 1]
        return scale
    return value.swapaxes(0, 1) if point.axes == "T d_h" else value  # [H, T, d_h] -> [T, H, d_h]


def as_gptscope(point: HookPoint, value: Array, eps: float) -> Array:
    """The way back."""
    if point.key.endswith(SCALES):
        return (value**2 - value.dtype.type(eps))[:, 0]  # [T, 1] -> [T]
    return value.swapaxes(0, 1) if point.axes == "T d_h" else value


def axes_of(point: HookPoint) -> list[str]:
    """The letters of its axes there."""
    if point.key.endswith(SCALES):
        return ["T", "1"]
    first, *rest = point.axes.split()
    if not point.per_head:
        return [first, *rest]
    return [first, "H", *rest] if rest == ["d_h"] else ["H", first, *rest]
