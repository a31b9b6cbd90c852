# Micro models of every family against what transformers computes of them, in NumPy alone.

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import gptscope
from gptscope.engine import attention
from gptscope.engine.cache import Cache
from gptscope.engine.forward import forward
from gptscope.engine.generate import generate, may_be_cached
from gptscope.model import mapping
from gptscope.model.families import FAMILIES
from gptscope.model.files import read_json
from gptscope.model.weights import tables
from tests.golden.transformers.cases import CASES
from tests.golden.transformers.old_names import OLD_NAMES
from tests.golden.transformers.weights import HERE, golden, rows, write_folder
from tests.helpers.close import assert_close

NAMES = [case.name for case in CASES]
SPELLINGS = sorted(f"{path.parent.name}/{path.name}" for path in HERE.glob("*/config-*.json"))
DTYPES = ["float32", "float64"]
STOPS = (0, 7, 8, 40, 60, 61, 79, 80)  # of a text read piece by piece: windows are shorter


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


# Ways of computing the same


def by_pieces(model, ids):
    cache = Cache(model.spec, model.dtype)
    return np.concatenate([forward(model, ids[a:b], cache=cache) for a, b in pairwise(STOPS)])


@pytest.mark.parametrize("at_once", [1 << 24, 600])  # scores: the second cuts some of the pieces
def test_cached_equals_recomputed(case, at_once, monkeypatch):
    folder, ids, _ = case
    model, ids = gptscope.load(folder), np.array(ids)
    expected = forward(model, ids)
    monkeypatch.setattr(attention, "MIXED_AT_ONCE", at_once)
    assert_close("logits", forward(model, ids), expected)
    if may_be_cached(model):
        assert_close("logits", by_pieces(model, ids), expected)


def test_what_is_generated_is_what_whole_passes_give(case):
    folder, ids, _ = case
    model, ids = gptscope.load(folder), ids[:44]
    for token in generate(replace(model, end_ids=()), ids, 8, temperature=0).ids:
        assert forward(model, np.array(ids))[-1].argmax() == token
        ids = [*ids, token]  # past 48, where some begin to turn otherwise: no cache holds then


def test_outlines_hold_no_numbers(case):
    outlines = gptscope.load(case[0]).blocks.outlines
    matrices = [table for table in tables(outlines) if len(table.shape) == 2]
    assert matrices
    assert not any(any(table.strides) for table in matrices)


def test_what_was_given_back_is_read_again(case, monkeypatch):
    folder, ids, _ = case
    expected = forward(gptscope.load(folder), np.array(ids))
    monkeypatch.setattr(mapping, "LARGE", 0)  # every file counts as large
    model = gptscope.load(folder)
    for _ in range(2):
        np.testing.assert_array_equal(forward(model, np.array(ids)), expected, strict=True)
