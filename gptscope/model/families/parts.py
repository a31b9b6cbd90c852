"""The parts that most families store alike: matrices as [out, in], norms, the output table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gptscope.errors import ModelError
from gptscope.model.weights import Linear, Norm

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gptscope.model.config import Config
    from gptscope.model.tensors import Tensors
    from gptscope.model.weights import Table

WRAPPERS = ("_orig_mod.", "module.")  # torch.compile, data parallel
KINDS = {"full_attention": False, "sliding_attention": True}


def without(*prefixes: str) -> Callable[[str], str]:
    """A function that takes these prefixes, and what training puts around, from a name."""

    def rename(name: str) -> str:
        while name.startswith((*WRAPPERS, *prefixes)):
            name = name.partition(".")[2]
        return name

    return rename


def linear(tensors: Tensors, name: str, n_in: int, n_out: int, *, bias: bool = False) -> Linear:
    """A matrix stored as [out, in], and its bias if the family has one."""
    weight = tensors.take(f"{name}.weight", n_out, n_in)
    return Linear(weight.T, tensors.take(f"{name}.bias", n_out) if bias else None)


def norm(tensors: Tensors, name: str, d: int, *, shift: bool = False, offset: float = 0.0) -> Norm:
    """A gain, stored less `offset`, and a shift if the family has one."""
    gain = tensors.take(f"{name}.weight", d)
    gain = gain + gain.dtype.type(offset) if offset else gain
    return Norm(gain, tensors.take(f"{name}.bias", d) if shift else None)


def apart(joined: Linear, *widths: int) -> list[Linear]:
    """One matrix [in, a + b + ...] as several, side by side in the file."""
    ends = np.cumsum(widths)[:-1]
    weights = np.split(joined.weight, ends, axis=1)
    biases = [None] * len(widths) if joined.bias is None else np.split(joined.bias, ends)
    return [Linear(w, b) for w, b in zip(weights, biases, strict=True)]


def halves(part: Linear, d_head: int, n_turned: int) -> Linear:
    """Queries or keys whose pairs lie side by side, (0, 1), (2, 3), put as (i, i + P).

    In each head, the first `n_turned` = 2 P numbers are put in the new order.
    """
    pairs = np.arange(n_turned).reshape(-1, 2).T.ravel()  # 0 2 4 ... 1 3 5 ...
    order = np.concatenate([pairs, np.arange(n_turned, d_head)])
    by_head = np.arange(part.weight.shape[1]).reshape(-1, d_head)[:, order].ravel()
    bias = None if part.bias is None else part.bias[by_head]
    return Linear(part.weight.T[by_head].T, bias)


def head(config: Config, tensors: Tensors, token_table: Table, *, tied: bool) -> tuple[Table, bool]:
    """The output table [V, d], and whether it is the token table; `tied` is the family's default.

    Raises:
        ModelError: the config ties the two, and the file has different ones.
    """
    tied = config.flag("tie_word_embeddings", default=tied)
    if tied and "lm_head.weight" not in tensors:
        return token_table, True
    table = tensors.table("lm_head.weight", *token_table.shape)
    if tied and not np.array_equal(np.asarray(table), np.asarray(token_table)):
        raise ModelError(
            "lm_head.weight differs from the token table, and the config ties them",
            hint="set tie_word_embeddings to false to use lm_head.weight",
        )
    return table, tied


def sliding(config: Config, n_layers: int, default: Callable[[int], bool]) -> Sequence[bool]:
    """Whether each layer looks through a window: by `layer_types`, or by the family's default.

    Raises:
        ModelError: there is a kind of layer that is not known.
    """
    kinds = config.words("layer_types", n_layers)
    if kinds is None:
        return [default(layer) for layer in range(n_layers)]
    for kind in kinds:
        if kind not in KINDS:
            known = ", ".join(KINDS)
            raise ModelError(f"{config.source}: the layer type {kind!r} is not one of: {known}")
    return [KINDS[kind] for kind in kinds]
