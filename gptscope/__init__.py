"""gptscope: see what happens inside a GPT, number by number.

Names are loaded when they are used: importing NumPy takes longer than showing a help page.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gptscope.analysis.attribution import attribute
    from gptscope.analysis.explain import explain
    from gptscope.analysis.explain.records import Explanation
    from gptscope.analysis.lens import lens
    from gptscope.engine.generate import Generation, generate
    from gptscope.engine.hook_points import HOOK_POINTS
    from gptscope.engine.lesson import causal_attention, layer_norm
    from gptscope.engine.ops import gelu, softmax
    from gptscope.engine.sampling import create_rng, probabilities, sample
    from gptscope.engine.trace import Trace, trace
    from gptscope.errors import GptscopeError, ModelError, UsageError
    from gptscope.model.load import load
    from gptscope.model.params import n_params
    from gptscope.model.positions import sinusoidal_positions
    from gptscope.model.weights import Model

__version__ = "0.1.0"

_HOMES = {
    "Explanation": "analysis.explain.records",
    "HOOK_POINTS": "engine.hook_points",
    "Generation": "engine.generate",
    "GptscopeError": "errors",
    "Model": "model.weights",
    "ModelError": "errors",
    "Trace": "engine.trace",
    "UsageError": "errors",
    "attribute": "analysis.attribution",
    "causal_attention": "engine.lesson",
    "create_rng": "engine.sampling",
    "explain": "analysis.explain",
    "gelu": "engine.ops",
    "generate": "engine.generate",
    "layer_norm": "engine.lesson",
    "lens": "analysis.lens",
    "load": "model.load",
    "n_params": "model.params",
    "probabilities": "engine.sampling",
    "sample": "engine.sampling",
    "sinusoidal_positions": "model.positions",
    "softmax": "engine.ops",
    "trace": "engine.trace",
}

__all__ = [
    "HOOK_POINTS",
    "Explanation",
    "Generation",
    "GptscopeError",
    "Model",
    "ModelError",
    "Trace",
    "UsageError",
    "attribute",
    "causal_attention",
    "create_rng",
    "explain",
    "gelu",
    "generate",
    "layer_norm",
    "lens",
    "load",
    "n_params",
    "probabilities",
    "sample",
    "sinusoidal_positions",
    "softmax",
    "trace",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    """The public name, from the module where it lives."""
    if name not in _HOMES:
        msg = f"module 'gptscope' has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(import_module(f"gptscope.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names."""
    return [*__all__, "__version__"]
