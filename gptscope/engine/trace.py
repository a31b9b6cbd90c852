"""A pass with the values kept that were asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.aliases import as_transformer_lens
from gptscope.engine.edits import Edits
from gptscope.engine.forward import forward, residual_stream
from gptscope.engine.hook_points import BY_KEY, HOOK_POINTS, Address, is_norm, parse
from gptscope.engine.ids import checked_ids
from gptscope.engine.keep import matcher
from gptscope.engine.lacking import lacking
from gptscope.engine.needs import refuse_too_much
from gptscope.errors import UsageError, check_index

if TYPE_CHECKING:
    from gptscope.engine.edits import Given
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]


def trace(
    model: Model,
    ids: Iterable[int],
    keep: Sequence[str] | str | None = None,
    edits: Edits | Iterable[Given] = (),
) -> Trace:
    """Run the model on token ids [T] and keep its values: all, or those of `keep`.

    An entry of `keep` is a key (`weights`: in all layers), a full name, a TransformerLens alias, or
    a pattern with stars (`layers.0.*`). A head is kept together with the other heads of its layer.
    `edits` change values on the way: texts such as `layers.2.heads.1.out=zero`, or pairs of a name
    and a function, an array or a number.

    Raises:
        UsageError: no ids, too many, one outside the vocabulary, an entry that names nothing, or an
            edit that cannot be made.
        GptscopeError: the values would not fit into memory.
    """
    spec, tokens = model.spec, checked_ids(model.spec, ids)
    note = Note(matcher(keep, spec.n_layers, spec.n_heads))
    changes = edits if isinstance(edits, Edits) else Edits(model, edits)
    hook = changes.hook(len(tokens), note)
    refuse_too_much(model, len(tokens), note.wants)
    if any(note.wants(point.key, None) for point in HOOK_POINTS if point.at_the_end):
        forward(model, tokens, hook)
    else:  # what follows the last layer that is looked at need not be computed, nor read
        layers = (layer for layer in range(spec.n_layers) if note.wants_of(layer))
        residual_stream(model, tokens, hook, n_layers=max(layers, default=-1) + 1)
    edited = changes.texts, changes.places
    return Trace(tuple(tokens.tolist()), spec, note.values, lacking(model), *edited)


class Note:
    """The hook that keeps what is wanted."""

    def __init__(self, wanted: Callable[[str, int | None], bool]) -> None:
        """Nothing is kept yet."""
        self.wants, self.values = wanted, dict[tuple[str, int | None], Array]()

    def __call__(self, key: str, value: Array, layer: int | None = None) -> Array:
        """The value, kept if it is wanted."""
        if self.wants(key, layer):
            value = value.view()
            value.flags.writeable = False  # what was recorded must never change afterwards
            self.values[key, layer] = value
        return value

    def wants_of(self, layer: int) -> bool:
        """Whether any value of this layer is wanted."""
        return any(self.wants(point.key, layer) for point in HOOK_POINTS if "{l}" in point.name)


@dataclass(frozen=True, eq=False)
class Trace:
    """The values of one pass, by name: `trace["layers.0.heads.1.q"]`, `trace.layers[0].ln1.out`."""

    ids: tuple[int, ...]
    spec: Spec
    values: dict[tuple[str, int | None], Array] = field(repr=False)  # heads stacked: [H, ...]
    lacks: Mapping[tuple[str, int | None], str] = field(default_factory=dict, repr=False)
    edits: tuple[str, ...] = ()  # what was changed, as it was written
    changed: frozenset[tuple[str, int | None]] = frozenset()  # key and layer of each such value

    def __getitem__(self, name: str) -> Array:
        """The value of a full name or a TransformerLens alias, which gives all heads as that does.

        Raises:
            UsageError: no such value, a layer or head out of range, or it was not kept.
        """
        address = self.resolved(parse(name))
        value = self._stacked(address, name)
        if address.by_alias:
            return as_transformer_lens(address.point, value, self.spec.norm_eps)
        if address.head is None:
            return value
        head = check_index("head", address.head, self.spec.n_heads)
        shown: Array = value[head * len(value) // self.spec.n_heads]  # H / G heads share a key
        return shown

    def resolved(self, address: Address) -> Address:
        """The address with the first value of an alias that this pass has."""
        there = (p for p in address.candidates if (p.key, address.layer) in self.values)
        return replace(address, point=next(there, address.point))

    def names(self) -> tuple[str, ...]:
        """The full names of all values that were kept, in the order of the pass."""
        return self._names

    @cached_property
    def _names(self) -> tuple[str, ...]:
        names = (
            BY_KEY[key].name.format(l=layer, h=head)
            for key, layer in self.values
            for head in (range(self.spec.n_heads) if BY_KEY[key].per_head else (0,))
        )
        return tuple(names)

    @property
    def layers(self) -> Group:
        """The blocks, each with its values as attributes."""
        return Group(self, "layers", self.spec.n_layers)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """`trace.logits`, `trace.ln_final.out`."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(Scope(self, ""), name)

    def __dir__(self) -> list[str]:
        """What may be asked for."""
        return [*super().__dir__(), *dir(Scope(self, ""))]

    def _stacked(self, address: Address, name: str) -> Array:
        if address.layer is not None:
            check_index("layer", address.layer, self.spec.n_layers)
        value = self.values.get((address.point.key, address.layer))
        if value is None:
            why = self.lacks.get((address.point.key, address.layer), "it was not kept")
            raise UsageError(f"{name} is not in this trace: {why}")
        return value


@dataclass(frozen=True, eq=False)
class Scope:
    """The values under one name; `layers.0` has `ln1`, which has `mean`."""

    trace: Trace
    prefix: str

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        """The value of this name, or the values under it."""
        if name.startswith("__"):  # what copying asks for, before there are any fields
            raise AttributeError(name)
        full = f"{self.prefix}{name}"
        if name == "heads" and self.prefix.startswith("layers."):
            return Group(self.trace, full, self.trace.spec.n_heads)
        if is_norm(full):
            return Scope(self.trace, f"{full}.")
        try:
            return self.trace[full]
        except UsageError as fault:
            raise AttributeError(str(fault)) from None

    def __dir__(self) -> list[str]:
        """What may be asked for here."""
        n = len(self.prefix)
        names = {
            name[n:].split(".")[0] for name in self.trace.names() if name.startswith(self.prefix)
        }
        return sorted(names)


@dataclass(frozen=True, eq=False)
class Group(Sequence[Scope]):
    """The layers of a pass, or the heads of a layer."""

    trace: Trace
    prefix: str
    n: int

    def __len__(self) -> int:
        """How many."""
        return self.n

    @overload
    def __getitem__(self, index: int) -> Scope: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Scope, ...]: ...
    def __getitem__(self, index: int | slice) -> Scope | tuple[Scope, ...]:
        """One of them, -1 is the last; or several.

        Raises:
            IndexError: there are fewer.
        """
        if isinstance(index, slice):
            return tuple(self[i] for i in range(self.n)[index])
        if not -self.n <= index < self.n:
            raise IndexError(f"{self.prefix}[{index}]: there are {self.n}")
        return Scope(self.trace, f"{self.prefix}.{index % self.n}.")
