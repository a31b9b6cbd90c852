"""npz: the arrays behind a view, for NumPy; docs/formats.md has the rules for their names.

The same view gives the same bytes: every file within has the same date.
"""

from __future__ import annotations

import io
import re
import zipfile
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.view import Facts, Grid, Kind, Note, Part, Passage, Sheet, Table, View

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import BinaryIO

    from numpy.typing import NDArray

    from gptscope.render.screen import Screen

    Array = NDArray[Any]
    Named = Iterator[tuple[str, Array]]

DATE = (1980, 1, 1, 0, 0, 0)  # the first that a zip file can have
WORDS: tuple[Kind, ...] = ("text", "token")
INT64 = np.iinfo(np.int64)


def render(view: View, screen: Screen) -> bytes:  # noqa: ARG001
    """What was fed and changed, then the arrays of every part that holds data."""
    names = Names()
    arrays: dict[str, Array] = {}
    if view.input:
        arrays[names.new("ids")] = np.array(view.input["ids"], np.int64)
        arrays[names.new("tokens")] = column(view.input["tokens"], "token")
    if view.edits:
        arrays[names.new("edits")] = column(view.edits, "text")
    for part in view.parts:
        arrays |= dict(arrays_of(part, names))
    file = io.BytesIO()
    archive(file, arrays)
    return file.getvalue()


def archive(file: BinaryIO, arrays: Mapping[str, Array]) -> None:
    """Write named arrays as `np.savez` does, but always with the same date."""
    with zipfile.ZipFile(file, "w") as whole:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", DATE)
            info.create_system = 3  # what differs between systems otherwise
            info.external_attr = 0o644 << 16
            with whole.open(info, "w", force_zip64=True) as one:
                np.lib.format.write_array(one, array, allow_pickle=False)


class Names:
    """Names for the arrays; none is given twice."""

    def __init__(self) -> None:
        """Every name is free."""
        self._taken: set[str] = set()

    def new(self, wish: str) -> str:
        """This name, or with `_2`, `_3`, ... after it."""
        name, n = wish, 1
        while name in self._taken:
            n += 1
            name = f"{wish}_{n}"
        self._taken.add(name)
        return name


def slug(title: str, otherwise: str) -> str:
    """Small letters, digits and `_`; another word where nothing is left."""
    return re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")[:80].rstrip("_") or otherwise


def arrays_of(part: Part, names: Names, before: str = "") -> Named:
    """The arrays of one part under names that no other has."""
    if isinstance(part, Note):
        return
    name = names.new(before + (part.name or slug(part.title, type(part).__name__.lower())))
    match part:
        case Table(_, columns, rows):
            inner = Names()
            for i, c in enumerate(columns):
                cells = column([row[i] for row in rows], c.kind)
                yield f"{name}.{inner.new(slug(c.name, 'column'))}", cells
        case Grid():
            yield from matrix(part, name)
        case Sheet(_, grids):
            inner = Names()
            for grid in grids:
                yield from arrays_of(grid, inner, f"{name}.")
        case Passage(_, tokens, numbers, kind):
            yield name, column(numbers, kind)
            yield f"{name}.tokens", column(tokens, "token")
        case Facts(_, pairs):
            inner = Names()
            for c, value in pairs:
                yield f"{name}.{inner.new(slug(c.name, 'fact'))}", column([value], c.kind)[0, ...]


def matrix(part: Grid, name: str) -> Named:
    """The values, NaN where nothing is to be seen; labels, tokens of cells, what is hidden."""
    values = np.asarray(part.values)
    if part.hidden is not None:
        real = values if values.dtype.kind == "f" else values.astype(np.float64)
        values = np.where(part.hidden, real.dtype.type(np.nan), real)
    yield name, values
    yield f"{name}.rows", column(part.rows, "token")
    yield f"{name}.columns", column(part.columns, "token")
    if (tokens := part.cell_tokens()) is not None:
        yield (
            f"{name}.tokens",
            column([t for row in tokens for t in row], "token").reshape(values.shape),
        )
    if part.hidden is not None:
        yield f"{name}.hidden", np.asarray(part.hidden)


def column(values: Sequence[Any], kind: Kind) -> Array:
    """Equal kinds of values as one array; where nothing is, NaN or an empty text."""
    if kind == "vector":
        return np.array([np.asarray(v) for v in values]) if len(values) else np.zeros((0, 0))
    present = [v for v in values if v is not None]
    if any(isinstance(v, str) for v in present) or (kind in WORDS and not present):
        # NumPy would drop a NUL at the end of a text
        return np.array(["" if v is None else str(v).replace("\0", "<0x00>") for v in values], str)
    if present and len(present) == len(values) and all(map(whole, present)):
        return np.array(values, np.int64)
    return np.array([np.nan if v is None else v for v in values], real_type(present))


def whole(value: Any) -> bool:  # noqa: ANN401
    """Whether this is an integer that an int64 can hold."""
    return isinstance(value, int | np.integer) and INT64.min <= int(value) <= INT64.max


def real_type(values: Iterable[Any]) -> Any:  # noqa: ANN401
    """The widest type of the numbers: float64 unless all are of a narrower one."""
    kinds = {v.dtype if isinstance(v, np.floating) else np.dtype(np.float64) for v in values}
    return np.result_type(*kinds) if kinds else np.dtype(np.float64)
