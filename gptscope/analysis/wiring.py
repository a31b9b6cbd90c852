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
    "norm_of_parts": {
        "attention": ("input",),
        "ln1": ("attn_out",),
        "resid_after_attn": ("input", "ln1.out"),
        "mlp": ("resid_after_attn",),
        "ln2": ("mlp_out",),
        "output": ("resid_after_attn", "ln2.out"),
    },
    "parallel": {
        "ln1": ("input",),
        "attention": ("ln1.out",),
        "ln2": ("input",),
        "mlp": ("ln2.out",),
        "output": ("input", "attn_out", "mlp_out"),
    },
    "norm_in_stream": {
        "ln1": ("input",),
        "attention": ("ln1.out",),
        "resid_after_attn": ("ln1.out", "attn_out"),
        "ln2": ("resid_after_attn",),
        "mlp": ("ln2.out",),
        "output": ("ln2.out", "mlp_out"),
    },
}
TABLES = ("token_embeddings", "position_embeddings")
# A norm of what a part adds, where there is one, stands between the part and its sum.
BETWEEN = {"attn_out": "ln1_post", "mlp_out": "ln2_post"}
Value = tuple[str, int | None]  # key and layer


def sources(trace: Trace, part: str, layer: int | None) -> list[Value]:
    """The values whose sum a part reads: `attention`, `mlp`, or a norm."""
    if part == "ln_final":
        return [("output", trace.spec.n_layers - 1)]
    if part == "embed_norm":
        return tables(trace)
    for added, norm in BETWEEN.items():
        if part == norm:
            return [(added, layer)]
    keys = SOURCES[trace.spec.wiring][part]
    return [(_there(trace, key, layer), layer) for key in keys]


def summands(trace: Trace, key: str, layer: int | None) -> list[Value]:
    """The parts whose sum this is, from the embeddings on, in the order of the pass.

    Where a norm stands after a sum, the last norm's output is the only part.
    """
    if key == "input":
        return (
            summands(trace, "output", layer - 1) if layer else summands(trace, "embeddings", None)
        )
    if key == "embeddings":
        normed = ("embed_norm.out", None) not in trace.lacks
        return [("embed_norm.out", None)] if normed else tables(trace)
    if key not in SOURCES[trace.spec.wiring]:  # a value of its own, not a sum
        return [(key, layer)]
    return [
        value for one, where in sources(trace, key, layer) for value in summands(trace, one, where)
    ]


def tables(trace: Trace) -> list[Value]:
    """The rows that embeddings are the sum of."""
    return [(table, None) for table in TABLES if (table, None) in trace.values]


def _there(trace: Trace, key: str, layer: int | None) -> str:
    """What stands in the place of a value in this model."""
    norm = f"{BETWEEN[key]}.out" if key in BETWEEN else ""
    if norm and (norm, layer) not in trace.lacks:
        return norm
    return "ln1.out" if (key, layer) in trace.lacks and key == "ln2.out" else key
