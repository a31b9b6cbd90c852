"""What each part of a block reads, for every wiring of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.engine.hook_points import BY_KEY

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
NORMS = (  # all that a value of the stream may go through, as they are called in a trace
    "embed_norm",
    "ln_final",
    *(f"layers.*.{n}" for n in ("ln1", "ln1_post", "ln2", "ln2_post")),
)
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


def reads(trace: Trace, value: Value) -> list[Value]:
    """The values whose sum this one is, or the norm of whose sum; none where a part or table is."""
    key, layer = value
    if key.endswith(".out"):
        return sources(trace, key.removesuffix(".out"), layer)
    if key == "input":
        return [("output", layer - 1) if layer else ("embeddings", None)]
    if key == "embeddings":
        normed = ("embed_norm.out", None) not in trace.lacks
        return [("embed_norm.out", None)] if normed else tables(trace)
    return sources(trace, key, layer) if key in SOURCES[trace.spec.wiring] else []


def summands(trace: Trace, key: str, layer: int | None) -> list[Value]:
    """The parts whose sum this is, from the embeddings on, in the order of the pass.

    Where a norm stands after a sum, the last norm's output is the only part.
    """
    parts = [] if key.endswith(".out") else reads(trace, (key, layer))
    return [one for part in parts for one in summands(trace, *part)] or [(key, layer)]


def end(trace: Trace) -> Value:
    """Where the stream ends: the value that the output matrices read."""
    if ("ln_final.out", None) in trace.lacks:
        return "output", trace.spec.n_layers - 1
    return "ln_final.out", None


def way(trace: Trace, start: Value, goal: Value) -> list[Value]:
    """The values on the way back from one of the stream to a part of it, both ends included.

    Raises:
        KeyError: it is no part of it.
    """
    came = back_from(trace, start)
    path, at = [goal], came[goal]
    while at is not None:
        path.append(at)
        at = came[at]
    return path[::-1]


def leads_to(trace: Trace, start: Value, goal: Value) -> bool:
    """Whether a value of the stream is a sum, or the norm of a sum, that this one is a part of."""
    return goal in back_from(trace, start)


def back_from(trace: Trace, start: Value) -> dict[Value, Value | None]:
    """Each value on the ways back from this one, and the value that reads it."""
    came: dict[Value, Value | None] = {start: None}
    to_do = [start]
    while to_do:
        value = to_do.pop()
        for one in reads(trace, value):
            came[one] = value
            to_do.append(one)
    return came


def norms_between(trace: Trace, start: Value, goal: Value) -> list[str]:
    """The norms on the way back from a value of the stream to a part that it is the sum of.

    Raises:
        KeyError: it is no part of it.
    """
    values = way(trace, start, goal)[:-1]
    return [full_name(value).removesuffix(".out") for value in values if value[0].endswith(".out")]


def full_name(value: Value) -> str:
    """The name of a value in the trace."""
    key, layer = value
    return BY_KEY[key].name.format(l=layer)


def tables(trace: Trace) -> list[Value]:
    """The rows that embeddings are the sum of."""
    return [(table, None) for table in TABLES if (table, None) in trace.values]


def _there(trace: Trace, key: str, layer: int | None) -> str:
    """What stands in the place of a value in this model."""
    norm = f"{BETWEEN[key]}.out" if key in BETWEEN else ""
    if norm and (norm, layer) not in trace.lacks:
        return norm
    return "ln1.out" if (key, layer) in trace.lacks and key == "ln2.out" else key
