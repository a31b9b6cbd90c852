"""What the shell offers when Tab is pressed: models, layers, heads, names of values."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gptscope.errors import GptscopeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gptscope.model.spec import Spec


def models(incomplete: str) -> list[str]:
    """Shipped names; then folders and files, as a path is completed."""
    from glob import escape, glob

    from gptscope.model.shipped import shipped_folders

    found = [name for name in shipped_folders() if name.startswith(incomplete)]
    paths = glob(f"{escape(incomplete)}*")  # noqa: PTH207 - the text is completed as it was begun
    folders = [f"{path}{os.sep}" for path in paths if os.path.isdir(path)]  # noqa: PTH112
    return [*found, *folders, *(path for path in paths if path.endswith(".safetensors"))]


def layers(ctx: Any, incomplete: str) -> list[str]:  # noqa: ANN401 - typer's context
    """The layers of the model that was named before."""
    return begun(incomplete, lambda spec: map(str, range(spec.n_layers)), ctx)


def heads(ctx: Any, incomplete: str) -> list[str]:  # noqa: ANN401
    """The heads of the model that was named before."""
    return begun(incomplete, lambda spec: map(str, range(spec.n_heads)), ctx)


def values(ctx: Any, incomplete: str) -> list[str]:  # noqa: ANN401
    """The names of all values of the model that was named before."""
    return begun(incomplete, names, ctx)


def addresses(ctx: Any, incomplete: str) -> list[str]:  # noqa: ANN401
    """The beginnings of addresses, `layers.0.heads.0.weights[`."""
    return [f"{name}[" for name in begun(incomplete, names, ctx)]


def begun(
    incomplete: str,
    choices: Callable[[Spec], Iterable[str]],
    ctx: Any,  # noqa: ANN401
) -> list[str]:
    """The choices that begin so; none if the model cannot be opened."""
    from gptscope.model.load import load

    try:
        spec = load(ctx.params.get("model") or os.environ.get("GPTSCOPE_MODEL") or "tiny").spec
    except GptscopeError:
        return []
    return [choice for choice in choices(spec) if choice.startswith(incomplete)]


def names(spec: Spec) -> list[str]:
    """Every value that a model of these sizes and choices has."""
    from gptscope.engine.hook_points import HOOK_POINTS
    from gptscope.engine.trace import why_lacking

    found = dict.fromkeys(
        point.name.format(l=layer, h=head)
        for layer in range(spec.n_layers)
        for point in HOOK_POINTS
        if why_lacking(point.key, spec) is None
        for head in range(spec.n_heads if point.per_head else 1)
    )
    return [*found]
