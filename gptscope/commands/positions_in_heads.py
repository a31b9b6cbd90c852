"""What heads know of places where no table is added: turns, slopes, windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gptscope.commands.session import timed
from gptscope.errors import UsageError
from gptscope.model.files import counted
from gptscope.view import Column, Facts, Grid, Note, Part, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gptscope.model.load import Opened
    from gptscope.model.weights import Model, Turning

MOST = 12  # pairs in a grid
FAR = (1, 10, 100)  # distances in tokens, for slopes
BASES = ("rope_theta", "rope_local_base_freq", "rotary_emb_base")  # as configs name them
WAVES = (
    Column("pair", "id"),
    Column("numbers"),
    Column("speed", "number"),
    Column("wavelength", "number"),
    Column("turns", "number"),
)


def opened(name: str, *, verbose: bool) -> Opened:
    """The model of this name, and what it was made of."""
    from gptscope.model.load import open_model

    with timed(verbose) as say:
        found = open_model(name)
        model = found.model
        say(f"loaded {model.name}: {model.spec.family}, {counted(model.n_params, 'parameter')}")
    return found


def overview(opened: Opened) -> tuple[Part, ...]:
    """How a model without a table tells places apart, in every kind of its layers."""
    from gptscope.commands.info_built import rotary

    model = opened.model
    return (
        facts(model),
        *of_layers(model),
        *rotary(model, opened.checkpoint),
        *(part for found in turnings(model).items() for part in turning(opened, *found)),
        *(part for found in slopes(model).items() for part in biases(model, *found)),
    )


def in_heads(model: Model) -> bool:
    """Whether any layer tells places apart."""
    return bool(turnings(model) or slopes(model))


def check_no_table(name: str, why: str, asked: Mapping[str, Any]) -> None:
    """Refuse options that choose of a table.

    Raises:
        UsageError: there is one of them.
    """
    given = next((option for option, value in asked.items() if value is not None), None)
    if given is not None:
        raise UsageError(
            f"{given} chooses of a table, and {name} has none: {why}",
            hint="gptscope positions without it shows how",
        )


def of_layers(model: Model) -> tuple[Part, ...]:
    """What differs from layer to layer, windows among it; nothing if no layer has such."""
    from gptscope.analysis.info import kinds
    from gptscope.commands.info_built import layers

    found = kinds(model)
    return (layers(model),) if len(found) > 1 or any(kind.window for kind in found) else ()


def turnings(model: Model) -> dict[Turning, list[int]]:
    """The layers that turn alike, for each way of turning."""
    from gptscope.model.blocks import outlines

    found: dict[Any, tuple[Turning, list[int]]] = {}
    for layer, block in enumerate(outlines(model.blocks)):
        made = block.attention.turning
        if made is not None:
            key = (made.speeds, made.factor, made.speeds_at(model.spec.n_ctx))
            found.setdefault(key, (made, []))[1].append(layer)
    return dict(found.values())


def slopes(model: Model) -> dict[tuple[float, ...], list[int]]:
    """The layers with the same slopes, for each list of slopes."""
    from gptscope.model.blocks import outlines

    found: dict[tuple[float, ...], list[int]] = {}
    for layer, block in enumerate(outlines(model.blocks)):
        if block.attention.slopes is not None:
            found.setdefault(block.attention.slopes, []).append(layer)
    return found


def facts(model: Model) -> Facts:
    """How the model tells places apart, and which share of a head turns."""
    from gptscope.commands.info_built import paired
    from gptscope.engine.lacking import POSITIONS

    s = model.spec
    pairs: list[tuple[Column, Any]] = [(Column("kind"), POSITIONS.get(s.positions, s.positions))]
    pairs.append((Column("longest text", "count"), s.n_ctx))
    shares = {2 * len(made.speeds) for made in turnings(model)}
    if shares:
        turned = " or ".join(map(str, sorted(shares)))
        pairs.append((Column("numbers of a head that turn"), f"{turned} of {s.d_head}"))
        pairs.append(paired(s))
    return Facts(f"Positions of {model.name}", tuple(pairs))


def where(model: Model, layers: Sequence[int]) -> str:
    """The layers in words; nothing if these are all."""
    from gptscope.analysis.info import ranges

    if len(layers) == model.spec.n_layers:
        return ""
    return f"Layer{'s' * (len(layers) > 1)} {ranges(layers)}: "


def turning(opened: Opened, made: Turning, layers: Sequence[int]) -> Iterator[Part]:
    """The speed of every pair, and how far it has turned at some distances."""
    import numpy as np

    model, n = opened.model, len(made.speeds)
    of, longest = where(model, layers), model.spec.n_ctx
    more = {"before stretching": before(opened, made)}
    if made.speeds_at(longest) != made.speeds:
        more["in the longest text"] = made.speeds_at(longest)
    extra = {name: speeds for name, speeds in more.items() if speeds is not None}
    rows = [
        (
            *(i, f"{i}, {i + n}", speed, 2 * np.pi / speed, speed * longest / (2 * np.pi)),
            *(speeds[i] for speeds in extra.values()),
        )
        for i, speed in enumerate(made.speeds)
    ]
    columns = (*WAVES, *(Column(f"speed {name}", "number") for name in extra))
    yield Table(f"{of}How fast each pair turns, in radians per token", columns, rows)
    yield Note(words(model, made))
    yield from turned(model, made, of)


def words(model: Model, made: Turning) -> str:
    """What a turn does."""
    text = (
        "A query at t and a key at s are turned by t and s times the speed of the pair: their "
        "product depends on the distance t - s alone (Su et al. 2021). A pair comes round after "
        f"2 pi / speed tokens, its wavelength; turns are those in {model.spec.n_ctx:,} tokens, the "
        "longest text. A pair with less than one never comes near its beginning again."
    )
    if made.factor != 1:
        text += f" Turned queries and keys are longer by {made.factor:g} (Peng et al. 2023)."
    return text


def before(opened: Opened, made: Turning) -> tuple[float, ...] | None:
    """The speeds of the base that the config names, where it is one and the speeds are others."""
    from gptscope.commands.info_files import said
    from gptscope.model.positions import BASE, turning_speeds

    found = {*numbers_at(BASES, said(opened.checkpoint))} or {BASE}
    if len(found) > 1:
        return None
    speeds = turning_speeds(2 * len(made.speeds), found.pop())
    alike = all(abs(a - b) <= 1e-9 * a for a, b in zip(speeds, made.speeds, strict=True))
    return None if alike else speeds


def numbers_at(keys: Sequence[str], section: Any) -> Iterator[float]:  # noqa: ANN401
    """The numbers under these keys, wherever they stand in a config."""
    if isinstance(section, dict):
        for key, value in section.items():
            if key in keys and isinstance(value, int | float) and value > 0:
                yield float(value)
            yield from numbers_at(keys, value)


def turned(model: Model, made: Turning, of: str) -> Iterator[Part]:
    """The cosine of each pair's turn by distance, and the mean of all pairs."""
    import numpy as np

    n, distances = len(made.speeds), doubles(model.spec.n_ctx)
    cosines = np.cos(np.multiply.outer(np.asarray(made.speeds), distances))  # [P, D]
    step = -(-n // MOST)
    chosen = list(range(0, n, step))
    values = np.concatenate([cosines[chosen], cosines.mean(axis=0, keepdims=True)])
    sides = (*(f"pair {i}" for i in chosen), "mean of all" if step > 1 else "mean")
    title = f"{of}How far pairs have turned at so many tokens: the cosine, 1 not at all"
    heads = tuple(map(str, distances))
    yield Grid(title, sides, heads, values, "signed", row_kind="text", column_kind="text")
    mean = "The mean is how alike two turned copies of a list of equal numbers are"
    yield Note(f"{len(chosen)} of {n} pairs. {mean}" if step > 1 else mean)


def doubles(n: int) -> list[int]:
    """0, 1, 2, 4, 8, ...: distances within a text of n tokens, ten at most."""
    found = [0, *(2**i for i in range(n.bit_length()) if 2**i < n)]
    step = -(-(len(found) - 1) // 9) if len(found) > 10 else 1
    return found[:1] + found[1::step]


def biases(model: Model, found: Sequence[float], layers: Sequence[int]) -> Iterator[Part]:
    """What every head takes off from its scores by distance."""
    import math

    columns = (
        Column("head", "id"),
        Column("slope", "number"),
        *(Column(f"at distance {k}", "signed") for k in FAR),
        Column("halved every", "number"),
    )
    rows = [
        (head, slope, *(-slope * k for k in FAR), math.log(2) / slope)
        for head, slope in enumerate(found)
    ]
    title = f"{where(model, layers)}What is taken off from a score at a distance in tokens"
    yield Table(title, columns, rows)
    yield Note(
        "ALiBi (Press, Smith and Lewis 2022): slope times distance is taken off from the scaled "
        "score. What lies farther back by ln 2 / slope tokens counts half as much; a head with a "
        "small slope sees far"
    )
