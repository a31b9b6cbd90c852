"""What each layer would have said: the stream read as if no layer came after it (logit lens).

nostalgebraist 2020, "interpreting GPT: the logit lens". Every state of the stream goes through the
model's own end: the last norm with its statistics taken anew, the output matrix, scale, bias, cap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gptscope.analysis.information import divergence, entropy, softmax_and_logs
from gptscope.engine.forward import unembed
from gptscope.engine.ids import in_vocabulary
from gptscope.engine.sampling import rank, ranked
from gptscope.errors import UsageError, check_index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gptscope.engine.trace import Trace
    from gptscope.model.weights import Model

Array = NDArray[np.floating[Any]]
Ids = NDArray[np.int64]

STATES = ("resid_after_attn", "output")  # of the stream in a block, in the order of the pass
AT_ONCE = 1 << 23  # logits in memory


@dataclass(frozen=True, eq=False)
class Lens:
    """What each of R states of the stream says after each of P tokens; the last state is the end.

    Where logits are not numbers, entropy, KL divergence and probabilities are NaN, and ranks are 0.
    """

    rows: tuple[str, ...]  # the names of the states, in the order of the pass
    positions: tuple[int, ...]
    answers: tuple[int, ...]  # the id that is rated after each token
    top_ids: Ids  # [R, P, k], the likeliest first
    top_probabilities: Array  # [R, P, k]
    entropy: Array  # [R, P], bits: between 0 and log2 V
    kl: Array  # [R, P], bits: KL(end || row) = sum of p_end log2(p_end / p_row); 0 in the last row
    rank: Ids  # [R, P], of the answer: 1 is the likeliest, among equals the lower id comes first
    probability: Array  # [R, P], of the answer
    logit: Array  # [R, P], of the answer


def lens(
    model: Model,
    trace: Trace,
    answers: int | Sequence[int] | None = None,
    positions: Sequence[int] | None = None,
    top: int = 1,
    tick: Callable[[int], object] = lambda _done: None,
) -> Lens:
    """What every state of the stream that a trace holds says; the last row is the pass's logits.

    `answers` is an id to rate, or one for each of `positions`; without, what the end finds
    likeliest. The divergence begins at the end's distribution: Belrose et al. 2023, "Eliciting
    latent predictions from transformers with the tuned lens". `tick` is called for each position.

    Raises:
        UsageError: the trace lacks the logits or the last output; a position or id out of range.
        ValueError: there are not as many answers as positions.
    """
    names, n = states(trace), len(trace.ids)
    at = [check_index("token", i, n) for i in (range(n) if positions is None else positions)]
    ids = rated(model, trace, answers, at)
    made: list[list[tuple[Any, ...]]] = []
    for answer, scores in zip(ids, logits_at(model, trace, names, at), strict=True):
        end = softmax_and_logs(scores[-1])
        made.append([cell(row, end, answer, top) for row in scores])
        tick(1)
    fields = [[[one[i] for one in rows] for rows in made] for i in range(len(made[0][0]))]
    return Lens(names, tuple(at), ids, *(np.array(f).swapaxes(0, 1) for f in fields))


def rated(
    model: Model, trace: Trace, answers: int | Sequence[int] | None, at: Sequence[int]
) -> tuple[int, ...]:
    """The id that is rated at each of these positions.

    Raises:
        UsageError: there is no position, or an id is outside the vocabulary.
    """
    if not at:
        raise UsageError("there is no position to look at")
    if answers is None:
        answers = [int(trace["logits"][i].argmax()) for i in at]
    asked = [answers] * len(at) if isinstance(answers, int) else answers
    return tuple(in_vocabulary(model.spec, asked).tolist())


def states(trace: Trace) -> tuple[str, ...]:
    """The states of the stream that a trace holds, by name, in the order of the pass.

    Raises:
        UsageError: the last block's output is not among them.
    """
    last = trace.spec.n_layers - 1
    _ = trace[f"layers.{last}.output"]
    kept = [
        f"layers.{layer}.{key}"
        for layer in range(last + 1)
        for key in STATES
        if (key, layer) in trace.values
    ]
    return (*(("embeddings",) if ("embeddings", None) in trace.values else ()), *kept)


def logits_at(
    model: Model, trace: Trace, names: Sequence[str], positions: Sequence[int]
) -> Iterator[Array]:
    """For each position the logits of every state [R, V], few positions at once."""
    n_vocab = trace["logits"].shape[1]
    n = max(1, AT_ONCE // (len(names) * n_vocab))
    for first in range(0, len(positions), n):
        part = [*positions[first : first + n]]
        ends = trace["logits"][part][:, None]  # [n, 1, V]; the pass's own, to the last bit
        if len(names) == 1:
            yield from ends
            continue
        stream = np.stack([trace[name][part] for name in names[:-1]], axis=1)  # [n, R-1, d]
        logits = unembed(model, stream.reshape(-1, stream.shape[-1]))  # [n * (R-1), V]
        yield from np.concatenate([logits.reshape(len(part), -1, n_vocab), ends], axis=1)


def cell(logits: Array, end: tuple[Array, Array], answer: int, top: int) -> tuple[Any, ...]:
    """One position of one state: the fields of `Lens` from `top_ids` on."""
    p, logs = softmax_and_logs(logits)
    wrong = bool(np.isnan(p).any())
    best = np.arange(min(top, len(p))) if wrong else ranked(logits, top)
    return (
        best,
        p[best],
        entropy(p, logs),
        divergence(*end, logs),
        0 if wrong else rank(logits, answer),
        p[answer],
        logits[answer],
    )


def on_top_from(ranks: Ids | Sequence[int]) -> int | None:
    """The first row from which on the answer is on top in every row [R]; None if not at the end."""
    below = np.flatnonzero(np.asarray(ranks) != 1)
    first = int(below[-1]) + 1 if len(below) else 0
    return first if first < len(ranks) else None


def came_next(trace: Trace) -> tuple[int, ...]:
    """The id that followed each token [T]; after the last one, what the pass finds likeliest."""
    return (*trace.ids[1:], int(trace["logits"][-1].argmax()))
