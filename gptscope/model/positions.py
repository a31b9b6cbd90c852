"""Positions that are computed, not learned: a table to add, or turns of queries and keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.errors import ModelError

if TYPE_CHECKING:
    from numpy.typing import NDArray

BASE = 10_000.0
WIDEST = 1 << 16  # numbers of a head that turn: a config alone bears them out


def sinusoidal_positions(n: int, d: int) -> NDArray[np.floating[Any]]:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same: [n, d] in float64.

    Vaswani et al. 2017, section 3.5.
    """
    angles = np.arange(n)[:, None] / BASE ** (np.arange(0, d, 2) / d)  # [n, ceil(d / 2)]
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(n, -1)[:, :d]


def turning_speeds(d_head: int, base: float = BASE) -> tuple[float, ...]:
    """Radians per position of each of the d_h / 2 rotary pairs: base^(-2i/d_h).

    Su et al. 2021, "RoFormer", section 3.2.2.

    Raises:
        ModelError: no head is so wide.
    """
    if d_head > WIDEST:
        raise ModelError(f"{d_head:,} numbers of a head are to turn, and {WIDEST:,} at most can")
    return tuple(base ** (-2 * i / d_head) for i in range(d_head // 2))
