"""What was measured of heads: on a text, on random tokens, and of their weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gptscope.commands.heads_asked import COPYING, EIGEN, Score
from gptscope.commands.progress import progress, ticking

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gptscope.analysis.heads.composition import Composition
    from gptscope.analysis.heads.copying import Copying
    from gptscope.analysis.heads.eigen import Eigen
    from gptscope.analysis.heads.scores import Repeated, Scores
    from gptscope.commands.heads_asked import Draw
    from gptscope.commands.session import Run
    from gptscope.model.weights import Model


@dataclass(frozen=True, eq=False)
class Weights:
    """What the weights of a model's heads say by themselves."""

    model: Model
    eigen: Eigen
    copying: Copying | None = None  # None: not asked for
    composition: Composition | None = None  # the same

    @property
    def name(self) -> str:
        """The better score of those that were measured."""
        return EIGEN if self.copying is None else COPYING

    def best(self, name: str) -> Score:
        """How often a token raises itself (copying), or the sign of eigenvalues (eigen)."""
        import numpy as np

        if name == EIGEN or self.copying is None:
            values = self.eigen.eigenvalues
            return Score(values, np.zeros(len(values)), None)
        top = self.copying.top
        return Score(top, np.full(len(top), self.copying.chance["top"]), None, self.copying.error())


@dataclass(frozen=True, eq=False)
class Found:
    """What was measured of a model's heads."""

    weights: Weights
    ids: tuple[int, ...]  # of the text; none: there is no text
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
        """A score on random tokens where there are any, else on the text; or of the weights."""
        if name in (COPYING, EIGEN):
            return self.weights.best(name)
        at, found = place(name), self.random
        if found is None:
            return self.on_text(name)
        return Score(found.mean[at], found.even[at], found.rows[at], found.error[at])


def place(name: str) -> int:
    """Where a score stands among those of a pass."""
    from gptscope.analysis.heads.scores import SCORES

    return SCORES.index(name)


def measured(run: Run, draw: Draw | None, *, composed: bool, raising: Sequence[int]) -> Found:
    """The heads on the text and on random tokens, and what their weights say; a pass at a time.

    `raising`: the layers whose tokens are rated.
    """
    from gptscope.analysis.heads.scores import over_seeds, scores, unread
    from gptscope.engine.trace import trace
    from gptscope.model.blocks import kept

    model = replace(run.model, blocks=kept(run.model.blocks))
    n_passes = bool(run.ids) + (0 if draw is None else draw.seeds)
    with progress(n_passes * model.spec.n_layers, "passes") as tick:

        def one(ids: Sequence[int]) -> Scores:
            return scores(model, trace(ticking(model, tick), ids, "weights", run.edits or ()))

        text = one(run.ids) if run.ids else unread(model)
        drawn = [one(ids) for ids in random_ids(model, draw)]
    weights = by_weights(model, composed=composed, raising=raising)
    return Found(weights, run.ids, text, over_seeds(drawn) if drawn else None, draw)


def random_ids(model: Model, draw: Draw | None) -> Iterator[list[int]]:
    """The random tokens of each seed."""
    from gptscope.analysis.heads.random_tokens import repeated

    if draw is not None:
        for seed in range(draw.seeds):
            yield repeated(model, draw.n, seed, bos=draw.bos)


def by_weights(model: Model, *, composed: bool, raising: Sequence[int]) -> Weights:
    """What the weights of the heads say by themselves; of some layers how often tokens are raised.

    Where no layer is named, that is not measured.
    """
    from gptscope.analysis.heads.composition import composition
    from gptscope.analysis.heads.copying import copying, steps
    from gptscope.analysis.heads.eigen import eigen

    n = model.spec.n_layers
    with progress(n * (2 if composed else 1), "weights") as tick:
        signs = eigen(model, tick)
        made = composition(model, tick) if composed else None
    if not raising:
        return Weights(model, signs, None, made)
    with progress(steps(model, raising), "copying") as tick:
        return Weights(model, signs, copying(model, tick, layers=raising), made)
