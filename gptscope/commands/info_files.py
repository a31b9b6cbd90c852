"""What the files of a model say, whether the model is understood or not."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from gptscope.errors import ModelError
from gptscope.view import Column, Facts, Note, Part, Table, View

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gptscope.model.checkpoint import Checkpoint

    Size = tuple[int, ...]

BYTES = Column("bytes", "count")
NUMBERS = Column("numbers", "count")
LONGEST = 200  # characters of a value


def view_of_files(name: str, fault: ModelError) -> tuple[View, bool]:
    """What the files say of a model with this fault, and whether its family is understood.

    Raises:
        ModelError: the fault itself, where nothing can be opened.
    """
    from gptscope.model.checkpoint import open_checkpoint
    from gptscope.model.find import find_weights
    from gptscope.model.load import label

    try:
        checkpoint = open_checkpoint(find_weights(name))
    except ModelError:
        raise fault from None
    understood = is_understood(checkpoint)
    what = "The model cannot be run" if understood else "The family is not understood"
    hint = f" ({fault.hint})" if fault.hint else ""
    parts = (
        Note(f"{what}: {fault.message}{hint}. This is what its files say."),
        guessed(f"The files of {label(name, checkpoint.path)}", checkpoint),
        *config_table(checkpoint),
        tensors(checkpoint),
        kinds(checkpoint),
        files(checkpoint),
    )
    return View("info", parts), understood


def is_understood(checkpoint: Checkpoint) -> bool:
    """Whether a family, or the lack of any config, is not what is wrong."""
    from gptscope.model.load import find_config, find_family

    try:
        config = find_config(checkpoint.path.parent, checkpoint)
    except ModelError:
        return True
    try:
        find_family(config, checkpoint)
    except ModelError:
        return False
    return True


def said(checkpoint: Checkpoint) -> Mapping[str, Any]:
    """The config beside the weights, or within them; empty where none can be read."""
    from gptscope.model.files import read_json

    if checkpoint.config is not None:
        return checkpoint.config
    try:
        return read_json(checkpoint.path.parent / "config.json")
    except ModelError:
        pass
    try:
        values = json.loads(checkpoint.metadata.get("config", "{}"))
    except (ValueError, RecursionError):
        return {}
    return values if isinstance(values, dict) else {}


def as_text(value: Any) -> str:  # noqa: ANN401
    """A value of a config; a long one is cut, and says so."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}... ({len(text):,} characters)"


def guessed(title: str, checkpoint: Checkpoint) -> Facts:
    """Totals, and sizes as names and shapes suggest them."""
    from gptscope.analysis.tensors import guess, held

    whole = held(checkpoint.arrays.values())
    sizes = guess({name: table.shape for name, table in checkpoint.arrays.items()})
    pairs = {
        "tensors": whole.tensors,
        "numbers in them": whole.numbers,
        "bytes": whole.bytes,
        "blocks, at a guess": sizes.layers,
        "width, at a guess": sizes.width,
        "vocabulary, at a guess": sizes.vocabulary,
    }
    counts = tuple((Column(name, "count"), n) for name, n in pairs.items() if n is not None)
    return Facts(title, counts)


def config_table(checkpoint: Checkpoint) -> tuple[Part, ...]:
    """Every key of the config."""
    rows = [(key, as_text(value)) for key, value in said(checkpoint).items()]
    columns = (Column("key"), Column("value"))
    return (Table("What the config says", columns, rows),) if rows else ()


def tensors(checkpoint: Checkpoint) -> Table:
    """Tensors with names alike, together: how many, and their shapes."""
    from gptscope.analysis.tensors import by_pattern, held

    rows = []
    for pattern, names in by_pattern(checkpoint.arrays).items():
        tables = [checkpoint.arrays[name] for name in names]
        whole = held(tables)
        shapes = shapes_of([table.shape for table in tables])
        rows.append((pattern, whole.tensors, shapes, whole.numbers))
    columns = (Column("tensors"), Column("how many", "count"), Column("shape"), NUMBERS)
    return Table("Tensors; a star stands for the number of a layer", columns, rows)


def shapes_of(shapes: list[Size]) -> str:
    """The shape that tensors share, or how many have which."""
    counted = Counter(shapes)
    if len(counted) == 1:
        return str(list(shapes[0]))
    return ", ".join(f"{n} of {list(shape)}" for shape, n in counted.most_common(3))


def kinds(checkpoint: Checkpoint) -> Table:
    """In which kinds of numbers the weights are stored."""
    from gptscope.analysis.tensors import by_kind

    found = by_kind(checkpoint.arrays)
    total = sum(held.numbers for held in found.values())
    share = Column("share of the numbers", "probability")
    columns = (Column("stored as"), Column("tensors", "count"), NUMBERS, share, BYTES)
    rows = [
        (kind, h.tensors, h.numbers, h.numbers / total if total else None, h.bytes)
        for kind, h in found.items()
    ]
    return Table("How numbers are stored", columns, rows)


def files(checkpoint: Checkpoint) -> Table:
    """The files that hold the weights."""
    from gptscope.model.files import size_of

    rows = [(path.name, size_of(path)) for path in checkpoint.files]
    return Table("Files", (Column("file"), BYTES), rows)
