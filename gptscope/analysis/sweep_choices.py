"""What can be swept, what can be put in its place, and what can be measured: an entry each.

The command's options are made of these tables, and help shows them: NumPy is not loaded here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from gptscope.analysis.sweep.lanes import Seen
    from gptscope.analysis.sweep.sites import Site

    Array = NDArray[np.floating[Any]]
    Make = Callable[[Array, Seen], Any]  # of a value, and what other passes noted
    Measure = Callable[[Array], float]  # logits [V] -> a number
    Wanted = Mapping[int, float]  # token id -> how often it counts


@dataclass(frozen=True)
class Kind:
    """Values of one kind: those of all heads, of all layers, or of all tokens in all layers."""

    key: str  # of the hook point
    by: Literal["head", "layer", "token"]
    meaning: str
    patched_only: bool = False  # has no zero or mean of its own
    rows: str = ""  # what the rows are, where that must be said


KINDS: Mapping[str, Kind] = {
    "heads": Kind("out", "head", "what each head gives"),
    "attn": Kind("attn_out", "layer", "what attention adds"),
    "mlp": Kind("mlp_out", "layer", "what the feed-forward layer adds"),
    "resid": Kind(
        "input",
        "token",
        "the residual stream",
        rows="A row is the stream as it enters that layer; end: as it leaves the last.",
    ),
    "head-pattern": Kind("weights", "head", "which tokens each head reads", patched_only=True),
    "head-value": Kind("v", "head", "what each head reads from a token", patched_only=True),
}


@dataclass(frozen=True)
class Replacement:
    """What is put in the place of a value; in texts {n} is how many tokens there are."""

    make: Callable[[Site], Make]
    what: str  # in the help
    done: str  # to a value, in a title
    given: str  # by a sender, in place of its own
    meaning: str
    alone: str = ""  # why nothing changes where there is one token


def mean(site: Site) -> Make:
    """The mean over the tokens of the pass, for each of them."""

    def made(value: Array, _: Seen) -> Array:
        average: Array = (value if site.row is None else value[site.row]).mean(axis=0)
        return average

    return made


def zero(_: Site) -> Make:
    """0 in its place."""
    return lambda _value, _seen: 0.0


REPLACEMENTS: Mapping[str, Replacement] = {
    "mean": Replacement(
        mean,
        "the mean over tokens",
        "replaced by its mean over tokens",
        "its mean over the {tokens} of this text",
        "Each number is from a pass of its own, in which one value is its mean over the {n} tokens "
        "of this text: what it says everywhere stays, what it says here goes. --with zero takes "
        "both.",
        "With one token, the mean over tokens is the value itself: --with zero takes it away.",
    ),
    "zero": Replacement(
        zero,
        "0",
        "set to zero",
        "0",
        "Each number is from a pass of its own, in which one value is 0. That takes away what it "
        "says everywhere as well, which the parts after it have learned to expect: --with mean "
        "keeps it.",
    ),
}


@dataclass(frozen=True)
class Metric:
    """A number of the logits after a pass: of the tokens asked about, or how far all have moved."""

    called: str
    measure: Callable[[Wanted, Array], Measure]  # of the tokens, and the logits [V] before
    is_distance: bool = False  # from the logits before, of all tokens
    what: str = ""  # in the help, of a distance
    unit: str = ""  # of a distance
    meaning: str = ""


def logit(wanted: Wanted, _: Array) -> Measure:
    """The sum of some logits, each so many times: of the answer, less that of another."""
    return lambda logits: total(logits, wanted)


def probability(wanted: Wanted, _: Array) -> Measure:
    """The same of the probabilities."""
    from gptscope.analysis.information import softmax_and_logs

    return lambda logits: total(softmax_and_logs(logits)[0], wanted)


def total(numbers: Array, wanted: Wanted) -> float:
    """The sum of these tokens' numbers, each so many times."""
    return sum(times * float(numbers[i]) for i, times in wanted.items())


def kl(_: Wanted, before: Array) -> Measure:
    """How far logits are from those of another pass [V]: KL(before || after), in bits.

    Kullback and Leibler 1951.
    """
    from gptscope.analysis.information import divergence, softmax_and_logs

    p, logs = softmax_and_logs(before)
    return lambda logits: divergence(p, logs, softmax_and_logs(logits)[1])


METRICS: Mapping[str, Metric] = {
    "logit": Metric("logit", logit),
    "prob": Metric("probability", probability),
    "kl": Metric(
        "KL",
        kl,
        is_distance=True,
        what="how far the whole prediction moves",
        unit="bits",
        meaning="KL(before || after) of all next tokens: 0 bits where nothing changes.",
    ),
}
