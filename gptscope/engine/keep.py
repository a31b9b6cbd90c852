"""Which values of a pass are wanted: `weights`, `layers.0.heads.1.q`, `blocks.*.hook_resid_*`."""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from gptscope.engine.hook_points import BY_KEY, HOOK_POINTS, HookPoint, parse
from gptscope.errors import UsageError, check_index

Place = tuple[str, int | None]  # key and layer; heads are kept together


def matcher(
    keep: Sequence[str] | str | None, n_layers: int, n_heads: int
) -> Callable[[str, int | None], bool]:
    """Tells whether the value of a key in a layer is wanted; None wants everything.

    Raises:
        UsageError: an entry names nothing in a model of so many layers and heads.
    """
    if keep is None:
        return lambda _key, _layer: True
    entries = [keep] if isinstance(keep, str) else keep
    wanted = {place for entry in entries for place in places(entry, n_layers, n_heads)}
    return lambda key, layer: (key, layer) in wanted


def places(entry: str, n_layers: int, n_heads: int) -> list[Place]:
    """Every value that an entry names."""
    if entry in BY_KEY:
        return [(entry, layer) for layer in layers(BY_KEY[entry], n_layers)]
    for head in re.findall(r"\bheads\.(\d{1,9})\b", entry):
        check_index("head", int(head), n_heads)
    for layer in re.findall(r"\b(?:layers|blocks)\.(\d{1,9})(?=\.|$)", entry):
        check_index("layer", int(layer), n_layers)
    if "*" not in entry:
        address = parse(entry)
        return [(p.key, address.layer) for p in address.candidates or (address.point,)]
    pattern = re.sub(r"\bheads\.(\d{1,9}|\*)(?=\.)", "heads.*", entry)
    found = [
        (point.key, layer)
        for point in HOOK_POINTS
        for layer in layers(point, n_layers)
        if any(fnmatchcase(name.format(l=layer, h="*"), pattern) for name in point.names)
    ]
    if not found:
        raise UsageError(f"no value is called {entry}")
    return found


def layers(point: HookPoint, n_layers: int) -> Sequence[int | None]:
    """The layers that have this value."""
    return range(n_layers) if "{l}" in point.name else [None]
