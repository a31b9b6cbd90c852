"""One number of a pass, taken apart: every term behind it, with arithmetic that gives it back.

`EXPLAINERS` has a function for every value of `HOOK_POINTS`; it yields records, the last of which
comes to the number. All of it is computed in float64 from the values of the trace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gptscope.analysis.explain import attention, mlp, norms, output, residual
from gptscope.analysis.explain.address import PROBABILITIES, find, read
from gptscope.analysis.explain.records import Explanation, Part
from gptscope.engine.hook_points import BY_KEY
from gptscope.engine.sampling import Sampling, distribution

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gptscope.analysis.explain.place import Place
    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Model

Explainer = Callable[["Place"], "Iterator[Part]"]
PLAIN = Sampling()
CHANCE = "the chance to be the next token"
NORM_NAMES = ("embed_norm", "ln1", "ln1_post", "ln2", "ln2_post", "ln_final")
_NORM: Mapping[str, Explainer] = {
    "mean": norms.mean,
    "variance": norms.variance,
    "mean_square": norms.mean_square,
    "normalized": norms.normalized,
    "out": norms.norm_out,
}
EXPLAINERS: Mapping[str, Explainer] = {
    "token_embeddings": residual.token_row,
    "position_embeddings": residual.position_row,
    "embeddings": residual.stream,
    "input": residual.stream,
    "q_before_norm": attention.projected,
    "k_before_norm": attention.projected,
    "q_before_rope": attention.normed,
    "k_before_rope": attention.normed,
    "q": attention.query_or_key,
    "k": attention.query_or_key,
    "v": attention.projected,
    "scores": attention.score,
    "scaled_masked": attention.scaled,
    "weights": attention.weight,
    "out": attention.mixed,
    "attn_concat": attention.concatenated,
    "attn_out": attention.attended,
    "resid_after_attn": residual.stream,
    "mlp_hidden": mlp.hidden_unit,
    "mlp_gate": mlp.hidden_unit,
    "mlp_up": mlp.hidden_unit,
    "mlp_act": mlp.active_unit,
    "mlp_out": mlp.fed,
    "output": residual.stream,
    "logits_before_cap": output.logit,
    "logits": output.logit,
    **{f"{norm}.{key}": f for norm in NORM_NAMES for key, f in _NORM.items()},
}


def explain(model: Model, trace: Trace, address: str, how: Sampling = PLAIN) -> Explanation:
    """All that one number was made of: `layers.0.heads.0.weights[5,0]`, `probabilities[-1,613]`.

    `how` counts for probabilities alone.

    Raises:
        UsageError: there is no such number, or the trace lacks a value that it was made of.
    """
    wanted = read(address)
    place = find(model, trace, wanted)
    if wanted.address is not None:
        parts, meaning = EXPLAINERS[place.key](place), BY_KEY[place.key].meaning
        return Explanation(place.name, meaning, place.number(), tuple(parts), positions(place))
    parts, (t, v) = output.probability(place, how), place.at
    name = place.name.replace("logits", PROBABILITIES)
    value = float(distribution(trace.logits[t], how)[v])
    return Explanation(name, CHANCE, value, tuple(parts), positions(place))


def positions(p: Place) -> tuple[tuple[str, int], ...]:
    """The tokens that the indices of a place speak of."""
    reads = BY_KEY[p.key].axes.endswith("S")
    return (("token", p.at[0]), *((("reads from", p.at[1]),) if reads else ()))
