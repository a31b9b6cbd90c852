"""The text of a sweep, or the clean and the corrupt one: as many tokens, and not the same."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gptscope.commands.session import Run, fed, start
from gptscope.errors import UsageError
from gptscope.glyphs import token_glyphs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gptscope.commands.options import Pass

IDS = "ids:"  # before token ids in place of a text
SHOWN = 6  # tokens of a text that does not fit


def runs(source: Pass, clean: str | None, corrupt: str | None) -> tuple[Run, Run | None]:
    """The model with its text, or with the clean text and with the corrupt one.

    Raises:
        UsageError: there are other texts as well, or they differ in length or not at all.
    """
    if clean is None and corrupt is None:
        return start(source), None
    if clean is None or corrupt is None:
        raise UsageError("--clean and --corrupt go together: one is patched into the other")
    if any(one is not None for one in (source.text, source.file, source.ids)):
        raise UsageError("--clean and --corrupt are the texts: give no other beside them")
    run = start(read_as(source, clean))
    made = fed(run.model, read_as(source, corrupt), may_be_empty=False)
    other = replace(made, edits=run.edits, verbose=run.verbose)
    if run.ids == other.ids:
        raise UsageError("--clean and --corrupt are the same tokens: nothing could be patched")
    check_lengths(run, other)
    return run, other


def read_as(source: Pass, text: str) -> Pass:
    """The source with this text, or with the token ids after `ids:`."""
    if text.startswith(IDS):
        return replace(source, ids=text.removeprefix(IDS))
    return replace(source, text=text)


def check_lengths(clean: Run, corrupt: Run) -> None:
    """Whether both texts have as many tokens.

    Raises:
        UsageError: they do not; it shows the tokens from the first difference on.
    """
    if len(clean.ids) == len(corrupt.ids):
        return
    pairs = enumerate(zip(clean.ids, corrupt.ids, strict=False))
    shorter = min(len(clean.ids), len(corrupt.ids))
    part = next((i for i, (one, two) in pairs if one != two), shorter)
    tails = " | ".join(some(run.labels[part:]) for run in (clean, corrupt))
    raise UsageError(
        f"--clean has {len(clean.ids)} tokens and --corrupt {len(corrupt.ids)}, and each must "
        f"stand against one of the other; from token {part} on they are {tails}",
        "choose words of as many tokens: gptscope tokens TEXT shows them",
    )


def some(labels: Sequence[str]) -> str:
    """The first of these tokens."""
    words = [token_glyphs(one) for one in labels[:SHOWN]] + ["..."] * (len(labels) > SHOWN)
    return " ".join(words) or "none"
