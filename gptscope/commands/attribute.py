"""Why a token got its score: the logit, split exactly into what every part of the model gave."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.commands import completion
from gptscope.commands.attribute_asked import Asked
from gptscope.commands.attribute_inside import by_neuron, by_source
from gptscope.commands.attribute_parts import by_head, by_layer, by_mlp, by_part
from gptscope.commands.attribute_question import ALIKE, asked_for, question
from gptscope.commands.options import Against, Answer, At, Head, Pass, Target, with_options
from gptscope.commands.output import for_programs, show
from gptscope.commands.session import start
from gptscope.errors import UsageError, check_index
from gptscope.view import Note, View

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gptscope.view import Part


class By(StrEnum):
    """What the score is split into."""

    part = "part"
    layer = "layer"
    head = "head"
    mlp = "mlp"
    neuron = "neuron"
    source = "source"


class Sort(StrEnum):
    """In which order the parts come."""

    size = "size"
    order = "order"


SHOWN: Mapping[By, Callable[[Asked], list[Part]]] = {
    By.part: by_part,
    By.layer: by_layer,
    By.head: by_head,
    By.mlp: by_mlp,
    By.neuron: by_neuron,
    By.source: by_source,
}
# Which options go with what.
LAYERED = By.neuron, By.source
CUT = By.part, *LAYERED
SORTED = By.part, By.layer, By.mlp, *LAYERED
HEADS = By.part, By.head, By.source  # where heads are shown
MORE = {By.neuron: ("mlp_act",), By.source: ("weights", "v")}  # values that are needed as well
TOP, FEW = 20, 40  # shown by size if nothing else is said; tokens that are shown in order
INDIRECT = (
    "Direct effects alone, with the scale of every norm frozen at this pass: what a part wrote for "
    "later parts to read counts as theirs. gptscope sweep measures the whole effect."
)
VALUES = (
    "The bias of a head's values is in the head's own number: its weights sum to 1, so that it "
    "comes through whole"
)
CAPPED = (
    "The account is of the logit before its soft cap, which bends the sum of all parts and belongs "
    "to none of them"
)


@with_options
def command(
    source: Pass,
    target: Target,
    answer: Answer = None,
    against: Against = None,
    at: At = -1,
    by: Annotated[By, typer.Option("--by", help="What the score is split into.")] = By.part,
    layer: Annotated[
        int | None,
        typer.Option(
            "--layer",
            "-l",
            help="Of one block, from 0; -1 is the last; by neuron or source.",
            autocompletion=completion.layers,
            show_default=False,
        ),
    ] = None,
    head: Head = None,
    sort: Annotated[
        Sort | None,
        typer.Option(help="By size, or in the order of the pass.", show_default=False),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            "--top",
            min=1,
            help="How many to show, the rest summed; 20 by size, all in order if not given.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Which part of the model put an answer there: its score, split exactly.

    gptscope attribute "Lily wanted to play with her" --answer " doll"

    gptscope attribute "There was a girl named Lily. One day," --answer " she" --against " he"

    gptscope attribute "There was a girl named Lily. One day," --by source --layer 3 --head 3

    Everything that was added to the stream at a token is a term of the logit,
    as the scale of the norms is frozen at this pass (direct logit
    attribution). Without --answer it is the likeliest token.
    """
    check_options(by, {"--layer": layer, "--head": head, "--sort": sort, "--top": top})
    run = start(source)
    spec = run.model.spec
    layer = None if layer is None else check_index("layer", layer, spec.n_layers)
    head = None if head is None else check_index("head", head, spec.n_heads)
    position = check_index("token", at, len(run.ids))
    trace = run.trace(*kept(by, layer, edited=bool(source.edit)))
    wanted = asked_for(run, trace, position, (answer, against))
    by_size = sort == Sort.size if sort else by_size_at_first(by, position)
    most = TOP if top is None and by_size and by in CUT else top
    asked = Asked(run, trace, position, wanted, layer, head, by_size, most)
    given, data = answer is not None, for_programs(target)
    tokens = question(run, trace, position, wanted, given=given, data=data)
    show(View("attribute", (tokens, *SHOWN[by](asked), *notes(asked, by)), **run.about), target)


def check_options(by: By, given: Mapping[str, object]) -> None:
    """Refuse options that do not go with what the score is split into.

    Raises:
        UsageError: there is one of them.
    """
    goes = {"--layer": LAYERED, "--head": (By.source,), "--sort": SORTED, "--top": CUT}
    for option, value in given.items():
        if value is not None and by not in goes[option]:
            names = " or ".join(goes[option])
            raise UsageError(f"{option} does not go with --by {by}", hint=f"--by {names}")
    if given["--head"] is not None and given["--layer"] is None:
        raise UsageError("--head needs a layer", hint="--layer 0")


def by_size_at_first(by: By, position: int) -> bool:
    """Whether the parts are sorted by size if nothing is said: where there are many."""
    return by in (By.part, By.neuron) or (by == By.source and position >= FEW)


def kept(by: By, layer: int | None, *, edited: bool) -> list[str]:
    """The values that are needed."""
    from gptscope.analysis.attribution import KEEP, KEEP_EDITED
    from gptscope.engine.hook_points import BY_KEY

    more = MORE.get(by, ())
    if layer is not None:
        more = tuple(BY_KEY[key].name.format(l=layer, h="*") for key in more)
    return [*(KEEP_EDITED if edited else KEEP), *more]


def notes(asked: Asked, by: By) -> list[Note]:
    """What the numbers are, and what they are not."""
    from gptscope.model.blocks import outlines

    biased = by in HEADS and any(
        block.attention.v.bias is not None for block in outlines(asked.model.blocks)
    )
    alone = len(asked.wanted) == 1 and not asked.capped
    said = [INDIRECT, *[ALIKE] * alone, *[VALUES] * (biased and asked.reads_all)]
    return [Note(text) for text in said + [CAPPED] * asked.capped]
