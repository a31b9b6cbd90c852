"""Which values a pattern names: `weights`, `layers.0.*`, `layers.2:5.heads.*.out`, an alias."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase, translate
from typing import TYPE_CHECKING

from gptscope.engine.hook_points import BY_KEY, HOOK_POINTS, parse
from gptscope.errors import UsageError, check_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gptscope.engine.hook_points import HookPoint

NUMBERS = r"(\d{1,9}|\d{0,9}:\d{0,9})"  # 2:5 is 2, 3 and 4, as in Python
LAYER = re.compile(rf"\b(?P<word>layers|blocks)\.{NUMBERS}(?=\.|$)", re.ASCII)
HEAD = re.compile(r"\bheads\.([^.]+)")


@dataclass(frozen=True)
class Named:
    """A value that a pattern names, in one layer if it is in one, of some heads if it has heads."""

    point: HookPoint
    layer: int | None
    heads: Sequence[int] = ()
    alias: str = ""  # the name in TransformerLens, if it was found by that


def named(pattern: str, n_layers: int, n_heads: int) -> list[Named]:
    """Every value that a key, a name, an alias, or a pattern of them with stars and ranges means.

    Raises:
        UsageError: nothing is called so, or a layer or a head is out of range.
    """
    if pattern in BY_KEY:
        return everywhere(BY_KEY[pattern], range(n_layers), range(n_heads))
    head, layer = HEAD.search(pattern), LAYER.search(pattern)
    heads = chosen("head", head[1], n_heads) if head else range(n_heads)
    layers = chosen("layer", layer[2], n_layers) if layer else range(n_layers)
    plain = HEAD.sub("heads.*", pattern)
    found = list(matching(LAYER.sub(r"\g<word>.{l}", plain), layers, heads))
    if not found:
        parse(plain.replace("*", "0"))  # says which name is the nearest
        raise UsageError(f"no value is called {pattern}")
    return found


def everywhere(point: HookPoint, layers: Sequence[int], heads: Sequence[int]) -> list[Named]:
    """A value in each of these layers, if it is in one, and of these heads, if it has heads."""
    inside: Sequence[int | None] = layers if "{l}" in point.name else (None,)
    return [Named(point, layer, heads if point.per_head else ()) for layer in inside]


def matching(pattern: str, layers: Sequence[int], heads: Sequence[int]) -> Iterator[Named]:
    """What a pattern means in these layers; {l} in it is the layer."""
    wanted = {layer: like(pattern.replace("{l}", str(layer))) for layer in layers}
    for point in HOOK_POINTS:
        for one in everywhere(point, layers, heads):
            at = wanted[layers[0] if one.layer is None else one.layer]
            names = (name for name in point.names if at(name.format(l=one.layer, h="*")))
            name = next(names, None)
            if name is not None:
                yield replace(one, alias="" if name == point.name else name)


def like(pattern: str) -> Callable[[str], object]:
    """Tells whether a name is like a pattern with stars."""
    return re.compile(translate(pattern)).match


def chosen(what: str, written: str, count: int) -> Sequence[int]:
    """The layers or heads of a number, a range, or a pattern with stars.

    Raises:
        UsageError: one is out of range, or there are none.
    """
    if re.fullmatch(NUMBERS, written, re.ASCII) is None:  # stars
        some: Sequence[int] = [i for i in range(count) if fnmatchcase(str(i), written)]
        if not some:
            raise UsageError(f"no {what} is called {written}")
        return some
    if ":" not in written:
        return (check_index(what, int(written), count),)
    first, last = (int(end) if end else None for end in written.split(":"))
    some = range(count)[first:last]
    if not some or (last or 0) > count:
        raise UsageError(f"{what}s {written} are out of range: there are {what}s 0 to {count - 1}")
    return some
