"""The doctor: what is wrong with a model, and where it begins."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill, indent
from typing import TYPE_CHECKING, Annotated

import typer

from gptscope.analysis.check.checks import CHECKS
from gptscope.commands import completion
from gptscope.commands.check_text import Fed, chosen
from gptscope.commands.check_view import view
from gptscope.commands.options import Target, Top, with_options
from gptscope.commands.output import show
from gptscope.commands.progress import progress
from gptscope.errors import Status, UsageError

if TYPE_CHECKING:
    from gptscope.analysis.check.against import Saved
    from gptscope.analysis.check.examine import Plan
    from gptscope.model.weights import Model


@with_options
def command(
    target: Target,
    model: Annotated[
        str,
        typer.Argument(
            help="A shipped name, a folder or a file.",
            envvar="GPTSCOPE_MODEL",
            autocompletion=completion.models,
        ),
    ] = "tiny",
    named: Annotated[str | None, typer.Option("--model", "-m", help="The model, as MODEL.")] = None,
    sentence: Annotated[
        str | None, typer.Option("--text", help="A text to run on, in place of its own.")
    ] = None,
    ids: Annotated[str | None, typer.Option("--ids", help="Token ids of a text.")] = None,
    against: Annotated[
        Path | None,
        typer.Option("--against", help="A saved trace (.safetensors), compared value by value."),
    ] = None,
    conventions: Annotated[
        bool,
        typer.Option(
            "--conventions/--no-conventions",
            help="Try other conventions on the text, in some forty passes.",
        ),
    ] = True,
    top: Top = 20,
) -> None:
    """What is wrong with a model, and where it begins.

    gptscope check

    gptscope check toy --text "the cat eats the fish and the dog"

    Beside a good copy: gptscope trace TEXT -m GOOD -o good.safetensors, and
    then gptscope check MODEL --against good.safetensors. docs/save_trace.py
    saves what transformers computes.

    Files, config, tensors and tokenizer first, then the numbers of the weights,
    then passes: of a text, with its last token changed, token by token, in
    float64, with other conventions. Where a figure is above its limit, the
    check has found something, and says so in a sentence.

    Ends with 0 where nothing was found, and with 1 where something was; what
    is doubtful does not count.
    """
    from gptscope.analysis.check.examine import examine, n_steps
    from gptscope.analysis.check.opening import opening

    if sentence is not None and ids is not None:
        raise UsageError("give one of --text and --ids, not both")
    saved = None if against is None else read(against)
    found = opening(named or model)
    fed, plan = None, None
    if found.model is not None:
        fed = chosen(found.model, found.name, sentence, ids)
        plan = planned(found.model, fed, saved, conventions=conventions)
    with progress(n_steps(plan)) as tick:
        made = examine(found, plan, lambda: tick(1))
    show(view(found, made, plan, fed, top), target)
    if made.findings:
        raise typer.Exit(Status.FAILED)


def read(path: Path) -> Saved:
    """The saved trace.

    Raises:
        UsageError: it is an archive of NumPy.
    """
    from gptscope.analysis.check.against import read_saved

    if path.suffix.lower() == ".npz":
        raise UsageError(
            f"{path} is not a .safetensors file", "gptscope trace -o FILE.safetensors writes one"
        )
    return read_saved(path)


def planned(model: Model, fed: Fed, saved: Saved | None, *, conventions: bool) -> Plan:
    """The passes to make.

    Raises:
        UsageError: the saved trace is of another model, or its ids are not known.
    """
    from gptscope.analysis.check.examine import Plan

    of_saved = () if saved is None else ids_of(saved, model, fed)
    is_text = not fed.origin.startswith("ids drawn")
    return Plan(model, fed.ids, is_text, conventions, saved, of_saved)


def ids_of(saved: Saved, model: Model, fed: Fed) -> tuple[int, ...]:
    """The ids of a saved trace, which this model must be able to read.

    Raises:
        UsageError: they are not known, or not of this model.
    """
    from gptscope.analysis.check.against import refuse_another

    if saved.ids is None and fed.origin not in ("the ids", "the text"):
        raise UsageError("the saved trace does not say its ids", "give them with --ids")
    ids = fed.ids if saved.ids is None else saved.ids
    refuse_another(model, ids, saved)
    outside = [i for i in ids if not 0 <= i < model.spec.n_vocab]
    if outside or len(ids) > model.spec.n_ctx:
        what = f"the token id {outside[0]}" if outside else f"{len(ids)} tokens"
        raise UsageError(f"the saved trace is of {what}, which this model cannot read")
    return ids


LISTED = (
    f"The checks: {', '.join(CHECKS)}. What each looks for, and what to do where it finds "
    "something: docs/models.md."
)
command.__doc__ = f"{command.__doc__}\n{indent(fill(LISTED, 72), ' ' * 4)}\n"
