"""Which values of a pass are wanted: `weights`, `layers.0.heads.1.q`, `layers.*.ln1.mean`."""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from gptscope.engine.hook_points import BY_KEY, HOOK_POINTS, Address, parse
from gptscope.errors import UsageError, check_index


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
    patterns = [_pattern(entry, n_layers, n_heads) for entry in entries]

    def wanted(key: str, layer: int | None) -> bool:
        return any(fnmatchcase(_name(key, layer), pattern) for pattern in patterns)

    return wanted


def _name(key: str, layer: int | None) -> str:
    """The full name with a star for the heads, which are kept together."""
    return BY_KEY[key].name.format(l=layer, h="*")


def _pattern(entry: str, n_layers: int, n_heads: int) -> str:
    if entry in BY_KEY:
        return BY_KEY[entry].name.format(l="*", h="*")
    if "*" not in entry:
        address = parse(entry)
        _check(address, n_layers, n_heads)
        return _name(address.point.key, address.layer)
    for point in HOOK_POINTS:  # a pattern of TransformerLens' names stands for one of ours
        if entry == point.alias.format(l="*"):
            return point.name.format(l="*", h="*")
    for head in re.findall(r"\bheads\.(\d+)", entry):
        check_index("head", int(head), n_heads)
    pattern = re.sub(r"\bheads\.[^.]+", "heads.*", entry)
    names = (
        point.name.format(l=layer, h="*") for point in HOOK_POINTS for layer in range(n_layers)
    )
    if not any(fnmatchcase(name, pattern) for name in names):
        raise UsageError(f"no value is called {entry}")
    return pattern


def _check(address: Address, n_layers: int, n_heads: int) -> None:
    if address.layer is not None:
        check_index("layer", address.layer, n_layers)
    if address.head is not None:
        check_index("head", address.head, n_heads)
