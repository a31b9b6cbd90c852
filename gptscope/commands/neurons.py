"""What a hidden unit reads and says; the units strongest for an answer."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gptscope.commands import completion
from gptscope.commands.answers import APART
from gptscope.commands.attribute_question import account_of, asked_for, question
from gptscope.commands.options import Against, Answer, At, Pass, Target, Top, with_options
from gptscope.commands.output import for_programs, show
from gptscope.commands.session import Run, start, token_text
from gptscope.errors import UsageError, check_index
from gptscope.glyphs import token_glyphs
from gptscope.view import Note, View

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gptscope.analysis.attribution import Account
    from gptscope.engine.trace import Trace


@dataclass(frozen=True, eq=False)
class Question:
    """A pass, and the logit that is asked about."""

    run: Run
    trace: Trace
    position: int
    wanted: Mapping[int, float]  # token id -> how often its logit counts
    top: int

    @cached_property
    def account(self) -> Account:
        """The terms of the logit."""
        return account_of(self.run, self.trace, self.position, self.wanted)

    @property
    def place(self) -> str:
        """The token in words: `token 5 ·her`."""
        return self.run.place(self.position)

    @property
    def logit(self) -> str:
        """The logit in words: `the logit of ·mom less that of ·dad`."""
        tokens = [token_glyphs(token_text(self.run.model, i)) for i in self.wanted]
        return f"the logit of {' less that of '.join(tokens)}"

    @property
    def name(self) -> str:
        """What the account is of: a logit, or the difference of two; before a cap."""
        capped = self.run.model.spec.logit_cap is not None
        name = "logit" if len(self.wanted) == 1 else APART
        return f"{name} before the cap" if capped else name

    @property
    def chosen(self) -> str:
        """Why the answer is asked about, where none was given."""
        answer = token_glyphs(token_text(self.run.model, next(iter(self.wanted))))
        return f"{answer} is the likeliest token there; --answer asks for another"


@with_options
def command(
    source: Pass,
    target: Target,
    layer: Annotated[
        int | None,
        typer.Option(
            "--layer",
            "-l",
            help="The units of one block, from 0; -1 is the last; of all if not given.",
            autocompletion=completion.layers,
            show_default=False,
        ),
    ] = None,
    unit: Annotated[
        int | None,
        typer.Option(
            "--unit", "-u", help="One unit of --layer, from 0; else the strongest are found."
        ),
    ] = None,
    answer: Answer = None,
    against: Against = None,
    at: At = -1,
    top: Top = 10,
) -> None:
    """What a hidden unit reads and says; the units strongest for an answer.

    gptscope neurons "Lily wanted to play with her"

    gptscope neurons "Lily wanted to play with her" --answer " mom" --against " dog"

    gptscope neurons "Lily wanted to play with her" --layer 3 --unit 17

    A unit adds its value times its row of the last matrix to the stream: what
    that does to a logit directly, with the scale of the norms frozen at this
    pass, is what it gives. Without --answer it is the likeliest token.
    """
    if unit is not None and layer is None:
        raise UsageError("--unit goes with --layer: units are counted in each layer")
    run = start(source)
    spec = run.model.spec
    layer = None if layer is None else check_index("layer", layer, spec.n_layers)
    unit = None if unit is None else check_index("unit", unit, units_of(run, layer or 0))
    position = check_index("token", at, len(run.ids))
    trace = run.trace(*kept(layer, unit, edited=bool(source.edit)))
    wanted = asked_for(run, trace, position, (answer, against))
    asked = Question(run, trace, position, wanted, top)
    parts: tuple[Any, ...]
    if layer is not None and unit is not None:
        from gptscope.commands.neurons_unit import parts_of_unit

        parts = parts_of_unit(asked, (layer, unit))
    else:
        from gptscope.commands.neurons_strongest import parts_of_strongest

        parts = parts_of_strongest(asked, layer)
    if for_programs(target):  # people read it in titles
        told = question(run, trace, position, wanted, given=answer is not None, data=True)
        parts = (told, *parts)
    said = () if answer is not None else (Note(asked.chosen),)
    show(View("neurons", (*parts, *said), **run.about), target)


def units_of(run: Run, layer: int) -> int:
    """How many hidden units a layer has."""
    from gptscope.model.blocks import outlines

    return int(outlines(run.model.blocks)[layer].mlp.down.stored.shape[0])


def kept(layer: int | None, unit: int | None, *, edited: bool) -> tuple[str, ...]:
    """The values of a pass that are needed."""
    from gptscope.analysis.attribution import KEEP, KEEP_EDITED
    from gptscope.analysis.neurons import KEEP as KEEP_UNIT

    act = "mlp_act" if layer is None else f"layers.{layer}.mlp_act"
    if unit is not None:
        own = (*KEEP_UNIT, "logits", "logits_before_cap", f"layers.{layer}.mlp_*")
        return (*own, *KEEP_EDITED * edited)
    return (*(KEEP_EDITED if edited else KEEP), act)
