"""What is changed in each pass of a sweep, and what is put in its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.sweep.lanes import Lane
from gptscope.analysis.sweep_choices import REPLACEMENTS, Kind
from gptscope.engine.hook_points import BY_KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gptscope.analysis.sweep.lanes import Put, Seen
    from gptscope.model.spec import Spec

Array = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Site:
    """A value in a layer: all of it, one of its heads, or one token."""

    key: str
    layer: int
    row: int | None = None  # of the stacked heads
    token: int | None = None
    head: int | None = None  # the first that has this row

    @property
    def name(self) -> str:
        """As an edit names it: `layers.2.heads.1.out`, `layers.3.input[4]`."""
        name = BY_KEY[self.key].name.format(l=self.layer, h=self.head)
        return name if self.token is None else f"{name}[{self.token}]"

    @property
    def index(self) -> tuple[int, ...]:
        """Where it is in the value, with all its heads."""
        return tuple(i for i in (self.row, self.token) if i is not None)

    def put(self, made: Callable[[Array, Seen], Any]) -> Put:
        """The change that puts there what is made of the value."""

        def changed(value: Array, seen: Seen) -> Array:
            new = value.copy()
            new[self.index] = made(value, seen)
            return new

        return changed


def sites(kind: Kind, spec: Spec, tokens: Sequence[int] | None) -> list[list[Site]]:
    """The values of a kind as rows of a picture: layers x heads, tokens, or one alone.

    Of a layer's value each of `tokens` is one; without them, all tokens together are. The stream
    has a row more than there are layers: after the last.
    """
    layers = range(spec.n_layers)
    if kind.by == "head":
        n = spec.n_kv_heads if kind.key[0] in "kv" else spec.n_heads
        step = spec.n_heads // n
        return [
            [Site(kind.key, layer, row, head=row * step) for row in range(n)] for layer in layers
        ]
    if tokens is None:
        return [[Site(kind.key, layer)] for layer in layers]
    places = [(kind.key, layer) for layer in layers]
    if kind.key == "input":
        places.append(("output", spec.n_layers - 1))
    return [[Site(key, layer, token=i) for i in tokens] for key, layer in places]


def taken(site: Site, other: Lane) -> Callable[[Array, Seen], Any]:
    """The same value of another pass, which notes it."""
    return lambda _, seen: seen[other, site.key][site.index]


def over(ids: Sequence[int], *notes: str) -> Lane:
    """A pass over tokens, that notes the values of these keys."""
    return Lane(np.asarray(ids, np.int64), notes=frozenset(notes))


def ablations(run: Lane, where: Sequence[Site], replacement: str) -> list[Lane]:
    """A pass for each value, in which it is replaced: a key of `REPLACEMENTS`."""
    make = REPLACEMENTS[replacement].make
    return [
        Lane(None, run, {(site.key, site.layer): site.put(make(site))}, site.layer)
        for site in where
    ]


def patches(run: Lane, other: Lane, where: Sequence[Site]) -> list[Lane]:
    """A pass for each value, in which it is what another pass has there: activation patching.

    Meng et al. 2022, "Locating and editing factual associations in GPT", section 2.1; Heimersheim
    and Nanda 2024, "How to use and interpret activation patching". `other` notes the values.
    """
    return [
        Lane(
            None,
            run,
            {(site.key, site.layer): site.put(taken(site, other))},
            site.layer,
            takes=(other,),
        )
        for site in where
    ]


def normalised(values: NDArray[np.float64], corrupt: float, clean: float) -> NDArray[np.float64]:
    """(value - corrupt) / (clean - corrupt): 0 as in the corrupt run, 1 as in the clean one.

    Wang et al. 2022, "Interpretability in the wild", section 3; Heimersheim and Nanda 2024.
    """
    return (values - corrupt) / (clean - corrupt)
