"""Logits as probabilities, and what these say in bits or nats, in float64.

Shannon 1948, "A Mathematical Theory of Communication"; Kullback and Leibler 1951, "On Information
and Sufficiency". What has no probability adds nothing, though its logarithm is infinite: Cover and
Thomas 2006, "Elements of Information Theory", section 2.1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


def softmax_and_logs(logits: Array) -> tuple[Array, Array]:
    """Probabilities [V] and their natural logarithms; both NaN where logits are not numbers."""
    logs = np.asarray(logits, np.float64)
    logs = logs - logs.max()
    p = np.exp(logs)
    total = p.sum()
    p /= total
    logs -= np.log(total)
    return p, logs


def entropy(p: Array, logs: Array) -> float:
    """-sum p log2 p in bits, of probabilities [V] and their natural logarithms."""
    return mean_bits(p, -logs)


def entropies(z: Array, p: Array, total: Array) -> NDArray[np.float64]:
    """The entropy in nats of each softmax(z) [n, V]: ln(total) - sum p z / total; [n].

    p = exp(z) [n, V] and total = its sums [n]; the largest z of each row is 0.
    """
    products = np.multiply(p, z, out=np.zeros_like(p), where=p != 0)  # p ln p goes to 0 with p
    found: NDArray[np.float64] = np.log(total) - products.sum(axis=1) / total
    return found


def divergence(p: Array, logs: Array, others: Array) -> float:
    """KL(p || q) = sum p log2(p / q) in bits; infinite where only q says never.

    p [V], its natural logarithms, and those of q.
    """
    with np.errstate(invalid="ignore"):  # -inf less -inf, where neither has a chance
        nats = logs - others
    return float(np.maximum(0.0, mean_bits(p, nats)))  # rounding may leave -1e-17


def mean_bits(p: Array, nats: Array) -> float:
    """The mean of some nats [V] with these probabilities, in bits."""
    with np.errstate(invalid="ignore"):
        total = p @ nats
    if not np.isfinite(total):
        total = np.multiply(p, nats, out=np.zeros_like(p), where=p != 0).sum()
    return float(total / np.log(2)) + 0.0  # which makes -0.0 a 0.0
