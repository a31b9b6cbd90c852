"""The parts that most families store alike: matrices as [out, in], norms, the output table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gptscope.errors import ModelError
from gptscope.model.weights import Linear, Mlp, Norm

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence

    from gptscope.model.config import Config
    from gptscope.model.spec import Spec
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


def found(
    config: Config,
    names: Container[str],
    family: str,
    seen: Sequence[str],
    unseen: Sequence[str] = (),
) -> bool:
    """Whether the config says this family; or names none, and the first layer has these parts."""
    if config.has("model_type"):
        return config.says("model_type", family)
    first = "layers.0."
    return all(first + part in names for part in seen) and not any(
        first + part in names for part in unseen
    )


def usual(config: Config, values: Mapping[str, object]) -> None:
    """These keys change nothing while they say what they always say; else they stay unasked."""
    config.ask(*(key for key, value in values.items() if config.says(key, value)))


def linear(tensors: Tensors, name: str, n_in: int, n_out: int, *, bias: bool = False) -> Linear:
    """A matrix stored as [out, in], and its bias if the family has one."""
    weight = tensors.matrix(f"{name}.weight", n_out, n_in)
    return Linear(weight.T, tensors.take(f"{name}.bias", n_out) if bias else None)


def norm(tensors: Tensors, name: str, d: int, *, shift: bool = False, offset: float = 0.0) -> Norm:
    """A gain, stored less `offset`, and a shift if the family has one."""
    gain = tensors.take(f"{name}.weight", d)
    gain = gain + gain.dtype.type(offset) if offset else gain
    return Norm(gain, tensors.take(f"{name}.bias", d) if shift else None)


def mlp(tensors: Tensors, s: Spec, up: str, down: str, *, bias: bool = True) -> Mlp:
    """A feed-forward layer without gates, its two matrices under these names."""
    return Mlp(
        linear(tensors, up, s.d_model, s.d_ff, bias=bias),
        linear(tensors, down, s.d_ff, s.d_model, bias=bias),
    )


def apart(joined: Linear, *widths: int) -> list[Linear]:
    """One matrix [in, a + b + ...] as several, side by side in the file."""
    ends = np.cumsum(widths)[:-1]
    weights = np.split(joined.stored, ends, axis=1)
    biases = [None] * len(widths) if joined.bias is None else np.split(joined.bias, ends)
    return [Linear(w, b) for w, b in zip(weights, biases, strict=True)]


def apart_by_head(joined: Linear, d_head: int) -> tuple[Linear, Linear, Linear]:
    """Queries, keys and values of a matrix [d, H*3*d_h] where each head's three lie together."""
    d = len(joined.stored)
    weights = joined.stored.T.reshape(-1, 3, d_head, d)  # [H*3*d_h, d] -> [H, 3, d_h, d]
    biases = None if joined.bias is None else joined.bias.reshape(-1, 3, d_head)
    q, k, v = (
        Linear(weights[:, i].reshape(-1, d).T, None if biases is None else biases[:, i].ravel())
        for i in range(3)
    )
    return q, k, v


def halves(part: Linear, d_head: int, n_turned: int) -> Linear:
    """Queries or keys whose pairs lie side by side, (0, 1), (2, 3), put as (i, i + P).

    In each head, the first `n_turned` = 2 P numbers are put in the new order.
    """
    pairs = np.arange(n_turned).reshape(-1, 2).T.ravel()  # 0 2 4 ... 1 3 5 ...
    order = np.concatenate([pairs, np.arange(n_turned, d_head)])
    by_head = np.arange(part.stored.shape[1]).reshape(-1, d_head)[:, order].ravel()
    bias = None if part.bias is None else part.bias[by_head]
    outlined = not any(part.stored.strides)  # it holds no numbers, and a copy of it would take room
    return Linear(part.stored if outlined else part.stored.T[by_head].T, bias)


def head_width(config: Config, d: int, n_heads: int) -> int:
    """How many numbers each head has.

    Raises:
        ModelError: the heads do not divide the width.
    """
    if d % n_heads:
        raise ModelError(f"{config.source}: {n_heads} heads do not divide the width {d}")
    return d // n_heads


def must_be_on(config: Config, *keys: str) -> None:
    """Switches that older code knew how to turn off, and none of these models does.

    Raises:
        ModelError: one of them is off.
    """
    for key in keys:
        if not config.flag(key, default=True):
            raise ModelError(f"{config.source}: {key} = false is not supported")


def head(config: Config, tensors: Tensors, token_table: Table, *, tied: bool) -> tuple[Table, bool]:
    """The output table [V, d], and whether it is the token table; `tied` is the family's default.

    Raises:
        ModelError: the config ties the two, and the file has different ones.
    """
    tied = config.flag("tie_word_embeddings", default=tied)
    if tied and "lm_head.weight" not in tensors:
        return token_table, True
    table = tensors.table("lm_head.weight", *token_table.shape)
    if tied and not same(table, token_table):
        raise ModelError(
            "lm_head.weight differs from the token table, and the config ties them",
            hint="set tie_word_embeddings to false to use lm_head.weight",
        )
    return table, tied


def same(one: Table, other: Table) -> bool:
    """Whether two tables hold the same numbers; BF16 is compared bit by bit, ten times faster."""
    a, b = np.asarray(one), np.asarray(other)
    if a.dtype == b.dtype and a.dtype.kind == "V":
        a, b = (x.view(f"u{x.dtype.itemsize}") for x in (a, b))
    return np.array_equal(a, b)


def windows(
    config: Config, n_layers: int, default: Callable[[int], bool], *, used: bool = True
) -> Sequence[int | None]:
    """How far each layer looks: by `layer_types`, or by the family's default.

    Raises:
        ModelError: a kind of layer is not known, or a window is wanted and there is none.
    """
    slides = sliding(config, n_layers, default)
    config.ask("sliding_window")
    if not any(slides):
        return [None] * n_layers
    if not used:
        contrary = "layer_types has sliding_attention, and use_sliding_window is false"
        raise ModelError(f"{config.source}: {contrary}")
    window = config.whole("sliding_window")
    return [window if slide else None for slide in slides]


def late_windows(config: Config, n_layers: int) -> Sequence[int | None]:
    """A window in layers from `max_window_layers` on, if `use_sliding_window` wants it: Qwen 2."""
    used = config.flag("use_sliding_window", default=False)
    key = "max_window_layers"
    first = 0 if config.says(key, 0) else config.whole(key, default=28)
    some = used and config.has("sliding_window")
    return windows(config, n_layers, lambda layer: some and layer >= first, used=used)


def one_window(config: Config, n_layers: int) -> Sequence[int | None]:
    """The same window in every layer, if there is one."""
    config.ask("sliding_window")
    window = config.whole("sliding_window") if config.has("sliding_window") else None
    return [window] * n_layers


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
