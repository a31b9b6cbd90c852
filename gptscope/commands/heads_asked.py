"""What is asked of heads, and what was measured of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gptscope.commands.progress import progress
from gptscope.errors import UsageError, check_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from gptscope.analysis.heads.composition import Composition
    from gptscope.analysis.heads.copying import Copying
    from gptscope.analysis.heads.raised import Raised
    from gptscope.analysis.heads.scores import Repeated, Scores
    from gptscope.commands.session import Run
    from gptscope.model.spec import Spec
    from gptscope.model.weights import Model

    Array = NDArray[np.floating[Any]]

SHOWN, FEW = 48, 8  # heads in a list of all; of one kind
COPYING = "copying"


@dataclass(frozen=True)
class Asked:
    """Which heads are looked at, and how they are shown."""

    layer: int | None = None
    head: int | None = None
    sort: str | None = None
    top: int | None = None

    @property
    def one(self) -> bool:
        """Whether a single head is looked at."""
        return self.layer is not None and self.head is not None

    def layers(self, spec: Spec) -> Sequence[int]:
        """The layers that are looked at.

        Raises:
            UsageError: there is no such layer.
        """
        n = spec.n_layers
        return range(n) if self.layer is None else [check_index("layer", self.layer, n)]

    def heads(self, spec: Spec) -> Sequence[int]:
        """The heads that are looked at in each layer.

        Raises:
            UsageError: there is no such head.
        """
        n = spec.n_heads
        return range(n) if self.head is None else [check_index("head", self.head, n)]

    def every(self, spec: Spec) -> list[tuple[int, int]]:
        """The heads that are looked at, in the order of the model."""
        return [(layer, head) for layer in self.layers(spec) for head in self.heads(spec)]


@dataclass(frozen=True)
class Draw:
    """Which random tokens are read."""

    seeds: int
    n: int  # in a half
    bos: bool


@dataclass(frozen=True, eq=False)
class Score:
    """One score of all heads on one kind of input."""

    values: Array  # [L, H]
    chance: Array  # [L]
    rows: Any  # [L]: how many rows count, of one pass; None: not a matter of rows
    error: Array | None = None  # [L, H]: the standard error


def has_word(score: Score, at: tuple[int, int]) -> bool:
    """Whether a head is called by the name of a score; never where there is no standard error."""
    from gptscope.analysis.heads.verdict import is_far_beyond

    if score.error is None:
        return False
    return is_far_beyond(
        float(score.values[at]), float(score.error[at]), float(score.chance[at[0]])
    )


@dataclass(frozen=True, eq=False)
class Weights:
    """What the weights of a model's heads say by themselves."""

    model: Model
    copying: Copying
    raised: Raised | None = None  # None: not asked for
    composition: Composition | None = None  # the same

    def best(self, name: str) -> Score:  # noqa: ARG002
        """The copying score: how often a token raises itself if that is asked, else eigenvalues."""
        import numpy as np

        if self.raised is None:
            values = self.copying.eigenvalues
            return Score(values, np.zeros(len(values)), None)
        top = self.raised.top
        return Score(top, np.full(len(top), self.raised.chance["top"]), None, self.raised.error())


@dataclass(frozen=True, eq=False)
class Found:
    """What was measured of a model's heads."""

    weights: Weights
    text: Scores
    random: Repeated | None = None  # None: there are no random tokens
    draw: Draw | None = None

    @property
    def model(self) -> Model:
        """The model."""
        return self.weights.model

    def on_text(self, name: str) -> Score:
        """A score on the text."""
        at, found = place(name), self.text
        return Score(found.values[at], found.even[at], found.rows[at])

    def best(self, name: str) -> Score:
        """A score on random tokens where there are any, else on the text; copying of weights."""
        at, found = place(name), self.random
        if name == COPYING:
            return self.weights.best(name)
        if found is None:
            return self.on_text(name)
        return Score(found.mean[at], found.even[at], found.rows[at], found.error[at])


def place(name: str) -> int:
    """Where a score stands among those of a pass; -1: it is not one."""
    from gptscope.analysis.heads.scores import SCORES

    return SCORES.index(name) if name in SCORES else -1


def draw_of(run: Run, seeds: int, n: int | None, *, bos: bool | None) -> Draw | None:
    """The random tokens that fit this model; None where none are asked for, or fit.

    Raises:
        UsageError: more are asked for than fit into the context, or than there are.
    """
    from gptscope.analysis.heads.random_tokens import LEAST, LENGTH, longest, n_plain

    tokenizer = run.model.tokenizer
    first = bos if bos is not None else tokenizer is not None and tokenizer.adds_bos
    first = first and run.model.bos_id is not None
    if seeds == 0:
        return None
    room = longest(run.model, bos=first)
    if n is not None and n > room:
        raise UsageError(
            f"--random-tokens {n} do not fit twice into the context of {run.model.spec.n_ctx}",
            hint=f"at most {room} do" if room >= LEAST else "--seeds 0 looks at the text alone",
        )
    fit = n_plain(run.model, min(room, LENGTH if n is None else n))
    if n is not None and fit < n:
        raise UsageError(f"--random-tokens {n} are more than the {fit} that are not special")
    return Draw(seeds, fit, first) if fit >= LEAST else None


def measured(run: Run, draw: Draw | None, *, composed: bool, raising: bool) -> Found:
    """The heads on the text and on random tokens, and what their weights say; a pass at a time."""
    from gptscope.analysis.heads.random_tokens import repeated
    from gptscope.analysis.heads.scores import over_seeds, scores
    from gptscope.engine.trace import trace
    from gptscope.model.blocks import kept

    model = replace(run.model, blocks=kept(run.model.blocks))

    def one(ids: Sequence[int]) -> Scores:
        return scores(model, trace(model, ids, "weights", run.edits or ()))

    drawn = (
        []
        if draw is None
        else [repeated(model, draw.n, seed, bos=draw.bos) for seed in range(draw.seeds)]
    )
    with progress(1 + len(drawn), "passes") as tick:
        found = []
        for ids in (run.ids, *drawn):
            found.append(one(ids))
            tick(1)
    random = over_seeds(found[1:]) if drawn else None
    weights = by_weights(model, composed=composed, raising=raising)
    return Found(weights, found[0], random, draw)


def by_weights(model: Model, *, composed: bool, raising: bool) -> Weights:
    """What the weights of the heads say by themselves."""
    from gptscope.analysis.heads.composition import composition
    from gptscope.analysis.heads.copying import copying
    from gptscope.analysis.heads.raised import raised, steps

    n = model.spec.n_layers
    with progress(n * (2 if composed else 1), "weights") as tick:
        copied = copying(model, tick)
        made = composition(model, tick) if composed else None
    if not raising:
        return Weights(model, copied, None, made)
    with progress(steps(model), "copying") as tick:
        return Weights(model, copied, raised(model, tick), made)
