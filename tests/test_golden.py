from pathlib import Path

import pytest
from safetensors.numpy import load_file

import gptscope
from tests.helpers.close import assert_close

GOLDEN = Path(__file__).parent / "golden"
CASES = sorted(path.parent.name for path in GOLDEN.glob("*/trace.safetensors"))


@pytest.fixture(scope="module", params=CASES)
def case(request):
    values = load_file(GOLDEN / request.param / "trace.safetensors")
    return GOLDEN / request.param, values.pop("ids").tolist(), values


def test_there_are_cases():
    assert len(CASES) >= 6


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_names_are_those_of_the_reference(case, dtype):
    folder, ids, expected = case
    names = gptscope.trace(gptscope.load(folder, dtype=dtype), ids).names()
    assert len(names) == len(set(names))
    assert set(names) - set(expected) == set(), "names that the reference lacks"
    assert set(expected) - set(names) == set(), "names of the reference that are missing"


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_value_is_that_of_the_reference(case, dtype):
    folder, ids, expected = case
    trace = gptscope.trace(gptscope.load(folder, dtype=dtype), ids)
    for name, value in expected.items():
        assert_close(name, trace[name], value, dtype)


def test_float32_is_the_default(case):
    folder, ids, expected = case
    trace = gptscope.trace(gptscope.load(folder), ids)
    assert_close("logits", trace["logits"], expected["logits"])
