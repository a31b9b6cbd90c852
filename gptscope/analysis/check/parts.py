"""What a model is made of: its files, its config, its tensors, its tokenizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gptscope.analysis.check.result import Result, faultless, impossible
from gptscope.errors import ModelError
from gptscope.model.files import counted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gptscope.analysis.check.opening import Opening
    from gptscope.model.config import Config

SPECIAL = ("bos_token_id", "eos_token_id", "pad_token_id")
FEWER = 0.9  # of the vocabulary: padding takes less, in all models known to us


def part_results(found: Opening) -> Iterator[Result]:
    """Every check of what stands in the files, in the order in which a model is opened."""
    files = found.checkpoint.files if found.checkpoint else ()
    said = f"{counted(len(files), 'file')} of weights, header and size" if files else "the weights"
    yield faultless("files", said, found.faults["files"])
    yield config_result(found)
    yield from tensor_results(found)
    yield tokenizer_result(found)
    yield tying_result(found)


def config_result(found: Opening) -> Result:
    """Whether every setting is understood; a model must have been tried for that."""
    if found.faults["config"] or found.model is not None or found.tensors is not None:
        return faultless("config", "every setting of the config", found.faults["config"])
    if found.config is None:
        return impossible("config", "the weights could not be opened")
    said = f"{found.config.source} is JSON; its settings could not be tried"
    return impossible("config", said)


def tensor_results(found: Opening) -> Iterator[Result]:
    """Whether every tensor has its place, and the shape that the config says."""
    if found.checkpoint is None or (found.model is None and found.tensors is None):
        why = "the weights could not be opened" if found.checkpoint is None else "no known family"
        yield impossible("tensors", why)
        yield impossible("shapes", why)
        return
    n = counted(len(found.checkpoint.arrays), "tensor")
    yield faultless("tensors", f"{n}, none missing, none left over", found.faults["tensors"])
    yield faultless("shapes", f"{n} against the sizes of the config", found.faults["shapes"])


def tokenizer_result(found: Opening) -> Result:
    """Whether the tokenizer and the special ids fit the vocabulary."""
    faults = list(found.faults["tokenizer"])
    if found.model is None:
        looked = "the tokenizer alone" if faults else "without a model there is no vocabulary"
        return faultless("tokenizer", looked, faults) if faults else impossible("tokenizer", looked)
    n_vocab, tokenizer = found.model.spec.n_vocab, found.model.tokenizer
    if found.config is not None:
        faults += special_faults(found.config, n_vocab)
    looked = f"special ids; no tokenizer, {counted(n_vocab, 'row')} of tokens"
    if tokenizer is not None:
        tokens, rows = counted(tokenizer.size, "token"), counted(n_vocab, "row")
        looked = f"special ids; {tokens}, {rows} of the table"
        faults += size_faults(tokenizer.file, tokenizer.size, n_vocab)
    return faultless("tokenizer", looked, faults)


def special_faults(config: Config, n_vocab: int) -> Iterator[str]:
    """Ids of the config that no row of the token table has."""
    for key in SPECIAL:
        try:
            ids = config.token_ids(key)
        except ModelError as fault:
            yield fault.message
            continue
        for i in ids:
            if i >= n_vocab or (i < 0 and i != -1):  # -1 says none
                yield f"{key} is {i}, and the vocabulary has the ids 0 to {n_vocab - 1}"


def size_faults(file: str, size: int, n_vocab: int) -> Iterator[str]:
    """A tokenizer with other tokens than the model has rows."""
    said = f"{file} has {size:,} tokens, and the model"
    if size > n_vocab:
        yield f"{said} only {n_vocab:,} rows for them"
    elif size < FEWER * n_vocab:
        yield f"{said} {n_vocab:,} rows: more than padding explains"


def tying_result(found: Opening) -> Result:
    """Whether the output is the token table, as config and file say it."""
    if found.model is None:
        return impossible("tying", "there is no model")
    tied = "the output is the token table" if found.model.tied else "the output has its own table"
    return faultless("tying", tied, found.faults["tying"])
