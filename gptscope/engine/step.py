"""Where a pass stands, and who listens to its values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Callable

    from gptscope.engine.cache import Cache
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Attention

Array = NDArray[np.floating[Any]]


class Hook(Protocol):
    """Sees every value by the key of its hook point, and says what goes on in its place.

    Where it has a method `wants(key, layer)` that denies it the scores and weights of a layer, they
    are never held whole.
    """

    def __call__(self, key: str, value: Array, layer: int | None = None) -> Array: ...  # noqa: D102


class Untouched:
    """The hook that does nothing."""

    def __call__(self, key: str, value: Array, layer: int | None = None) -> Array:  # noqa: ARG002
        """The value."""
        return value

    def wants(self, key: str, layer: int | None) -> bool:  # noqa: ARG002
        """Nothing."""
        return False


untouched = Untouched()


def looks_at(hook: Hook, key: str, layer: int | None) -> bool:
    """Whether a hook may look at a value: any may that does not deny it."""
    asked = getattr(hook, "wants", None)
    return asked is None or bool(asked(key, layer))


@dataclass(frozen=True, eq=False)
class Step:
    """Where a pass stands: in which layer, at which positions, and who is listening."""

    spec: Spec
    layer: int
    at: NDArray[np.int64]  # [T], the positions
    listener: Hook
    cache: Cache | None
    mixer: Callable[[Array, Array, Array, Attention, Step], Array] | None = None  # else `mix`

    def hook(self, key: str, value: Array) -> Array:
        """The value as the listener leaves it."""
        return self.listener(key, value, self.layer)

    def wants(self, *keys: str) -> bool:
        """Whether the listener may look at one of these values."""
        return any(looks_at(self.listener, key, self.layer) for key in keys)
