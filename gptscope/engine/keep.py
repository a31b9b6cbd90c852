"""Which values of a pass are wanted: `weights`, `layers.0.heads.1.q`, `blocks.*.hook_resid_*`."""

from collections.abc import Callable, Sequence

from gptscope.engine.names import named


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
    found = (one for entry in entries for one in named(entry, n_layers, n_heads))
    wanted = {(one.point.key, one.layer) for one in found}  # heads are kept together
    return lambda key, layer: (key, layer) in wanted
