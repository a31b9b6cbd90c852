"""How much memory the values of a pass take, known before it begins."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gptscope.engine.hook_points import HOOK_POINTS
from gptscope.engine.lacking import lacking
from gptscope.errors import GptscopeError
from gptscope.model.memory import free

if TYPE_CHECKING:
    from collections.abc import Callable

    from gptscope.engine.hook_points import HookPoint
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Model

UNITS = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))
SMALL = 1 << 28  # bytes that are not worth a question to the system


def refuse_too_much(model: Model, n_tokens: int, wanted: Callable[[str, int | None], bool]) -> None:
    """Nothing, where the values that are wanted fit into memory.

    Raises:
        GptscopeError: they do not; it says how much they would take, and how much there is.
    """
    needed = bytes_kept(model, n_tokens, wanted)
    if needed > SMALL and needed > (there := free()):
        raise GptscopeError(
            f"the values of this pass would take {size(needed)}, and {size(there)} are free",
            hint="keep some of them alone (gptscope trace --keep NAME), or give a shorter text",
        )


def bytes_kept(model: Model, n_tokens: int, wanted: Callable[[str, int | None], bool]) -> int:
    """Bytes of the values that are wanted of a pass over so many tokens, and of its logits."""
    lacks, numbers = lacking(model), n_tokens * model.spec.n_vocab
    for point in HOOK_POINTS:
        layers = range(model.spec.n_layers) if "{l}" in point.name else [None]
        n = sum((point.key, layer) not in lacks and wanted(point.key, layer) for layer in layers)
        numbers += n * size_of(point, model.spec, n_tokens) * (point.key != "logits")
    return numbers * model.dtype.itemsize


def size_of(point: HookPoint, s: Spec, n_tokens: int) -> int:
    """How many numbers a value has, in all heads of a layer."""
    sizes, heads = letters(s, n_tokens), s.n_heads if point.per_head else 1
    if point.per_head and point.key[0] in "kv":
        heads = s.n_kv_heads
    return heads * math.prod(sizes[axis] for axis in point.axes.split())


def letters(s: Spec, n_tokens: int) -> dict[str, int]:
    """What the letters of hook points stand for in a pass over so many tokens."""
    few = {"T": n_tokens, "S": n_tokens, "1": 1, "H": s.n_heads, "H*d_h": s.n_heads * s.d_head}
    return {**few, "d": s.d_model, "d_h": s.d_head, "F": s.d_ff, "V": s.n_vocab}


def size(n_bytes: int) -> str:
    """A size in the unit that fits."""
    for unit, factor in UNITS:
        if n_bytes >= factor:
            return f"{n_bytes / factor:.1f} {unit}"
    return f"{n_bytes} bytes"
