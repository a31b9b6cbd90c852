"""Which rows of a table of tokens lie near which: cosines and dot products, read in pieces.

n rows (tokens) of d numbers, k directions that they are compared with. Computed in float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.products import pieces
from gptscope.model.weights import rows

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gptscope.model.weights import Table

Array = NDArray[np.floating[Any]]
Mask = NDArray[np.bool_]

FLOAT64 = np.dtype(np.float64)
AT_ONCE = 1 << 17  # numbers of a table: widened, they stay in the cache
ROUNDING = 1e-12  # of the mean: a row that lies closer to it has no direction from there


@dataclass(frozen=True, eq=False)
class Space:
    """A table of tokens, and the point that its rows are seen from."""

    table: Table  # [n, d]
    mean: Array  # [d], of the rows that are known
    known: Mask  # [n]: rows of numbers that are not all zeros
    centred: bool = False  # whether the mean is taken off every row

    def rows(self, index: Any) -> Array:  # noqa: ANN401
        """Rows of the table, less the mean if that is wanted: [m, d]."""
        found = rows(self.table, index, FLOAT64)
        return found - self.mean if self.centred else found


@dataclass(frozen=True, eq=False)
class Near:
    """How every row lies to some directions; NaN where it has no direction itself."""

    cosines: Array  # [k, n]
    dots: Array  # [k, n]

    @property
    def left_out(self) -> int:
        """How many rows have no direction."""
        return int(np.isnan(self.cosines[0]).sum())


def space(table: Table, *, centred: bool = False) -> Space:
    """The table with its mean, over all rows but zeros and those that hold NaN or infinity.

    Rows of a language model share a direction, which lifts every cosine: Mu and Viswanath 2018,
    "All-but-the-Top", section 2. `centred` takes the mean off.
    """
    n, d = table.shape
    total, known = np.zeros(d), np.zeros(n, np.bool_)
    for part in pieces(n, AT_ONCE // max(1, d)):
        wide = rows(table, part, FLOAT64)
        squares = np.vecdot(wide, wide)  # [m, d] -> [m]
        good = known[part] = np.isfinite(squares) & (squares > 0)
        total += (wide if good.all() else wide[good]).sum(axis=0)
    return Space(table, total / max(1, known.sum()), known, centred)


def near(seen: Space, directions: Array) -> Near:
    """The cosine a b' / (|a| |b|) and the dot product of every row with directions [k, d].

    A piece of the table at a time is in memory. The cosine with zeros is NaN.
    """
    n, d = seen.table.shape
    dots, lengths = np.empty((len(directions), n)), np.empty(n)
    for part in pieces(n, AT_ONCE // max(1, d)):
        wide = seen.rows(part)
        lengths[part] = np.sqrt(np.vecdot(wide, wide))
        with np.errstate(invalid="ignore"):  # infinities in rows that are left out
            np.vecdot(wide, directions[:, None], out=dots[:, part])  # [k, 1, d] -> [k, m]
    dots[:, ~(seen.known & is_long(seen, lengths))] = np.nan
    own = np.linalg.norm(directions, axis=-1, keepdims=True)  # [k, d] -> [k, 1]
    with np.errstate(invalid="ignore", divide="ignore"):
        cosines = np.clip(dots / own / lengths, -1, 1)
    return Near(cosines, dots)


def is_long(seen: Space, lengths: Array) -> Mask:
    """Whether rows of these lengths have a direction: with the mean off, the mean has none."""
    least = ROUNDING * float(np.linalg.norm(seen.mean)) if seen.centred else 0.0
    found: Mask = lengths > least
    return found


def has_direction(seen: Space, row: Array) -> bool:
    """Whether this sum of rows [d] is more than zeros."""
    return bool(is_long(seen, np.linalg.norm(row, axis=-1, keepdims=True))[0])


def combined(seen: Space, weights: Mapping[int, int]) -> Array:
    """Rows times whole numbers, added up: [d]; king - man + woman is {king: 1, man: -1, woman: 1}.

    Mikolov, Yih and Zweig 2013, "Linguistic Regularities", section 4; rows keep their lengths here.
    """
    ids = np.fromiter(weights, np.int64, len(weights))
    numbers = np.fromiter(weights.values(), FLOAT64, len(weights))
    found: Array = numbers @ seen.rows(ids)  # [m] x [m, d] -> [d]
    return found


def nearest(values: Array, top: int, leave_out: Collection[int] = ()) -> list[int]:
    """The rows of the largest values [n], largest first, of equals the lower id; never NaN."""
    order = np.argsort(-values, kind="stable")[: top + len(leave_out)].tolist()  # NaN comes last
    return [i for i in order if i not in leave_out and not np.isnan(values[i])][:top]
