"""Which values a model does not have, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.engine.hook_points import HOOK_POINTS
from gptscope.model.blocks import outlines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gptscope.model.weights import Block, Model

    Absent = Callable[[Model, Block], bool]

POSITIONS = {  # in words
    "learned": "a learned table of positions",
    "sinusoidal": "a computed table of positions",
    "rotary": "rotary positions, which turn queries and keys",
    "alibi": "ALiBi, which takes off from the scores with the distance",
    "none": "no positions",
}
RMS = "this model has RMS norms, which take no mean and no variance but a mean_square"
LAYER = "this model has layer norms, which take a mean and a variance, and no mean_square"
ONE_STREAM = "in this model both parts read the same stream, and there is none between them"
ONE_NORM = "in this model attention and feed-forward layer share the first norm"
NO_LAST = "this model has no norm after the last block"
GATED = "this model's hidden units have gates: ask for mlp_gate and mlp_up"

# How the key of a value begins or ends -> whether a model lacks it, and the reason.
STARTS: Mapping[str, tuple[Absent, str]] = {
    "embed_norm.": (lambda m, _: m.embed_norm is None, "this model does not norm its embeddings"),
    "ln1_post.": (
        lambda _, b: b.ln1_post is None,
        "this model has no second norm around attention",
    ),
    "ln2.": (lambda _, b: b.ln2 is None, ONE_NORM),
    "ln2_post.": (
        lambda _, b: b.ln2_post is None,
        "this model has no second norm around its units",
    ),
    "ln_final.": (lambda m, _: m.ln_final is None, NO_LAST),
    "q_before_norm": (lambda _, b: b.attention.q_norm is None, "queries have no norm here"),
    "k_before_norm": (lambda _, b: b.attention.k_norm is None, "keys have no norm here"),
    "resid_after_attn": (lambda m, _: m.spec.wiring == "parallel", ONE_STREAM),
    "mlp_hidden": (lambda _, b: b.mlp.gate is not None, GATED),
    "mlp_gate": (lambda _, b: b.mlp.gate is None, "this model's hidden units have no gates"),
    "mlp_up": (lambda _, b: b.mlp.gate is None, "this model's hidden units have no gates"),
    "logits_before_cap": (
        lambda m, _: m.spec.logit_cap is None,
        "this model does not cap its logits",
    ),
}
ENDS: Mapping[str, tuple[Absent, str]] = {
    ".mean": (lambda m, _: m.spec.norm == "rms_norm", RMS),
    ".variance": (lambda m, _: m.spec.norm == "rms_norm", RMS),
    ".mean_square": (lambda m, _: m.spec.norm != "rms_norm", LAYER),
}


def why_lacking(key: str, model: Model, layer: int | None = None) -> str | None:
    """Why a model does not have the value of this key, in this layer or in any; None if it does."""
    blocks = outlines(model.blocks)
    reasons = [
        _why(key, model, b) for b in (blocks if layer is None else blocks[layer : layer + 1])
    ]
    return None if None in reasons else reasons[0]


def lacking(model: Model) -> dict[tuple[str, int | None], str]:
    """Key and layer of every value that a model does not have, and the reason."""
    blocks = outlines(model.blocks)
    found = {}
    for point in HOOK_POINTS:
        layers: Iterable[int | None] = range(len(blocks)) if "{l}" in point.name else [None]
        for layer in layers:
            reason = _why(point.key, model, blocks[layer or 0])
            if reason is not None:
                found[point.key, layer] = reason
    return found


def _why(key: str, model: Model, block: Block) -> str | None:
    for ending, (absent, reason) in ENDS.items():
        if key.endswith(ending) and absent(model, block):
            return reason
    for start, (absent, reason) in STARTS.items():
        if key.startswith(start) and absent(model, block):
            return reason
    return _position(key, model, block)


def _position(key: str, model: Model, block: Block) -> str | None:
    kind = model.spec.positions
    place = POSITIONS.get(kind, kind)
    if key.endswith("_before_rope") and block.attention.turning is None:
        if kind == "rotary":
            return "in this layer queries and keys do not turn"
        return f"this model has {place}, so queries and keys do not turn"
    if key == "position_embeddings" and model.position_table is None:
        return f"this model has {place}, and adds none to the tokens"
    return None
