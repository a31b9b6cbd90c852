"""The list of commands, loaded when called; the one place where errors end."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from gptscope.errors import ClosedPipe, GptscopeError, NotFiniteWarning, Status
from gptscope.glyphs import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

COMMANDS: Mapping[str, tuple[str, str]] = {  # name -> group and one line of help
    "tour": ("Look", "Eleven cards: a text on its way through the model, step by step."),
    "tokens": ("Look", "The pieces that the model reads: ids, bytes, places in the text."),
    "embeddings": ("Look", "What each token and each position bring along, and their sum."),
    "positions": (
        "Look",
        "What the model knows of places: the table, its waves, how alike they are.",
    ),
    "norms": ("Look", "Mean and standard deviation of every list before and after each norm."),
    "attention": ("Look", "Which token reads from which, head by head, as a grid of numbers."),
    "mlp": ("Look", "The hidden units of a feed-forward layer: how many are on, and which most."),
    "residual": ("Follow", "How long each token's list is after every step, and what was added."),
    "next": ("Follow", "The likeliest next tokens, with logits and probabilities."),
    "generate": ("Follow", "Go on with a text, token by token; without a text, tell a story."),
    "explain": ("Follow", "One printed number, taken apart until it adds up again."),
    "trace": ("Follow", "Save every named value of a pass, or some of them, to a file."),
    "lens": ("Why", "What each layer would have said: the answer on its way through the layers."),
    "attribute": ("Why", "Which part of the model put an answer there: its score, split exactly."),
    "heads": ("Why", "What each attention head is for: scores beside what chance would give."),
    "neurons": ("Why", "What a hidden unit reads and says; the units strongest for an answer."),
    "surprise": ("Why", "How surprised the model is by every token of a text."),
    "neighbours": ("Why", "The tokens nearest to a token in the model's embedding."),
    "compare": ("Change", "A pass before and after edits, side by side."),
    "steer": ("Change", "A direction from some texts to others, to add while the model runs."),
    "sweep": ("Change", "The effect of every edit of a kind, as a heat map with numbers."),
    "params": ("Measure", "Parameters counted from sizes, or in the tensors of a model."),
    "weights": ("Measure", "The tensors of a model in numbers; singular values of its heads."),
    "check": ("Measure", "What is wrong with a model, and where it begins."),
    "diff": ("Measure", "Which tensors of two models differ, and where their passes part."),
    "experiment mask": (
        "Experiments",
        "What a model learns that may look at the word it is to predict.",
    ),
    "experiment order": ("Experiments", "Attention alone does not know the order of the tokens."),
    "models": ("Models", "The models that come with gptscope."),
    "info": ("Models", "What a model is: sizes, how it is built, parameters, memory, files."),
}


SETTINGS = {"help_option_names": ["--help", "-h"]}
# What the parser raises: it has no public name, whether click comes with typer or beside it.
CommandLineError: Any = typer.BadParameter.__base__


class LazyCommand(TyperCommand):
    """A command whose file is imported when it is called, or when its own help is asked for."""

    whole = ""  # its key in `COMMANDS`

    def make_context(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        """The context of the command that this one stands for."""
        return loaded(self.whole).make_context(*args, **kwargs)


class LazyGroup(TyperGroup):
    """All commands, each as a stand-in that knows its line of help and no more."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401
        """Stand-ins for all of `COMMANDS`."""
        super().__init__(**kwargs)
        for name, (group, line) in COMMANDS.items():
            first, _, second = name.partition(" ")
            if second and first not in self.commands:
                self.commands[first] = group_of(first, group)
            inside: Any = self.commands[first] if second else self
            panel = None if second else group
            command = LazyCommand(
                second or first, callback=_nothing, help=line, rich_help_panel=panel
            )
            command.whole = name
            inside.commands[second or first] = command

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ANN401, ARG002
        """In the order of `COMMANDS`."""
        return list(self.commands)


def group_of(first: str, panel: str) -> TyperGroup:
    """An empty group for commands that share their first word: `experiment mask`, ..."""
    names = (name.split() for name in COMMANDS)
    more = ", ".join(words[1] for words in names if words[0] == first and len(words) > 1)
    return TyperGroup(
        name=first,
        help=f"{panel} to repeat: {more}.",
        rich_help_panel=panel,
        no_args_is_help=True,
        context_settings=SETTINGS,
    )


def loaded(name: str) -> Any:  # noqa: ANN401
    """The real command; `experiment mask` lives in `commands/experiment_mask.py`."""
    module = import_module(f"gptscope.commands.{name.replace(' ', '_')}")
    one = typer.Typer(add_completion=False)
    one.command(name.rpartition(" ")[2], context_settings=SETTINGS)(module.command)
    return typer.main.get_command(one)


def _nothing() -> None:
    """What a stand-in would do."""


def _version(asked: bool) -> None:  # noqa: FBT001
    if asked:
        from gptscope import __version__

        typer.echo(f"gptscope {__version__}")
        raise typer.Exit


def root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """See what happens inside a GPT, number by number.

    gptscope attention "Lily wanted to play with her" --layer 0 --head 0
    """


def main() -> NoReturn:
    """Run the command line and end with the right status."""
    gc.set_threshold(100_000)  # while modules are imported, there is nothing to collect
    sys.exit(run(sys.argv[1:]))


def run(args: Sequence[str]) -> int:
    """Call the program; what a user can mend becomes one sentence, a closed pipe ends quietly."""
    try:
        with warnings.catch_warnings():
            status = program(args)
    except GptscopeError as fault:
        return complain(fault.message, fault.hint, fault.status)
    except CommandLineError as fault:
        message = fault.format_message()  # none where the help was shown instead
        where = fault.ctx.command_path if fault.ctx else "gptscope"
        return complain(message, f"{where} --help", Status.USAGE) if message else Status.USAGE
    except (KeyboardInterrupt, typer.Abort):
        status = Status.INTERRUPTED
    except SystemExit as end:  # how rich and click end when nobody reads any more
        if isinstance(end.__context__, BrokenPipeError):
            return Status.DONE
        raise
    except OSError as fault:  # of a help page: what a command writes is seen to by itself
        if fault.filename is not None:
            raise
        why = fault.strerror or fault
        return complain(f"standard output cannot be written: {why}", None, Status.FAILED)
    except ClosedPipe:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return Status.DONE
    if status == Status.INTERRUPTED:  # typer may have made a status of the interrupt already
        complain("interrupted", None, status)
    return status


def program(args: Sequence[str]) -> int:
    """The program without its error handling."""
    app = typer.Typer(
        cls=LazyGroup,
        no_args_is_help=True,
        context_settings=SETTINGS,
        pretty_exceptions_enable=False,
    )
    app.callback()(root)
    # NaN and infinities are shown as such; that NumPy met them says nothing more.
    warnings.simplefilter("ignore", RuntimeWarning)
    warnings.simplefilter("always", NotFiniteWarning)
    warnings.showwarning = warn
    return app(list(args), prog_name="gptscope", standalone_mode=False) or Status.DONE


def warn(message: Warning | str, *_where: object, **_more: object) -> None:
    """A warning as one line on standard error."""
    if sys.stderr is not None:
        sys.stderr.write(f"warning: {visible(str(message))}\n")


def complain(message: str, hint: str | None, status: int) -> int:
    """One sentence on standard error, with its hint."""
    if sys.stderr is not None:
        sys.stderr.write(f"error: {visible(message)}\n")
        sys.stderr.write(f"hint: {visible(hint)}\n" if hint else "")
    return status
