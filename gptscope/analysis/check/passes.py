"""What must hold in every pass, whatever the weights are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.check.result import Result, impossible
from gptscope.analysis.errors_of_values import compared
from gptscope.engine.cache import Cache
from gptscope.engine.forward import forward
from gptscope.engine.hook_points import parse
from gptscope.engine.trace import trace
from gptscope.model.blocks import outlines
from gptscope.model.files import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Model

ROW_SUM = 1e-5  # rounding of a row's sum: at most eps times the square root of the tokens
MOVED = 1e-5  # of a value's scale: matrices of other rows may be multiplied in another order
FEW = 3


def pass_results(model: Model, made: Trace) -> Iterator[Result]:
    """Of a pass that is finite: rows that sum to 1, no look ahead, and the cache."""
    yield rows_result(made)
    yield ahead_result(model, made)
    yield cache_result(model, made)


def finite_result(made: Trace) -> Result:
    """The first value of the pass that holds NaN or an infinity that no mask has put there."""
    bad = [name for name in made.names() if not is_fine(name, made[name])]
    faults = []
    if bad:
        n = int((~np.isfinite(made[bad[0]])).sum())
        more = f"; {counted(len(bad) - 1, 'later value')} as well" if len(bad) > 1 else ""
        faults.append(f"the first value of the pass that is not finite is {bad[0]} ({n:,}){more}")
    looked = f"{counted(len(made.names()), 'value')} of a pass"
    return Result("finite pass", looked, len(bad), 0, tuple(faults))


def is_fine(name: str, x: NDArray[Any]) -> bool:
    """Whether all numbers are finite, or hidden by the mask."""
    hidden = (x == -np.inf) if name.endswith(".scaled_masked") else False
    return bool((np.isfinite(x) | hidden).all())


def rows_result(made: Trace) -> Result:
    """Every row of attention weights sums to 1."""
    names = [name for name in made.names() if name.endswith(".weights")]
    off = {n: float(np.abs(made[n].sum(-1, dtype=np.float64) - 1).max()) for n in names}
    faults = [f"a row of {name} sums to {1 + by:.6f} or so, not to 1" for name, by in off.items()]
    wrong = [fault for fault, by in zip(faults, off.values(), strict=True) if by > ROW_SUM]
    looked = f"rows of {counted(len(names), 'head')}"
    return Result("attention rows", looked, max(off.values()), ROW_SUM, tuple(wrong[:FEW]))


def ahead_result(model: Model, made: Trace) -> Result:
    """The last token changed: no value of the tokens before it may move."""
    if len(made.ids) < 2:
        return impossible("look ahead", "the text has one token")
    *before, last = made.ids
    other = trace(model, (*before, (last + 1) % model.spec.n_vocab))
    moved = {name: movement(made[name], other[name]) for name in made.names() if by_rows(name)}
    faults = [
        f"{name} of earlier tokens moves when the last token changes: later tokens leak into it"
        for name, by in moved.items()
        if by > MOVED
    ]
    if not model.spec.causal:
        faults[1:] = ["the config says causal: false, so every token sees those it is to predict"]
    looked = "the last token changed, how far earlier rows move"
    return Result("look ahead", looked, max(moved.values()), MOVED, tuple(faults[:2]))


def by_rows(name: str) -> bool:
    """Whether a value has one row for each token, and none of another token's numbers in it."""
    return "S" not in parse(name).point.axes


def movement(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The largest difference of all rows but the last, in parts of the largest number."""
    scale = float(np.abs(a).max(initial=0)) or 1.0
    return float(np.abs(a[:-1] - b[:-1]).max(initial=0)) / scale


def cache_result(model: Model, made: Trace) -> Result:
    """Token by token with kept keys and values, and all at once: the same logits."""
    if not model.spec.causal:
        return impossible("cache", "where every token sees the whole text, nothing can be kept")
    if stretches(model, len(made.ids)):
        return impossible("cache", "positions turn otherwise in a longer text than in a short one")
    cache, ids = Cache(model.spec, model.dtype), np.array(made.ids, np.int64)
    rows = [forward(model, ids[i : i + 1], cache=cache)[0] for i in range(len(ids))]
    one = compared("logits", np.stack(rows), made["logits"])
    sentence = f"logits differ by {one.error:.1e} of their scale when keys and values are kept"
    looked = "logits token by token against all at once"
    return Result("cache", looked, one.error, one.limit, (sentence,) * (not one.agrees))


def stretches(model: Model, length: int) -> bool:
    """Whether keys that are kept from a shorter text are turned otherwise: LongRoPE, dynamic."""
    turnings = (block.attention.turning for block in outlines(model.blocks))
    return any(t is not None and t.speeds_at(1) != t.speeds_at(length) for t in turnings)
