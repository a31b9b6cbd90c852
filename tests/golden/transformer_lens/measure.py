"""How far both programs are apart: `python -m tests.golden.transformer_lens.measure`.

Two tables: what both compute alike, as a share of the largest number if that is above 1; and where
TransformerLens' own functions give other numbers. `--write` puts them into the page of the docs.
"""

import os
import re
import sys
from collections.abc import Iterable

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # before it is imported

import numpy as np
import torch

from tests.golden.transformer_lens.changes import CHANGES
from tests.golden.transformer_lens.opened import MODELS, ROOT, Opened
from tests.golden.transformer_lens.own import BY_DEFAULT, OWN, probabilities
from tests.golden.transformer_lens.quantities import QUANTITIES, Pair
from tests.helpers.close import errors, scale

PAGE = ROOT / "docs" / "transformer-lens.md"
COMPARED = {**QUANTITIES, **CHANGES}
SAME, OTHER = "what is compared", "what TransformerLens gives by itself"
__all__ = ["BY_DEFAULT", "COMPARED", "MODELS", "OWN", "probabilities"]


def apart(pair: Pair) -> float:
    """The largest difference of two arrays of the same shape."""
    ours, theirs = (np.asarray(one, np.float64) for one in pair)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    assert theirs.size, "nothing is compared"
    return float(errors(ours, theirs).max())


def of_the_scale(pair: Pair) -> float:
    """The same, as a share of the largest number if that is above 1."""
    return apart(pair) / scale(np.asarray(pair[1], np.float64))


def rows(opened: list[Opened]) -> list[Iterable[str]]:
    """The table of what must agree."""
    found: list[Iterable[str]] = [(SAME, *MODELS, "TransformerLens has it from")]
    for name, (pair, source) in COMPARED.items():
        numbers = (f"{of_the_scale(pair(one)):.1e}" for one in opened)
        found.append((name, *numbers, source))
    return found


def other_rows(opened: list[Opened]) -> list[Iterable[str]]:
    """The table of what TransformerLens gives otherwise."""
    found: list[Iterable[str]] = [(OTHER, *MODELS, "why")]
    for name, (pair, why) in OWN.items():
        found.append((name, *(f"{apart(pair(one)):.2g}" for one in opened), why))
    return found


def table(lines: list[Iterable[str]]) -> str:
    """As Markdown."""
    first, *rest = ([*line] for line in lines)
    rule = ["---", *("---:" for _ in MODELS), "---"]
    return "\n".join(f"| {' | '.join(line)} |" for line in (first, rule, *rest))


def main() -> None:
    """Print both tables, or write them."""
    torch.set_num_threads(1)
    opened = [make() for make in MODELS.values()]
    tables = table(rows(opened)), table(other_rows(opened))
    if "--write" not in sys.argv[1:]:
        print("\n\n".join(tables))  # noqa: T201
        return
    text = PAGE.read_text("utf-8")
    for first, new in zip((SAME, OTHER), tables, strict=True):
        old = re.compile(rf"^\| {first} \|.*\n(?:\|.*\n)*", re.MULTILINE)
        text = old.sub(lambda _, new=new: f"{new}\n", text)
    PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
