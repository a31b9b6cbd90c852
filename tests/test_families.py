# Micro models of every family against what transformers computes of them, in NumPy alone.

import pytest

import gptscope
from gptscope.model.families import FAMILIES
from gptscope.model.files import read_json
from tests.golden.transformers.cases import CASES
from tests.golden.transformers.old_names import OLD_NAMES
from tests.golden.transformers.weights import HERE, golden, rows, write_folder
from tests.helpers.close import assert_close

NAMES = [case.name for case in CASES]
SPELLINGS = sorted(f"{path.parent.name}/{path.name}" for path in HERE.glob("*/config-*.json"))
DTYPES = ["float32", "float64"]


@pytest.fixture(scope="module", params=NAMES)
def case(request, tmp_path_factory):
    name = request.param
    return write_folder(name, tmp_path_factory.mktemp("micro") / name), *golden(name)


def assert_all_close(trace, expected, dtype):
    for name, value in expected.items():
        assert_close(name, trace[name][rows(name)], value, dtype)


def test_every_family_has_a_case():
    here = {read_json(HERE / name / "config.json")["model_type"] for name in NAMES}
    assert here == set(FAMILIES) - {"toy", "stablelm_epoch"}  # golden/ has the toy


def test_every_folder_is_a_case():
    assert {path.parent.name for path in HERE.glob("*/trace.safetensors")} == set(NAMES)
    assert len(SPELLINGS) >= len(NAMES) + 20


@pytest.mark.parametrize("dtype", DTYPES)
def test_names_are_those_of_transformers(case, dtype):
    folder, ids, expected = case
    names = gptscope.trace(gptscope.load(folder, dtype=dtype), ids).names()
    assert set(names) - set(expected) == set(), "names that transformers lacks"
    assert set(expected) - set(names) == set(), "names of transformers that are missing"


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_value_is_that_of_transformers(case, dtype):
    folder, ids, expected = case
    assert_all_close(gptscope.trace(gptscope.load(folder, dtype=dtype), ids), expected, dtype)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_another_spelling_of_the_config_says_the_same(spelling, tmp_path):
    name, _, file = spelling.partition("/")
    folder, (ids, expected) = write_folder(name, tmp_path, file), golden(name)
    trace = gptscope.trace(gptscope.load(folder, dtype="float64"), ids)
    assert_all_close(trace, expected, "float64")


@pytest.mark.parametrize("name", OLD_NAMES)
def test_tensors_of_older_files_find_their_places(name, tmp_path):
    folder = write_folder(name, tmp_path, layout=OLD_NAMES[name])
    ids, expected = golden(name)
    trace = gptscope.trace(gptscope.load(folder, dtype="float64"), ids)
    assert_all_close(trace, expected, "float64")
