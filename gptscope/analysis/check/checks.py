"""The checks of a model, in the order in which it is opened and run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Stage = Literal["files", "weights", "model", "pass", "saved trace"]


@dataclass(frozen=True)
class Check:
    """What one check looks for, what its figure counts, and what to do where it finds something."""

    meaning: str
    advice: str
    needs: Stage = "files"
    unit: str = "faults"


CHECKS: Mapping[str, Check] = {
    "files": Check("files of weights that are cut short or broken", "copy the file once more"),
    "config": Check(
        "settings that are not understood, or cannot be",
        "correct the setting; take out one that does not change the computation",
    ),
    "tensors": Check(
        "tensors that are missing or left over",
        "compare the layers and kinds of parts in the config with what was exported",
    ),
    "shapes": Check(
        "tensors of another shape than the config says",
        "correct the sizes in the config; turn a matrix that is stored turned",
    ),
    "tokenizer": Check(
        "tokens and special ids that the token table has no rows for",
        "take the tokenizer and the special ids of this very model",
    ),
    "tying": Check(
        "an output table that is tied otherwise than the config says",
        "correct tie_word_embeddings, or export lm_head.weight",
    ),
    "finite": Check(
        "NaN and infinities in the weights",
        "export from a wider format; if they are there too, go back to an earlier checkpoint",
        "weights",
    ),
    "same blocks": Check(
        "tensors of two blocks with the same numbers", "export again, block by block", "weights"
    ),
    "all zeros": Check(
        "tensors of zeros where those of other blocks are not",
        "export again: a tensor that was never copied stays as it was made",
        "weights",
    ),
    "rounded": Check(
        "tensors with fewer digits than those of other blocks",
        "export again, all tensors in one format",
        "weights",
    ),
    "empty rows": Check(
        "rows of zeros in the tables of tokens and positions",
        "copy the rows from the source; those of padding are meant to be zeros",
        "model",
    ),
    "norm gains": Check(
        "gains of the norms stored less 1, as Gemma's are",
        "add 1 to the gains, or name the family that stores them so",
        "model",
        "share below 0",
    ),
    "finite pass": Check(
        "the first value of a pass with NaN or infinities",
        "look at the tensors that the check finite names, then at the norm before the value",
        "model",
    ),
    "attention rows": Check(
        "rows of attention weights that do not sum to 1",
        "report it: the engine is wrong, and not the model",
        "pass",
        "how far from 1",
    ),
    "look ahead": Check(
        "values of earlier tokens that move with the last token",
        "set causal: true, or expect no sense of its predictions",
        "pass",
        "parts of the scale",
    ),
    "cache": Check(
        "logits that differ when keys and values are kept",
        "report it: the engine is wrong, and not the model",
        "pass",
        "parts of the scale",
    ),
    "float32": Check(
        "errors of float32 that rounding does not explain",
        "compute with --dtype float64, and look at the value that is named",
        "pass",
        "parts of the scale",
    ),
    "text": Check(
        "a loss on a text like that of a model that knows nothing",
        "give a text of the model's own kind with --text; then compare with a saved trace: "
        "--against",
        "pass",
        "nats per token",
    ),
    "conventions": Check(
        "other conventions with which the text fits better",
        "export again by the convention that is named; without one, use --against",
        "pass",
        "nats per token",
    ),
    "against": Check(
        "the first value that differs from a saved trace",
        "look at what makes the value that is named, with explain",
        "saved trace",
        "parts of the scale",
    ),
}
STAGES: tuple[Stage, ...] = ("files", "weights", "model", "pass")


def from_stage(stage: Stage) -> Iterator[str]:
    """The names of the checks that need this, or what comes after it."""
    later = STAGES[STAGES.index(stage) :]
    return (name for name, check in CHECKS.items() if check.needs in later)
