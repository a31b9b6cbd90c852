"""What must be said of the heads of a model: which share keys, how far they see, what is added."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.commands.attention_look import Where
    from gptscope.commands.session import Run
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Attention, Model


def built(run: Run, heads: Sequence[Where]) -> list[str]:
    """Whatever these heads have that the paper of 2017 has not."""
    from gptscope.model.blocks import outlines

    spec, blocks = run.model.spec, outlines(run.model.blocks)
    layers = {layer: blocks[layer].attention for layer, _ in heads}
    first, shown = next(iter(layers.values())), sorted({head for _, head in heads})
    said = (
        shared(spec, shown),
        *windows(run.model, layers),
        normed(first),
        scale(first, spec),
        capped(spec),
        slopes(first, shown),
    )
    return [text for text in said if text]


def shared(spec: Spec, heads: Sequence[int]) -> str:
    """Which heads read the same keys and values."""
    if spec.n_kv_heads == spec.n_heads:
        return ""
    if spec.n_kv_heads == 1:
        return "All heads share one list of keys and values, each with its own queries"
    return sharing(spec, heads).capitalize()


def sharing(spec: Spec, heads: Sequence[int]) -> str:
    """`heads 0-1 share key-value head 0, 2-3 head 1`: the groups of these heads."""
    from gptscope.analysis.info import ranges, shared_heads

    groups = [
        (ranges(group), g)
        for g, group in shared_heads(spec.n_heads, spec.n_kv_heads)
        if any(head in group for head in heads)
    ]
    (first, g), *others = groups
    more = "".join(f", {ranged} head {h}" for ranged, h in others)
    return f"heads {first} share key-value head {g}{more}"


def windows(model: Model, layers: dict[int, Attention]) -> list[str]:
    """How far back the tokens of these layers see, where that is not to the first."""
    from gptscope.analysis.info import ranges

    found: dict[int, list[int]] = {}
    for layer, attention in layers.items():
        if attention.window is not None and attention.window < model.spec.n_ctx:
            found.setdefault(attention.window, []).append(layer)
    return [
        f"In layer{'s' * (len(at) > 1)} {ranges(at)} a token sees {sight(window)}: what lies "
        "farther back is hidden"
        for window, at in found.items()
    ]


def sight(window: int) -> str:
    """So many tokens, itself among them, in words."""
    if window == 1:
        return "itself alone"
    return f"itself and the {window - 1:,} before it" if window > 2 else "itself and the one before"


def normed(attention: Attention) -> str:
    """Whether queries and keys are normed."""
    names = {"Queries": attention.q_norm, "Keys": attention.k_norm}
    having = [name for name, norm in names.items() if norm is not None]
    return f"{' and '.join(having).capitalize()} are normed before their product" if having else ""


def scale(attention: Attention, spec: Spec) -> str:
    """What scores are multiplied by, where it is not 1 / sqrt(d_h)."""
    usual = spec.d_head**-0.5
    if math.isclose(attention.scale, usual, rel_tol=1e-6):
        return ""
    root = f"1 / sqrt({spec.d_head}) = {usual:.4g}"
    return f"Scores are multiplied by {attention.scale:.4g}, not by {root}"


def capped(spec: Spec) -> str:
    """The soft cap of scores."""
    if spec.score_cap is None:
        return ""
    return f"Scaled scores are capped softly, {spec.score_cap:g} tanh(score / {spec.score_cap:g})"


def slopes(attention: Attention, heads: Sequence[int]) -> str:
    """What is taken off with the distance."""
    if attention.slopes is None:
        return ""
    each = ", ".join(f"head {head} {attention.slopes[head]:.4g}" for head in heads)
    return f"Taken off from scaled scores for every token of distance (ALiBi): {each}"
