"""Addresses of single numbers: a name with indices, `layers.0.heads.0.weights[5,0]`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gptscope.analysis.explain.place import Place
from gptscope.engine.hook_points import BY_KEY, BY_NAME, Address, HookPoint, parse
from gptscope.errors import UsageError, check_index

if TYPE_CHECKING:
    from gptscope.engine.trace import Trace
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Model

PROBABILITIES = "probabilities"
FORM = re.compile(r"([^\[\]]+)\[([^\[\]]*)\]")
HEAD_FIRST = ("attn_scores", "pattern")  # in TransformerLens; elsewhere positions come first


@dataclass(frozen=True)
class Wanted:
    """What an address asks for: the value (None: a probability), head and the indices, as given."""

    text: str
    address: Address | None
    head: int | None
    at: tuple[int, ...]

    @property
    def layer(self) -> int | None:
        """The layer, where the value has one."""
        return self.address.layer if self.address else None

    def counts_groups(self, point: HookPoint | None) -> bool:
        """Whether its head counts those with keys and values of their own, as TransformerLens'."""
        by_alias = self.address is not None and self.address.by_alias
        return by_alias and point is not None and point.key[0] in "kv" and point.per_head

    def keep(self, spec: Spec) -> tuple[str, ...]:
        """The values that a trace of such a model must keep to explain it.

        Raises:
            UsageError: it has no such layer.
        """
        norms = (f"{norm}.out" for norm in ("ln1", "ln1_post", "ln2", "ln2_post"))
        parts = ("*embeddings", "embed_norm.*", "attn_out", "mlp_out", *norms)
        last = (f"layers.{spec.n_layers - 1}.output", "ln_final.*", "logits*")
        if self.layer is None:
            return parts + last
        return (*parts, f"layers.{check_index('layer', self.layer, spec.n_layers)}.*")


def read(address: str) -> Wanted:
    """The parts of an address; TransformerLens' names and axes are understood as well.

    Raises:
        UsageError: it is none, or names nothing.
    """
    found = FORM.fullmatch(address.strip())
    if found is None:
        raise UsageError(
            f"{address or 'nothing'} is not the address of a number",
            hint="a value's name with its place in brackets: layers.0.heads.0.weights[5,0]",
        )
    name, inside = found[1].strip(), found[2]
    try:
        at = [int(part) for part in inside.split(",")]
    except ValueError:
        raise UsageError(f"[{inside}] must hold whole numbers with commas between them") from None
    if name == PROBABILITIES:
        return Wanted(address, None, None, tuple(at))
    if name in BY_KEY and name not in BY_NAME:
        full = BY_KEY[name].name.format(l=0, h=0)
        raise UsageError(f"{name} is in every layer: say which", hint=f"{full}[{inside}]")
    given = parse(name)
    head = given.head
    if given.by_alias and given.point.per_head and len(at) > 1:
        head = at.pop(0 if given.point.alias.endswith(HEAD_FIRST) else 1)
    return Wanted(address, given, head, tuple(at))


def find(model: Model, trace: Trace, wanted: Wanted) -> Place:
    """The number in this pass; a logit or a probability without a token is the likeliest one's.

    Raises:
        UsageError: the indices do not fit the value, or the model has no such value.
    """
    s = model.spec
    point = None if wanted.address is None else value_of(trace, wanted.address, wanted.at)
    layer = None if wanted.layer is None else check_index("layer", wanted.layer, s.n_layers)
    head = None if wanted.head is None else check_index("head", wanted.head, s.n_heads)
    if head is not None and wanted.counts_groups(point):
        head *= s.n_heads // s.n_kv_heads
    place = Place(model, trace, point.key if point else "logits", layer, head, wanted.at)
    values = trace[place.full(place.key)]
    at = wanted.at
    if place.key == "logits" and len(at) == 1:
        t = check_index("token", at[0], len(values))
        at = (t, int(values[t].argmax()))
    axes = (point.axes if point else "T V").split()
    if len(at) != len(axes):
        names = ", ".join(WORDS[axis] for axis in axes)
        numbers = "one number" if len(axes) == 1 else f"{len(axes)} numbers"
        raise UsageError(f"{wanted.text} must say {names}: {numbers} in brackets")
    pairs = zip(at, axes, values.shape, strict=True)
    return place.of(place.key, *(check_index(WORDS[axis], i, n) for i, axis, n in pairs))


def value_of(trace: Trace, address: Address, at: tuple[int, ...]) -> HookPoint:
    """The value that an address means in this model.

    Raises:
        UsageError: it is TransformerLens' scale of a norm, which is made of one of ours.
    """
    point = trace.resolved(address).point
    if address.by_alias and point.alias.endswith("hook_scale"):
        name, words = point.name.format(l=address.layer), point.key.rpartition(".")[2]
        asked = point.alias.format(l=address.layer)
        made = f"{asked} is sqrt({words.replace('_', ' ')} + eps)"
        raise UsageError(made, hint=f"explain {name}[{at[0]}]")
    return point


WORDS = {
    "T": "token",
    "S": "token read from",
    "d": "dimension",
    "d_h": "dimension",
    "H*d_h": "dimension",
    "F": "unit",
    "V": "id",
}
