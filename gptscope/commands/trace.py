"""Every named value of a pass: a table of them, or a file that holds them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptscope import __version__
from gptscope.commands import completion
from gptscope.commands.options import Pass, Target, with_options
from gptscope.commands.output import chosen_format, emit, refuse_terminal, show, tell, write
from gptscope.commands.session import Run, start
from gptscope.errors import UsageError
from gptscope.glyphs import visible
from gptscope.view import Column, Facts, Note, Table, View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import BinaryIO

    from numpy.typing import NDArray

    from gptscope.engine.trace import Trace

    Arrays = Mapping[str, NDArray[Any]]

SCHEMA = "gptscope/trace/1"
COLUMNS = (
    Column("name"),
    Column("axes"),
    Column("shape"),
    Column("dtype"),
    Column("bytes", "count"),
    Column("min", "signed"),
    Column("mean", "signed"),
    Column("max", "signed"),
    Column("not finite", "count"),
)
DTYPES = {"float32": "F32", "float64": "F64", "int64": "I64"}  # what safetensors calls them


@with_options
def command(
    source: Pass,
    target: Target,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            help="Only these values, as weights, layers.0.* or layers.0.heads.1.q; repeatable.",
            autocompletion=completion.values,
        ),
    ] = None,
) -> None:
    """Save every named value of a pass, or some of them, to a file.

    gptscope trace "Lily wanted to play with her" --keep "layers.0.*"

    gptscope trace "Lily wanted to play with her" --output trace.safetensors

    gptscope trace "Lily wanted to play with her" --keep weights --keep logits --output trace.npz
    """
    fmt = chosen_format(target, also=tuple(FILES))
    if fmt in FILES:
        refuse_terminal(fmt, target)
    run = start(source)
    values = kept(run.trace(*(keep or ())), keep or [])
    if fmt in FILES:
        save(FILES[fmt], values, run, target)
    else:
        show(view(values, run), target)


def kept(trace: Trace, entries: list[str]) -> Arrays:
    """The values by full name, in the order of the pass; of a layer's heads only those named.

    Raises:
        UsageError: this model has none of them.
    """
    from gptscope.engine.hook_points import parse
    from gptscope.engine.names import named

    sizes = trace.spec.n_layers, trace.spec.n_heads
    found = [one for entry in entries for one in named(entry, *sizes)]
    wanted = {(one.point.key, one.layer, h) for one in found for h in one.heads or (None,)}
    values = {}
    for name in trace.names():
        at = parse(name)
        if not entries or (at.point.key, at.layer, at.head) in wanted:
            values[name] = trace[name]
    if not values:
        why = trace.lacks.get((found[0].point.key, found[0].layer))
        raise UsageError(f"this model has no value called {', '.join(entries)}", why)
    return values


def view(values: Arrays, run: Run) -> View:
    """A row for each value; minimum, mean and maximum of what is finite."""
    rows = [(name, *described(name, array)) for name, array in values.items()]
    total = Facts(
        "",
        (
            (Column("values", "count"), len(values)),
            (Column("bytes", "count"), sum(array.nbytes for array in values.values())),
        ),
    )
    words = "--output FILE.safetensors or FILE.npz saves the values themselves"
    return View("trace", (Table("", COLUMNS, rows), total, Note(words)), **run.about)


def described(name: str, array: NDArray[Any]) -> tuple[Any, ...]:
    """What a row says of one value."""
    import numpy as np

    from gptscope.engine.hook_points import parse

    real = array[np.isfinite(array)]
    numbers = (real.min(), real.mean(dtype=np.float64), real.max()) if real.size else (None,) * 3
    shape = " x ".join(map(str, array.shape))
    axes, wrong = parse(name).point.axes, array.size - real.size
    return axes, shape, str(array.dtype), array.nbytes, *numbers, wrong


def save(
    fill: Callable[[BinaryIO, Arrays, Run], None], values: Arrays, run: Run, target: Target
) -> None:
    """The values in a file, told on standard error, or in a pipe."""
    if target.output is None:
        import io

        whole = io.BytesIO()
        fill(whole, values, run)
        emit(whole.getvalue())
        return
    write(target.output, lambda file: fill(file, values, run), force=target.force)
    n, size = len(values), sum(array.nbytes for array in values.values())
    words = f"{n:,} value{'s' * (n != 1)}, {size:,} bytes of numbers"
    tell(f"{words} -> {visible(str(target.output))}")


def fill_npz(file: BinaryIO, values: Arrays, run: Run) -> None:
    """npz: the values, `ids`, and as texts `tokens`, `model` and `text`."""
    import numpy as np

    from gptscope.render.as_npz import archive, column

    told = {"model": run.model.name, "text": run.text}
    texts = {name: column([text], "text")[0, ...] for name, text in told.items() if text}
    about = {"ids": np.array(run.ids, np.int64), "tokens": column(run.labels, "token")}
    archive(file, {**values, **about, **texts})


def fill_safetensors(file: BinaryIO, values: Arrays, run: Run) -> None:
    """safetensors: the values and `ids`; model and text stand in the metadata."""
    import numpy as np

    write_safetensors(file, {"ids": np.array(run.ids, np.int64), **values}, metadata(run))


def write_safetensors(file: BinaryIO, arrays: Arrays, about: Mapping[str, str]) -> None:
    """Arrays of float32, float64 and int64, and texts about them.

    Written here because the library orders metadata anew in every process: same input, same bytes.
    """
    import numpy as np

    header: dict[str, Any] = {"__metadata__": about}
    end = 0
    for name, array in arrays.items():
        begin, end = end, end + array.nbytes
        kind, shape = DTYPES[str(array.dtype)], list(array.shape)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [begin, end]}
    head = json.dumps(header, separators=(",", ":")).encode()
    head += b" " * (-len(head) % 8)
    file.write(len(head).to_bytes(8, "little") + head)
    for array in arrays.values():
        file.write(np.ascontiguousarray(array, array.dtype.newbyteorder("<")).data)


def metadata(run: Run) -> dict[str, str]:
    """What the values were computed from; a text only where there was one."""
    told = {
        "schema": SCHEMA,
        "gptscope": __version__,
        "model": run.model.name,
        "ids": ",".join(map(str, run.ids)),
        "tokens": json.dumps(run.labels),
    }
    return told if run.text is None else {**told, "text": run.text}


FILES = {"safetensors": fill_safetensors, "npz": fill_npz}
