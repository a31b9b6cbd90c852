"""The norms, each value of them under the norm's name."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptscope.engine.step import Step
from gptscope.model.spec import Spec
from gptscope.model.weights import Norm

Array = NDArray[np.floating[Any]]
Note = Callable[[str, Array], Array]


def normed(name: str, x: Array, w: Norm | None, step: Step) -> Array:
    """The norm of this name in a block; x itself where the family has none there."""
    return x if w is None else norm(name, x, w, step.spec, step.hook)


def norm(name: str, x: Array, w: Norm, spec: Spec, hook: Note) -> Array:
    """The norm of this family, each of its values noted under the norm's name."""
    return NORMS[spec.norm](x, w, spec.norm_eps, lambda key, value: hook(f"{name}.{key}", value))


def unnoted(key: str, value: Array) -> Array:  # noqa: ARG001
    """A value that has no hook point."""
    return value


def layer_norm(x: Array, w: Norm, eps: float, note: Note) -> Array:
    """(x - mean) / sqrt(variance + eps) * gain + shift. Ba, Kiros and Hinton 2016."""
    mean = note("mean", x.mean(axis=-1))  # [T, d] -> [T]
    centred = x - mean[..., None]
    variance = note("variance", np.vecdot(centred, centred) / x.shape[-1])  # [T, d] -> [T]
    centred /= np.sqrt(variance + eps)[..., None]
    y = note("normalized", centred) * w.gain
    if w.shift is not None:
        y += w.shift
    return note("out", y)


def rms_norm(x: Array, w: Norm, eps: float, note: Note) -> Array:
    """Each list over its root mean square: x / sqrt(mean(x^2) + eps) * gain.

    Zhang and Sennrich 2019, eq. 4.
    """
    mean_square = note("mean_square", np.vecdot(x, x) / x.shape[-1])  # [T, d] -> [T]
    normalized = note("normalized", x / np.sqrt(mean_square + eps)[..., None])
    return note("out", normalized * w.gain)


NORMS: Mapping[str, Callable[[Array, Norm, float, Note], Array]] = {
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
}
