"""A pass with the values kept that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.forward import forward
from gptscope.engine.hook_points import BY_KEY, Address, is_norm, parse
from gptscope.engine.ids import checked_ids
from gptscope.engine.keep import matcher
from gptscope.errors import UsageError, check_index

if TYPE_CHECKING:
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]
POSITIONS = {  # in words
    "learned": "a learned table of positions",
    "sinusoidal": "a computed table of positions",
    "rotary": "rotary positions, which turn queries and keys",
    "none": "no positions",
}


def trace(model: Model, ids: Iterable[int], keep: Sequence[str] | str | None = None) -> Trace:
    """Run the model on token ids [T] and keep its values: all, or those of `keep`.

    An entry of `keep` is a key (`weights`: in all layers), a full name, a TransformerLens alias, or
    a pattern with stars (`layers.0.*`). A head is kept together with the other heads of its layer.

    Raises:
        UsageError: no ids, too many, one outside the vocabulary, or an entry that names nothing.
    """
    tokens = checked_ids(model.spec, ids)
    wanted = matcher(keep, model.spec.n_layers, model.spec.n_heads)
    values: dict[tuple[str, int | None], Array] = {}

    def note(key: str, value: Array, layer: int | None = None) -> Array:
        if wanted(key, layer):
            value = value.view()
            value.flags.writeable = False  # what was recorded must never change afterwards
            values[key, layer] = value
        return value

    forward(model, tokens, note)
    return Trace(tuple(tokens.tolist()), model.spec, values)


@dataclass(frozen=True, eq=False)
class Trace:
    """The values of one pass, by name: `trace["layers.0.heads.1.q"]`, `trace.layers[0].ln1.out`."""

    ids: tuple[int, ...]
    spec: Spec
    values: dict[tuple[str, int | None], Array] = field(repr=False)  # heads stacked: [H, ...]

    def __getitem__(self, name: str) -> Array:
        """The value of a full name or a TransformerLens alias, which gives all heads as that does.

        Raises:
            UsageError: no such value, a layer or head out of range, or it was not kept.
        """
        address = parse(name)
        value = self._stacked(address, name)
        if address.by_alias:
            return as_transformer_lens(address, value, self.spec.norm_eps)
        if address.head is None:
            return value
        head: Array = value[check_index("head", address.head, self.spec.n_heads)]
        return head

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
            why = why_lacking(address.point.key, self.spec) or "it was not kept"
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


def why_lacking(key: str, spec: Spec) -> str | None:
    """Why such a model does not have the value of this key; None if it does."""
    rms, place = spec.norm == "rms_norm", POSITIONS.get(spec.positions, spec.positions)
    if rms and key.endswith((".mean", ".variance")):
        return "this model has RMS norms, which take no mean and no variance but a mean_square"
    if not rms and key.endswith(".mean_square"):
        return "this model has layer norms, which take a mean and a variance, and no mean_square"
    if key.endswith("_before_rope") and spec.positions != "rotary":
        return f"this model has {place}, so queries and keys do not turn"
    if key == "position_embeddings" and spec.positions in ("rotary", "none"):
        return f"this model has {place}, and adds none to the tokens"
    if key.startswith("ln_final.") and spec.wiring == "post_norm":
        return "this model has its norms after each part, and none after the last block"
    return None


def as_transformer_lens(address: Address, value: Array, eps: float) -> Array:
    """The value as TransformerLens has it, without the batch: positions first; a norm's scale."""
    if address.point.key.endswith(".variance"):
        scale: Array = np.sqrt(value + eps)[:, None]  # [T] -> [T, 1]
        return scale
    if address.point.axes == "T d_h":
        return value.swapaxes(0, 1)  # [H, T, d_h] -> [T, H, d_h]
    return value
