# Whatever a benchmark takes from the program is there: they are run by hand, and seldom.

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
OTHERS = ("torch", "transformers", "transformer_lens")  # of the reference extra
FILES = [
    path.stem
    for path in sorted(BENCHMARKS.glob("*.py"))
    if not any(f"import {other}" in path.read_text("utf-8") for other in OTHERS)
    and not any(f"from {other}" in path.read_text("utf-8") for other in OTHERS)
]


@pytest.mark.parametrize("name", FILES)
def test_a_benchmark_finds_what_it_imports(name, monkeypatch):
    monkeypatch.syspath_prepend(BENCHMARKS)
    before = set(sys.modules)
    try:
        assert importlib.import_module(name).__doc__
    finally:
        for new in {Path(p).stem for p in BENCHMARKS.glob("*.py")} - before:
            sys.modules.pop(new, None)


def test_the_side_of_gptscope_is_among_them():
    assert {"why_with_gptscope", "why", "memory", "large_model"} <= set(FILES)
