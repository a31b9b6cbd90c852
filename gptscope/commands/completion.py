"""What the shell offers when Tab is pressed: models, layers, heads, names of values."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from gptscope.errors import GptscopeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gptscope.model.weights import Model

FILES = (".safetensors", ".gguf", ".bin", ".index.json")


def models(incomplete: str) -> list[str]:
    """Shipped names; then folders and files, as a path is completed."""
    from glob import escape, glob

    from gptscope.model.shipped import shipped_folders

    found = [name for name in shipped_folders() if name.startswith(incomplete)]
    paths = glob(f"{escape(incomplete)}*")  # noqa: PTH207 - the text is completed as it was begun
    folders = [f"{path}{os.sep}" for path in paths if os.path.isdir(path)]  # noqa: PTH112
    return [*found, *folders, *(path for path in paths if path.lower().endswith(FILES))]


def layers(ctx: Any, incomplete: str) -> list[str]:  # noqa: ANN401 - typer's context
    """The layers of the model that was named before."""
    return begun(incomplete, lambda model: map(str, range(model.spec.n_layers)), ctx)


def heads(ctx: Any, incomplete: str) -> list[str]:  # noqa: ANN401
    """The heads of the model that was named before."""
    return begun(incomplete, lambda model: map(str, range(model.spec.n_heads)), ctx)


def values(ctx: Any, incomplete: str) -> list[str]:  # noqa: ANN401
    """The names of all values of the model that was named before."""
    return begun(incomplete, names, ctx)


def addresses(ctx: Any, incomplete: str) -> list[str]:  # noqa: ANN401
    """The beginnings of addresses, `layers.0.heads.0.weights[`."""
    return [f"{name}[" for name in begun(incomplete, names, ctx)]


def edits(ctx: Any, incomplete: str) -> list[str]:  # noqa: ANN401
    """The names of values as an edit begins, `mlp_out=`; after the `=`, what may follow."""
    name, is_whole, _ = incomplete.partition("=")
    if not is_whole:
        return [f"{one}=" for one in begun(incomplete, names, ctx)]
    from gptscope.engine.changes import CHANGES

    forms = (form.written.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ") for form in CHANGES)
    offered = (f"{name}={form}" for form in forms if form[-1:].islower() or form.endswith(":"))
    return [one for one in offered if one.startswith(incomplete)]


def begun(
    incomplete: str,
    choices: Callable[[Model], Iterable[str]],
    ctx: Any,  # noqa: ANN401
) -> list[str]:
    """The choices that begin so; none if the model cannot be opened."""
    from gptscope.model.load import load

    try:
        model = load(ctx.params.get("model") or os.environ.get("GPTSCOPE_MODEL") or "tiny")
    except GptscopeError:
        return []
    return [choice for choice in choices(model) if choice.startswith(incomplete)]


def names(model: Model) -> list[str]:
    """Every value that a model has."""
    from gptscope.engine.hook_points import HOOK_POINTS
    from gptscope.engine.lacking import lacking

    spec, lacks = model.spec, lacking(model)
    found = dict.fromkeys(
        point.name.format(l=layer, h=head)
        for layer in range(spec.n_layers)
        for point in HOOK_POINTS
        if (point.key, layer if "{l}" in point.name else None) not in lacks
        for head in range(spec.n_heads if point.per_head else 1)
    )
    return [*found]
