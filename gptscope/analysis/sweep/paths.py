"""Path patching: what one part tells another directly, past all other attention heads.

Wang et al. 2022, "Interpretability in the wild", section 3.1 and appendix B; Goldowsky-Dill et al.
2023, "Localizing model behavior with path patching".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.sweep.lanes import Lane
from gptscope.analysis.sweep.sites import Site, taken
from gptscope.engine.names import chosen
from gptscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gptscope.analysis.sweep.lanes import Put, Seen
    from gptscope.model.spec import Spec

Array = NDArray[np.floating[Any]]
MANY = r"\*|\d{1,9}|\d{0,9}:\d{0,9}"
WRITTEN = re.compile(
    rf"layers\.(?P<layer>{MANY})\.(?:heads\.(?P<head>{MANY})(?:\.(?P<reads>[qkv]))?|(?P<part>mlp|attn))",
    re.ASCII,
)
HINT = "a part looks so: layers.2.heads.1, layers.2.mlp"
GIVES = {"head": "out", "attn": "attn_out", "mlp": "mlp_out"}  # the key of what a part gives
UNITS = ("mlp_hidden", "mlp_gate", "mlp_up")  # what a feed-forward layer makes of what it reads


@dataclass(frozen=True)
class Part:
    """A part of the model that gives or reads: a head, attention, a feed-forward layer, the end."""

    kind: str  # head, attn, mlp or logits
    layer: int = 0
    head: int | None = None
    reads: str = "qkv"  # of a head

    @property
    def name(self) -> str:
        """As it is written."""
        if self.kind == "logits":
            return "logits"
        inside = self.kind if self.head is None else f"heads.{self.head}"
        return f"layers.{self.layer}.{inside}" + (f".{self.reads}" if len(self.reads) == 1 else "")

    def when(self, spec: Spec) -> float:
        """When in a pass it comes: a path leads from earlier parts to later ones alone."""
        if self.kind == "logits":
            return float("inf")
        after = self.kind == "mlp" and spec.wiring != "parallel"
        return 2 * self.layer + after

    @property
    def gives(self) -> Site:
        """The value that it gives."""
        return Site(GIVES[self.kind], self.layer, self.head, head=self.head)

    def inputs(self, spec: Spec) -> list[Site]:
        """The values that it makes of what it reads: queries, keys and values; hidden units."""
        if self.head is None:
            return [Site(key, self.layer) for key in UNITS]
        shared = self.head * spec.n_kv_heads // spec.n_heads
        rows = {"q": self.head, "k": shared, "v": shared}
        return [Site(key, self.layer, rows[key], head=self.head) for key in self.reads]


def parts(written: str, spec: Spec, option: str) -> list[Part]:
    """The parts that a name means, which may have stars and ranges in it.

    `--from` takes heads, attention and feed-forward layers; `--to` heads, or their q, k or v,
    feed-forward layers, and logits.

    Raises:
        UsageError: it is no part, or no part of this model, or not one for this option.
    """
    sends = option == "--from"
    if written == "logits" and not sends:
        return [Part("logits")]
    found = WRITTEN.fullmatch(written)
    if found is None:
        hint = HINT if sends else "a part looks so: layers.2.heads.1.q, layers.2.mlp, logits"
        raise UsageError(
            f"{option}: {written!r} is no part of a model that can be meant here", hint
        )
    if sends and found["reads"]:
        raise UsageError(f"--from is a whole head: {written.removesuffix(found['reads'])[:-1]}")
    if not sends and found["part"] == "attn":
        raise UsageError("--to is one head or all of a layer, not attn", "layers.2.heads.*.q")
    layers = several("layer", found["layer"], spec.n_layers)
    if found["part"]:
        return [Part(found["part"], layer) for layer in layers]
    heads = several("head", found["head"], spec.n_heads)
    reads = found["reads"] or "qkv"
    return [Part("head", layer, head, reads) for layer in layers for head in heads]


def several(what: str, written: str, count: int) -> Sequence[int]:
    """The layers or heads of a number, a range or a star.

    Raises:
        UsageError: one is out of range.
    """
    return range(count) if written == "*" else chosen(what, written, count)


@dataclass(frozen=True, eq=False)
class Paths:
    """Passes along paths: what is put in the sender's place, and what is frozen."""

    spec: Spec
    run: Lane  # notes `NOTED`; every other value is its own
    made: Callable[[Site], Callable[[Array, Seen], Any]]  # what the sender gives instead
    takes: tuple[Lane, ...] = ()  # whose values that uses
    freeze_mlp: bool = False

    def leads(self, sender: Part, receiver: Part) -> bool:
        """Whether any path leads from one to the other."""
        return sender.when(self.spec) < receiver.when(self.spec)

    def lanes(self, pairs: Sequence[tuple[Part, Part]]) -> list[Lane]:
        """A pass for each pair of a sender and a receiver."""
        last: dict[Part, int] = {}
        for sender, receiver in pairs:
            ends = self.spec.n_layers if receiver.kind == "logits" else receiver.layer
            last[sender] = max(last.get(sender, 0), ends)
        told = {sender: self.telling(sender, ends) for sender, ends in last.items()}
        return [
            told[sender] if receiver.kind == "logits" else self.receiving(told[sender], receiver)
            for sender, receiver in pairs
        ]

    def telling(self, sender: Part, ends: int) -> Lane:
        """The pass in which the sender is changed and every later head gives what it gave before.

        Feed-forward layers are recomputed, unless they are frozen as well; norms are recomputed.
        """
        gives, changes = sender.gives, dict[tuple[str, int], "Put"]()
        for layer in range(sender.layer, self.spec.n_layers):
            if layer > sender.layer:
                changes["out", layer] = as_before(self.run, "out")
            if self.freeze_mlp and (layer > sender.layer or sender.kind != "mlp"):
                changes["mlp_out", layer] = as_before(self.run, "mlp_out")
        changes[gives.key, gives.layer] = gives.put(self.made(gives))
        notes = frozenset(("q", "k", "v", *UNITS))
        takes = (self.run, *self.takes)
        return Lane(None, self.run, changes, sender.layer, ends, takes, notes)

    def receiving(self, told: Lane, receiver: Part) -> Lane:
        """The pass in which the receiver, and nothing else, reads what it has been told."""
        where = receiver.inputs(self.spec)
        changes = {(site.key, site.layer): site.put(taken(site, told)) for site in where}
        return Lane(None, self.run, changes, receiver.layer, takes=(told,))


NOTED = ("out", "mlp_out")


def as_before(run: Lane, key: str) -> Put:
    """The value of another pass, with all its heads."""
    return lambda _, seen: seen[run, key]
