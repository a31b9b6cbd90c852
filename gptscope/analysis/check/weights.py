"""What is wrong with weights can often be seen without a pass, and without a reference."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from gptscope.analysis.check.result import Result, faultless
from gptscope.errors import ModelError
from gptscope.model.dtypes import widen
from gptscope.model.files import counted
from gptscope.model.finite import is_finite
from gptscope.model.pieces import numbers
from gptscope.model.weights import rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from gptscope.analysis.check.opening import Opening
    from gptscope.model.checkpoint import Checkpoint
    from gptscope.model.weights import Model, Table

    Tables = Mapping[str, Table]

FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
ROWS = 4096  # of a table that are read at once
SAMPLE = 1 << 16  # numbers of a tensor that tell it from others
DISTINCT = 16  # different numbers that make a tensor more than a constant
NEGATIVE = 0.25  # share of gains: those of trained models known to us are nearly all positive


def weight_results(found: Opening, checkpoint: Checkpoint) -> Iterator[Result]:
    """NaN and infinities, then tensors that are copies, blank or rounded."""
    tables = parameters(found, checkpoint)
    n = counted(len(tables), "tensor")
    yield faultless("finite", f"every number of {n}", not_finite(tables))
    samples = {name: sample(table) for name, table in tables.items()}
    yield faultless("same blocks", f"{n}, block against block", copies(samples))
    yield faultless("all zeros", f"{n}, block against block", blanks(tables, samples))
    full = {name: x for name, x in samples.items() if tables[name].dtype == FLOAT32}
    yield faultless("rounded", f"digits of {n}, block against block", rounded(full))


def model_weight_results(found: Opening, model: Model) -> Iterator[Result]:
    """Rows of the tables, and the gains of the norms."""
    yield empty_rows(found, model)
    yield gains_result(model)


def parameters(found: Opening, checkpoint: Checkpoint) -> Tables:
    """The tensors with numbers of a pass, by the names in the file."""
    return {
        name: table
        for name, table in checkpoint.arrays.items()
        if table.dtype.kind in "fV" and found.rename(name) not in found.ignored
    }


def not_finite(tables: Tables) -> Iterator[str]:
    """A sentence for the first tensors with NaN or infinities, which says how many of each."""
    for name, table in tables.items():
        if is_finite(table):
            continue
        nan = infinite = 0
        for part in numbers(table, FLOAT32):
            nan, infinite = nan + int(np.isnan(part).sum()), infinite + int(np.isinf(part).sum())
        kinds = [f"{n:,} {what}" for n, what in ((nan, "NaN"), (infinite, "infinite")) if n]
        yield f"{name} holds {' and '.join(kinds)} of {int(np.prod(table.shape)):,} numbers"


def sample(table: Table) -> NDArray[Any]:
    """The first numbers of a tensor, widened."""
    if not table.shape or 0 in table.shape:
        return widen(np.asarray(table), FLOAT32).ravel()
    n = max(1, SAMPLE // max(1, int(np.prod(table.shape[1:]))))
    return rows(table, slice(0, n), FLOAT32).ravel()


def sisters(names: Iterable[str]) -> Iterator[list[str]]:
    """Tensors that differ only in the number of their block."""
    groups = defaultdict[str, list[str]](list)
    for name in names:
        groups[re.sub(r"\d+", "*", name, count=1)].append(name)
    return (group for group in groups.values() if len(group) > 1)


def copies(samples: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    """Tensors of two blocks that hold the same numbers; whole blocks in one sentence."""
    pairs = defaultdict[tuple[str, str], list[str]](list)
    for group in sisters(samples):
        seen: dict[bytes, str] = {}
        for name in group:
            x = samples[name]
            first = seen.setdefault(x.tobytes(), name)
            if first != name and len(np.unique(x)) >= min(DISTINCT, x.size) > 1:
                pairs[number(first), number(name)].append(name)
    for (first_block, block), names in pairs.items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        yield f"{names[0]}{more} of block {block} hold the same numbers as in block {first_block}"


def number(name: str) -> str:
    """The block in a tensor's name."""
    found = re.search(r"\d+", name)
    return found[0] if found else ""


def blanks(tables: Tables, samples: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    """Tensors of zeros, where those of other blocks are not."""
    for group in sisters(samples):
        empty = [n for n in group if not samples[n].any() and is_blank(tables[n])]
        if len(empty) <= len(group) // 2:
            yield from (f"{name} is all zeros, and that of other blocks is not" for name in empty)


def is_blank(table: Table) -> bool:
    """Whether all numbers are 0."""
    return not any(part.any() for part in numbers(table, FLOAT32))


def rounded(samples: Mapping[str, NDArray[Any]]) -> Iterator[str]:
    """Tensors with the digits of a narrower format, where those of other blocks have more."""
    for group in sisters(samples):
        telling = [name for name in group if len(np.unique(samples[name])) >= DISTINCT]
        narrow = {name: narrower(samples[name]) for name in telling}
        found = [name for name in telling if narrow[name]]
        if len(found) <= len(telling) // 2:
            for name in found:
                yield f"{name} has only the digits of {narrow[name]}, and other blocks have more"


def narrower(x: NDArray[Any]) -> str | None:
    """The format with fewer digits that all these float32 numbers fit into, if there is one."""
    if not (x.view(np.uint32) & 0xFFFF).any():
        return "bfloat16"
    with np.errstate(over="ignore"):
        return "float16" if np.array_equal(x, x.astype(np.float16).astype(np.float32)) else None


def empty_rows(found: Opening, model: Model) -> Result:
    """Rows of zeros in the table of tokens, but for padding, or in that of positions."""
    padding = padding_ids(found)
    known = model.tokenizer.size if model.tokenizer else model.spec.n_vocab
    tokens = [i for i in zero_rows(model.token_table) if i not in padding and i < known]
    faults = []
    if tokens:
        faults.append(f"row {tokens[0]} of the token table is all zeros ({len(tokens)} are)")
    n = model.token_table.shape[0]
    if model.position_table is not None and model.spec.positions == "learned":
        n += model.position_table.shape[0]
        places = zero_rows(model.position_table)
        if places:
            faults.append(f"row {places[0]} of the position table is all zeros ({len(places)} are)")
    return faultless("empty rows", f"{counted(n, 'row')} of tokens and positions", faults)


def padding_ids(found: Opening) -> tuple[int, ...]:
    """The ids of padding; none where the config does not say any, or says something else."""
    try:
        return found.config.token_ids("pad_token_id") if found.config else ()
    except ModelError:  # which the check of the tokenizer tells
        return ()


def zero_rows(table: Table) -> list[int]:
    """The rows without any number but 0."""
    found: list[int] = []
    for start in range(0, table.shape[0], ROWS):
        part = rows(table, slice(start, start + ROWS), FLOAT32)
        found += (start + np.flatnonzero(~part.any(axis=1))).tolist()
    return found


def gains_result(model: Model) -> Result:
    """The share of negative gains of all norms: stored less 1, as Gemma's are, half are."""
    norms = [model.ln_final, model.embed_norm]
    for block in model.blocks:
        norms += [block.ln1, block.ln2, block.ln1_post, block.ln2_post]
    gains = np.concatenate([np.ravel(norm.gain) for norm in norms if norm is not None])
    share, mean = float((gains < 0).mean()), float(gains.mean(dtype=np.float64))
    sentence = (
        f"{share:.0%} of the gains of the norms are negative, their mean is {mean:.2f}: they may "
        "be stored less 1, as Gemma's are"
    )
    looked = f"{counted(len(gains), 'gain')} of norms"
    return Result("norm gains", looked, share, NEGATIVE, (sentence,) * (share > NEGATIVE))
