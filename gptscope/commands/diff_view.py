"""The answer of `diff`: settings, tensors, values of a pass, the next token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.commands.diff_values import cut, value_parts
from gptscope.commands.info_files import as_text
from gptscope.commands.session import token_text
from gptscope.model.files import counted
from gptscope.view import Column, Facts, Note, Part, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gptscope.analysis.diff import Array, Passes, Side, TensorDifference
    from gptscope.model.weights import Model

TENSORS = (
    Column("tensor"),
    Column("relative", "error"),
    Column("rms", "error"),
    Column("largest", "error"),
    Column("cosine", "error"),
    Column("changed", "probability"),
)
SHAPES = (Column("tensor"), Column("first"), Column("second"))
ALONE = (Column("tensor"), Column("shape"), Column("only in"))
SETTINGS = (Column("setting"), Column("first"), Column("second"))
NEXT = (
    Column("id", "id"),
    Column("token", "token"),
    Column("first", "probability"),
    Column("second", "probability"),
)
BEST = 5  # next tokens of each


def tensor_parts(
    sides: tuple[Side, Side],
    found: Sequence[TensorDifference],
    settings: Sequence[tuple[str, Any, Any]],
    top: int,
) -> tuple[Part, ...]:
    """How many differ, then which settings, shapes and tensors."""
    a, b = sides
    differing = [one for one in found if one.fits and one.changed]
    misfits = [(one.name, *map(shape, one.shapes)) for one in found if not one.fits]
    alone = [*only_in(a, b, "first"), *only_in(b, a, "second")]
    said = [(key, told(x), told(y)) for key, x, y in settings]
    rows = [row(one) for one in differing]
    tables = (
        ("Settings that differ", SETTINGS, said),
        ("Tensors of different shapes", SHAPES, misfits),
        ("Tensors that one alone has", ALONE, alone),
        ("Tensors that differ, the farthest first", TENSORS, rows),
        ("Tensors stored in different formats", SHAPES, formats(found)),
    )
    parts: list[Part] = [facts(sides, found, len(alone))]
    if not (differing or misfits or alone):
        but = "; settings differ" if said else ""
        parts.append(Note(f"{a.name} and {b.name} are the same in every number{but}."))
    for title, columns, lines in tables:
        parts += cut(title, columns, lines, top)
    return tuple(parts)


def only_in(one: Side, other: Side, which: str) -> list[tuple[str, str, str]]:
    """Tensors that the other one lacks."""
    names = (name for name in one.tables if name not in other.tables)
    return [(name, shape(one.tables[name].shape), f"{which}: {one.name}") for name in names]


def formats(found: Iterable[TensorDifference]) -> list[tuple[str, str, str]]:
    """Tensors with numbers of another format."""
    return [(one.name, *one.dtypes) for one in found if one.dtypes[0] != one.dtypes[1]]


def facts(sides: tuple[Side, Side], found: Sequence[TensorDifference], alone: int) -> Facts:
    """What was compared, in numbers."""
    pairs = (
        (Column("first"), sides[0].name),
        (Column("second"), sides[1].name),
        (Column("tensors in both", "count"), len(found)),
        (Column("the same in every number", "count"), sum(one.same for one in found)),
        (Column("different", "count"), sum(one.fits and not one.same for one in found)),
        (Column("of different shapes", "count"), sum(not one.fits for one in found)),
        (Column("in one alone", "count"), alone),
        (Column("numbers compared", "count"), sum(one.size for one in found if one.fits)),
        (Column("numbers that differ", "count"), sum(one.changed for one in found)),
    )
    return Facts("", pairs)


def row(one: TensorDifference) -> tuple[Any, ...]:
    """A tensor that differs."""
    return one.name, one.relative, one.rms, one.largest, one.cosine, one.changed / one.size


def shape(sizes: tuple[int, ...]) -> str:
    """`128 x 512`."""
    return " x ".join(map(str, sizes)) or "one number"


def told(value: object) -> str:
    """A setting, or that it is not said."""
    return "not said" if value is None else as_text(value)


def pass_parts(
    made: Passes, models: tuple[Model, Model], names: tuple[str, str], top: int
) -> tuple[Part, ...]:
    """Where the passes part, every value, and what comes next."""
    parts: list[Part] = [Note(verdict(made, names))]
    if made.next is not None:
        parts += [following(made.next, models[0]), divergences(*made.next)]
    parts += value_parts(made.values, "Values of the passes", top)
    for which, only in zip(names, made.only, strict=True):
        if only:
            parts.append(Note(f"only {which} has: {', '.join(only)}"))
    return tuple(parts)


def verdict(made: Passes, names: tuple[str, str]) -> str:
    """The first value in which the two part."""
    first, n = made.first, counted(len(made.values), "value")
    if first is None:
        return f"The passes of {names[0]} and {names[1]} agree in all of {n}, but for rounding."
    beyond = sum(not one.agrees for one in made.values)
    return f"The passes part at {first.name}: {beyond:,} of {n} differ by more than rounding."


def following(after: tuple[Array, Array], model: Model) -> Table:
    """The likeliest next tokens of either, side by side."""
    from gptscope.engine.sampling import ranked

    p, q = after
    best = {int(i) for x in (p, q) for i in ranked(x, BEST)}
    order = sorted(best, key=lambda i: (-max(p[i], q[i]), i))
    rows = [(i, token_text(model, i), float(p[i]), float(q[i])) for i in order]
    return Table(f"The next token, the {BEST} likeliest of either", NEXT, rows)


def divergences(p: Array, q: Array) -> Facts:
    """How far apart the two distributions are, in either direction."""
    from gptscope.analysis.diff import divergence

    pairs = (
        (Column("KL divergence, first from second, in nats", "length"), divergence(p, q)),
        (Column("second from first", "length"), divergence(q, p)),
    )
    return Facts("", pairs)
