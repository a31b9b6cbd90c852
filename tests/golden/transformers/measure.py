"""A table of the largest errors of each family: `python -m tests.golden.transformers.measure`.

Every value of a pass, in every row, is held against transformers in exact float64. Errors are of
the value's scale (its largest magnitude, and at least 1); those of attention weights are absolute.
"""

import sys
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import transformers

import gptscope
from tests.golden.transformers.capture import capture
from tests.golden.transformers.cases import CASES, LENGTH, Case
from tests.golden.transformers.reading import Values
from tests.golden.transformers.weights import ids, write_folder
from tests.helpers.close import errors, scale

Errors = dict[str, float]
COLUMNS = ("float32", "weights", "float64", "theirs")
HEADER = (
    "family",
    "variants",
    "float32, of the scale",
    "float32, attention weights",
    "float64, of the scale",
    "transformers' own logits in float32",
)


def largest(actual: Mapping[str, np.ndarray], expected: Values) -> tuple[float, float]:
    """The largest error of the scale, and of attention weights."""
    worst, worst_weight = 0.0, 0.0
    for name, value in expected.items():
        error = float(errors(np.asarray(actual[name], np.float64), value).max(initial=0))
        if name.endswith(".weights"):
            worst_weight = max(worst_weight, error)
        worst = max(worst, error / scale(value))
    return worst, worst_weight


def own_logits(folder: Path, tokens: list[int], allowed: Container[str] = ()) -> np.ndarray:
    """What transformers itself gives in float32, its model loaded as anyone would."""
    model, info = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float32, output_loading_info=True
    )
    refused = [kind for kind in ("missing", "unexpected", "mismatched") if kind not in allowed]
    assert not any(info[f"{kind}_keys"] for kind in refused), info
    with torch.no_grad():
        return model.eval()(torch.tensor([tokens]), use_cache=False).logits[0].numpy()


def truth(case: Case, folder: Path) -> tuple[list[int], Values]:
    """A folder of the case, its tokens, and every value of the pass."""
    tokens = ids(case.name, case.config["vocab_size"], LENGTH)
    return tokens, capture(write_folder(case.name, folder), tokens)


def measured(case: Case) -> Errors:
    """The case's largest errors, by column."""
    with TemporaryDirectory() as home:
        folder = Path(home)
        tokens, expected = truth(case, folder)
        found: Errors = {}
        for dtype in ("float32", "float64"):
            trace = gptscope.trace(gptscope.load(folder, dtype=dtype), tokens)
            values = {name: np.asarray(trace[name]) for name in expected}
            found[dtype], weight = largest(values, expected)
            found.setdefault("weights", weight)
        logits = {"logits": expected["logits"]}
        found["theirs"] = largest({"logits": own_logits(folder, tokens)}, logits)[0]
    return found


def table(found: Mapping[str, Errors]) -> str:
    """Case -> errors as a Markdown table with a row for each family."""
    by_family: dict[str, list[Errors]] = {}
    for case in CASES:
        if case.name in found:
            by_family.setdefault(case.family, []).append(found[case.name])
    rows: list[Iterable[str]] = [HEADER, ("---", *["---:"] * len(HEADER[1:]))]
    for family, cases in by_family.items():
        worst = (max(errors_[column] for errors_ in cases) for column in COLUMNS)
        rows.append((f"`{family}`", str(len(cases)), *(f"{error:.1e}" for error in worst)))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main(*names: str) -> None:
    """The table of all cases, or of those that are named."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    found: dict[str, Errors] = {}
    for case in CASES:
        if names and case.name not in names:
            continue
        try:
            found[case.name] = measured(case)
        except (gptscope.GptscopeError, AssertionError) as error:
            print(f"{case.name}: {error}", file=sys.stderr)  # noqa: T201
    print(table(found))  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
