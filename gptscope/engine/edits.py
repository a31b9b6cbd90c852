"""Interventions: which value, where in it, and what goes on in its place.

An edit is a text, `layers.2.heads.1.out[4]=zero`, or a pair of a name and what becomes of the
value: a function, an array, or a number. `CHANGES` of engine.changes has what may follow the `=`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.engine.changes import change_of, made_of
from gptscope.engine.hook_points import BY_ALIAS, BY_KEY
from gptscope.engine.index import Index, checked, read_index
from gptscope.engine.lacking import why_lacking
from gptscope.engine.names import Named, named
from gptscope.engine.spot import Spot
from gptscope.engine.step import Hook, looks_at
from gptscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from gptscope.engine.change import Change, Encode
    from gptscope.model.weights import Model

    Array = NDArray[np.floating[Any]]
    Places = dict[tuple[str, int | None], list[tuple[Spot, Change]]]  # key and layer
    Given = str | tuple[str, Callable[[Array], Any] | Array | float]

WRITTEN = re.compile(r"(?P<name>[^\[\]=]+)(?:\[(?P<index>[^\]]*)\])?=(?P<change>.+)", re.DOTALL)
NAME = re.compile(r"(?P<name>[^\[\]=]+)(?:\[(?P<index>[^\]]*)\])?")
HINT = "an edit looks so: layers.2.heads.1.out=zero, or 'layers.5.mlp_act[:,17]=0'"


@dataclass(frozen=True, eq=False)
class Edit:
    """One change to every value that a pattern names, at an index of each."""

    text: str  # as it was written
    values: tuple[Named, ...]
    index: Index
    change: Change


class Edits:
    """Changes to named values while a model runs, in their order."""

    def __init__(self, model: Model, edits: Iterable[Given], encode: Encode | None = None) -> None:
        """Read them; what they take from another text is computed, files are read.

        `encode` makes ids of a text, the model's own tokenizer if it is not given.

        Raises:
            UsageError: an edit that cannot be read, or names what this model does not have.
            GptscopeError: a file that cannot be read.
        """
        self._model = model
        self._edits = tuple(read_edit(model, one, encode) for one in edits)

    @property
    def texts(self) -> tuple[str, ...]:
        """The edits as they were written."""
        return tuple(edit.text for edit in self._edits)

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be told of them: a direction that was made of another value or model."""
        return tuple(edit.change.remark for edit in self._edits if edit.change.remark)

    @property
    def by_row(self) -> bool:
        """Whether each changes a token in the same way whatever stands before or after it."""
        return all(
            edit.change.by_row
            and edit.index[:1] in ((), (slice(None),))
            and not any(value.point.axes.endswith("S") or value.alias for value in edit.values)
            for edit in self._edits
        )

    @property
    def places(self) -> frozenset[tuple[str, int | None]]:
        """Key and layer of every value that is changed."""
        return frozenset((v.point.key, v.layer) for edit in self._edits for v in edit.values)

    @property
    def at_the_end(self) -> bool:
        """Whether a value after the last block is changed."""
        return any(BY_KEY[key].at_the_end for key, _ in self.places)

    def hook(self, n_tokens: int, then: Hook) -> Hook:
        """The hook that changes values in a pass over so many tokens, and shows them to another.

        Raises:
            UsageError: an index is out of range, or a shape does not fit.
        """
        if not self._edits:
            return then
        spots: Places = defaultdict(list)
        for edit in self._edits:
            for spot in spots_of(edit, self._model, n_tokens):
                edit.change.check(spot)
                spots[spot.point.key, spot.layer].append((spot, edit.change))
        return Edited(spots, then)


class Edited:
    """The hook that changes values, and shows them to another afterwards."""

    def __init__(self, spots: Places, then: Hook) -> None:
        """What is changed where, in order."""
        self._spots, self._then = spots, then

    def __call__(self, key: str, value: Array, layer: int | None = None) -> Array:
        """The value, changed if it is to be."""
        for spot, change in self._spots.get((key, layer), ()):
            value = spot.put(value, change)
        return self._then(key, value, layer)

    def wants(self, key: str, layer: int | None) -> bool:
        """Whether this value is changed, or looked at afterwards."""
        return (key, layer) in self._spots or looks_at(self._then, key, layer)


def read_edit(model: Model, given: Given, encode: Encode | None = None) -> Edit:
    """An edit, read and prepared for a model.

    Raises:
        UsageError: it cannot be read, or names what this model does not have.
        GptscopeError: a file that cannot be read.
    """
    written = given if isinstance(given, str) else given[0]
    found = (WRITTEN if isinstance(given, str) else NAME).fullmatch(written)
    if found is None:
        raise UsageError(f"{written!r} is no edit", HINT)
    index, name = read_index(found["index"], written), found["name"].strip()
    values = tuple(there(model, named(name, model.spec.n_layers, model.spec.n_heads)))
    if isinstance(given, str):
        change = change_of(found["change"], name, index, model, encode)
    else:
        change, written = made_of(given[1]), f"{written}={kind_of(given[1])}"
    return Edit(written, values, index, change)


def kind_of(what: Any) -> str:  # noqa: ANN401
    """A function, an array or a number in words."""
    return getattr(what, "__name__", "function") if callable(what) else f"{np.shape(what) or what}"


def there(model: Model, values: list[Named]) -> list[Named]:
    """The values that the model has; of those that share an alias in a layer, the one it means.

    Raises:
        UsageError: it has none of them.
    """
    reasons = [why_lacking(value.point.key, model, value.layer) for value in values]
    have = [value for value, reason in zip(values, reasons, strict=True) if reason is None]
    if not have:
        value = values[0]
        name = value.point.name.format(l=value.layer, h=value.heads[0] if value.heads else 0)
        raise UsageError(f"{name} cannot be changed: {reasons[0]}")
    return list(meant(have))


def meant(values: list[Named]) -> Iterator[Named]:
    """The first of an alias' candidates in each layer; everything that has no alias."""
    found = {(value.alias, value.point.key, value.layer) for value in values}
    for value in values:
        first = next(
            (
                p.key
                for p in BY_ALIAS.get(value.alias, ())
                if (value.alias, p.key, value.layer) in found
            ),
            value.point.key,
        )
        if first == value.point.key:
            yield value


def spots_of(edit: Edit, model: Model, n_tokens: int) -> Iterator[Spot]:
    """Every place where an edit changes something, with its index checked.

    Raises:
        UsageError: the index is out of range.
    """
    for value in edit.values:
        rows: dict[int | None, int | None] = {None: None}  # row of the stacked heads -> head
        if value.heads and not value.alias:
            n = model.spec.n_kv_heads if value.point.key[0] in "kv" else model.spec.n_heads
            rows = {h * n // model.spec.n_heads: h for h in reversed(value.heads)}
        for row, head in rows.items():
            spot = Spot(value.point, value.layer, row, head, model.spec, n_tokens, value.alias)
            index = checked(edit.index, spot.axes, spot.shape, edit.text)
            yield replace(spot, index=index)
