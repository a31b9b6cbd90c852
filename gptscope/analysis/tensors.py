"""What lies in a file, by names and shapes alone: kinds of numbers, bytes, names that are alike."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from gptscope.model.dtypes import DTYPES
from gptscope.model.formats.packed import Grouped, Packed, Reordered

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gptscope.model.weights import Table

KINDS = {dtype: name for name, dtype in DTYPES.items()}
PLACES = {  # by a word of a tensor's name; what has "norm" or "ln_" in it is a norm
    **dict.fromkeys(("attn", "attention", "self_attn", "self_attention"), "attention"),
    **dict.fromkeys(("mlp", "fc1", "fc2"), "feed-forward"),
    **dict.fromkeys(
        ("wte", "embed_in", "embed_tokens", "tokens_embed", "word_embeddings"), "token table"
    ),
    **dict.fromkeys(("wpe", "embed_positions", "positions_embed"), "table of positions"),
    **dict.fromkeys(("project_in", "project_out"), "widening of the token table"),
    **dict.fromkeys(("lm_head", "embed_out"), "output"),
}
LAYER = re.compile(r"(?<![^.])\d+(?![^.])")  # a number that stands alone between dots


def size(table: Table) -> int:
    """How many numbers a tensor holds."""
    return math.prod(table.shape)


def stored_bytes(table: Table) -> int:
    """The bytes that a tensor takes in its file."""
    if isinstance(table, Reordered):
        return stored_bytes(table.table)
    if isinstance(table, Packed):
        return table.rows.nbytes
    if isinstance(table, Grouped):
        return table.numbers.nbytes + table.scales.nbytes
    return size(table) * table.dtype.itemsize


def kind(table: Table) -> str:
    """How its numbers are stored: F32, BF16, ... or, where they are packed, how densely."""
    if isinstance(table, Reordered):
        return kind(table.table)
    if isinstance(table, Packed | Grouped):
        bits = 8 * stored_bytes(table) / max(1, size(table))
        name = table.name if isinstance(table, Packed) else "grouped"
        return f"{name}, {bits:.4g} bits"
    return KINDS.get(table.dtype, str(table.dtype))


@dataclass(frozen=True)
class Held:
    """What a kind of numbers, or tensors with names alike, take together."""

    tensors: int
    numbers: int
    bytes: int


def held(tables: Iterable[Table]) -> Held:
    """The sum of tensors."""
    listed = list(tables)
    return Held(len(listed), sum(map(size, listed)), sum(map(stored_bytes, listed)))


def by_kind(arrays: Mapping[str, Table]) -> dict[str, Held]:
    """What is stored in each kind of numbers, the one with the most numbers first."""
    found: dict[str, list[Table]] = {}
    for table in arrays.values():
        found.setdefault(kind(table), []).append(table)
    sums = {name: held(tables) for name, tables in found.items()}
    return dict(sorted(sums.items(), key=lambda pair: -pair[1].numbers))


def pattern(name: str) -> str:
    """The name with a star for each number between dots: `h.3.ln_1.bias` is `h.*.ln_1.bias`."""
    return LAYER.sub("*", name)


def by_pattern(names: Iterable[str]) -> dict[str, list[str]]:
    """Names that differ only in their numbers, together, in the order of the file."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(pattern(name), []).append(name)
    return found


def place(name: str) -> str:
    """Which part a family makes of the tensor that it calls so: `h.*.attn.c_proj`, attention."""
    for word in name.split("."):
        if word in PLACES:
            return PLACES[word]
        if "norm" in word or word.startswith("ln_"):
            return "norms"
    return "in use"


def beginning(names: Iterable[str]) -> str:
    """The words that all names begin with, before any number: `transformer.`."""
    words = zip(*(name.split(".")[:-1] for name in names), strict=False)
    shared = takewhile(lambda here: len({*here}) == 1 and not here[0].isdigit(), words)
    return "".join(f"{word}." for word, *_ in shared)


def matching(names: Iterable[str], wanted: str) -> list[str]:
    """The names that a pattern fits, in which a star stands for anything and nothing else does."""
    parts = map(re.escape, wanted.split("*"))
    fits = re.compile(".*".join(parts), re.DOTALL)
    return [name for name in names if fits.fullmatch(name)]


@dataclass(frozen=True)
class Guess:
    """Sizes as the tensors alone suggest them; None where they suggest nothing."""

    layers: int | None
    width: int | None
    vocabulary: int | None


def guess(shapes: Mapping[str, Sequence[int]]) -> Guess:
    """Sizes from names and shapes.

    Layers: the largest number between dots, and one. Width: the size that most tensors share.
    Vocabulary: the longest axis of a matrix whose name has no number and whose other is the width.
    """
    numbers = [int(found) for name in shapes for found in LAYER.findall(name)[:1]]
    sizes = Counter(n for shape in shapes.values() for n in set(shape) if n > 1)
    width = max(sizes, key=lambda n: (sizes[n], n)) if sizes else None
    outside = [shape for name, shape in shapes.items() if not LAYER.search(name)]
    tables = [shape for shape in outside if len(shape) == 2 and width in shape]
    longest = max((max(shape) for shape in tables), default=None)
    return Guess(max(numbers) + 1 if numbers else None, width, longest)
