"""What each part of a block reads, for every wiring of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gptscope.engine.trace import Trace

# Part or value of a block -> the values whose sum it is, or reads.
SOURCES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "pre_norm": {
        "ln1": ("input",),
        "attention": ("ln1.out",),
        "resid_after_attn": ("input", "attn_out"),
        "ln2": ("resid_after_attn",),
        "mlp": ("ln2.out",),
        "output": ("resid_after_attn", "mlp_out"),
    },
    "post_norm": {
        "attention": ("input",),
        "ln1": ("input", "attn_out"),
        "resid_after_attn": ("ln1.out",),
        "mlp": ("resid_after_attn",),
        "ln2": ("resid_after_attn", "mlp_out"),
        "output": ("ln2.out",),
    },
}
Value = tuple[str, int | None]  # key and layer


def sources(trace: Trace, part: str, layer: int | None) -> list[Value]:
    """The values whose sum a part reads: `attention`, `mlp`, `ln1`, `ln2`, `ln_final`."""
    if part == "ln_final":
        return [("output", trace.spec.n_layers - 1)]
    return [(key, layer) for key in SOURCES[trace.spec.wiring][part]]


def summands(trace: Trace, key: str, layer: int | None) -> list[Value]:
    """The parts whose sum this is, from the embeddings on, in the order of the pass.

    Where a norm stands after a sum, the last norm's output is the only part.
    """
    if key == "input":
        return (
            summands(trace, "output", layer - 1) if layer else summands(trace, "embeddings", None)
        )
    if key == "embeddings":
        tables = ("token_embeddings", "position_embeddings")
        return [(table, None) for table in tables if (table, None) in trace.values]
    keys = SOURCES[trace.spec.wiring].get(key)
    if keys is None:  # a value of its own, not a sum
        return [(key, layer)]
    return [value for one in keys for value in summands(trace, one, layer)]
