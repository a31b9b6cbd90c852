"""Changes that take something from elsewhere: a file, or a pass over another text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.aliases import as_transformer_lens
from gptscope.engine.change import Change
from gptscope.engine.index import checked, read_index
from gptscope.engine.names import named
from gptscope.errors import UsageError
from gptscope.model.arrays import read_arrays, words_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gptscope.engine.change import Asked
    from gptscope.engine.spot import Spot

Array = NDArray[np.floating[Any]]
DIRECTION = "direction"  # the array in a file of `gptscope steer`


def steered(asked: Asked) -> Change:
    """The value and a direction from a file, so many times."""
    arrays, factor = read_arrays(asked.words["file"]), float(asked.words["factor"] or 1)

    def made(value: Array, spot: Spot) -> Array:
        added = numbers(found(arrays, spot, asked.words["file"]), asked.words["file"])
        added = added.astype(value.dtype, copy=False)
        spot.check(added.shape, value.shape)
        return (value + added * value.dtype.type(factor))[spot.index]

    by_row = alike_in_each_row(asked, arrays)
    return Change(made, by_row=by_row, remark=made_otherwise(asked, arrays))


def made_otherwise(asked: Asked, arrays: Mapping[str, NDArray[Any]]) -> str:
    """What to tell of a direction that was made of another value or model; nothing otherwise."""
    said = words_in(asked.words["file"], arrays) if DIRECTION in arrays else {}
    if not {"value", "model"} <= set(said):
        return ""
    spec, model = asked.model.spec, asked.model.name
    every = named(asked.pattern, spec.n_layers, spec.n_heads)
    names = {v.point.name.format(l=v.layer, h=h) for v in every for h in v.heads or (None,)}
    places = {(v.alias or v.point.key, v.layer, h) for v in every for h in v.heads or (None,)}
    if said["model"] == model and said["value"] in names and len(places) == 1:
        return ""
    made = f"{asked.words['file']} was made of {said['value']} of {said['model']}"
    return f"{made}, and is added to {asked.pattern} of {model}"


def alike_in_each_row(asked: Asked, arrays: Mapping[str, NDArray[Any]]) -> bool:
    """Whether no array of a file has an axis of tokens: each has fewer axes than the value."""
    spec = asked.model.spec
    points = {value.point for value in named(asked.pattern, spec.n_layers, spec.n_heads)}
    fewest = min(len(point.axes.split()) for point in points)
    return all(np.ndim(array) < fewest for array in arrays.values())


def frozen(asked: Asked) -> Change:
    """The value that a file has of it, as `gptscope trace` writes them."""
    arrays = read_arrays(asked.words["file"])

    def made(value: Array, spot: Spot) -> Array:
        kept = of_trace(arrays, spot, asked.words["file"])
        spot.equal(kept.shape, value.shape)
        return kept[spot.index]

    return Change(made)


def patched(asked: Asked) -> Change:
    """The value that it has in a pass over another text, at the same index or at another."""
    from gptscope.engine.trace import trace  # noqa: PLC0415 - which makes edits

    text = asked.words["text"]
    ids = asked.words["ids"]
    other = trace(asked.model, asked.encode(text) if ids is None else ids_of(ids), asked.pattern)
    own = read_index(asked.words["index"], asked.words[0]) if asked.words["index"] else None

    def made(value: Array, spot: Spot) -> Array:
        there = other[spot.name]
        at = checked(asked.index if own is None else own, spot.axes, there.shape, asked.words[0])
        if own is None:
            spot.equal(there[at].shape, value[spot.index].shape)
        return there[at]

    return Change(made)


def ids_of(written: str) -> list[int]:
    """Token ids with commas between them.

    Raises:
        UsageError: they are something else.
    """
    try:
        return [int(one) for one in written.split(",")]
    except ValueError:
        raise UsageError(
            f"ids takes whole numbers with commas between them, not {written!r}"
        ) from None


def found(arrays: Mapping[str, NDArray[Any]], spot: Spot, file: str) -> NDArray[Any]:
    """The array of a file that is meant for a value: of its name, its direction, or its only one.

    Raises:
        UsageError: it has none, or several.
    """
    for name in (spot.name, DIRECTION):
        if name in arrays:
            return arrays[name]
    if len(arrays) == 1:
        return next(iter(arrays.values()))
    raise UsageError(f"{file} holds neither {spot.name} nor {DIRECTION}")


def numbers(array: NDArray[Any], file: str) -> Array:
    """An array of real numbers.

    Raises:
        UsageError: it is one of something else.
    """
    if array.dtype.kind not in "fiu":
        raise UsageError(f"{file} holds no numbers to add, but {array.dtype}")
    return array


def of_trace(arrays: Mapping[str, NDArray[Any]], spot: Spot, file: str) -> NDArray[Any]:
    """The value of a spot in the file of a trace.

    Raises:
        UsageError: the file does not have it.
    """
    name = spot.point.name
    n = spot.shape[spot.axes.index("H")] if spot.alias and "H" in spot.axes else 1
    step = spot.spec.n_heads // n if n > 1 else 1
    heads = [i * step for i in range(n)] if spot.alias else [spot.head]
    names = [name.format(l=spot.layer, h=h) for h in heads]
    missing = next((one for one in names if one not in arrays), None)
    if missing is not None:
        raise UsageError(f"{file} does not hold {missing}", "gptscope trace --output writes it")
    kept = [arrays[one] for one in names]
    if not spot.alias:
        return kept[0]
    whole = np.stack(kept) if spot.point.per_head else kept[0]
    return as_transformer_lens(spot.point, whole, spot.spec.norm_eps)
