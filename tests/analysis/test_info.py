import pytest

import gptscope
from gptscope.analysis.info import base, cache_numbers, kinds, ranges, shared_heads, stretched
from gptscope.model.positions import turning_speeds
from tests.golden.transformers.weights import write_folder
from tests.helpers.folders import GOLDEN


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([], ""), ([3], "3"), ([0, 1, 2], "0-2"), ([0, 2, 3, 7], "0, 2-3, 7")],
)
def test_numbers_in_a_row_are_together(numbers, expected):
    assert ranges(numbers) == expected


@pytest.mark.parametrize(("n_heads", "groups"), [(4, 4), (6, 2), (3, 1)])
def test_every_head_reads_one_group(n_heads, groups):
    pairs = shared_heads(n_heads, groups)
    assert [h for _, heads in pairs for h in heads] == list(range(n_heads))
    assert all(h // (n_heads // groups) == g for g, heads in pairs for h in heads)


@pytest.mark.parametrize("true", [10_000.0, 500_000.0, 500.0, 1e6])
@pytest.mark.parametrize("d_head", [4, 10, 128])
def test_the_base_is_found_in_the_speeds(true, d_head):
    assert base(turning_speeds(d_head, true)) == pytest.approx(true, rel=1e-9)


@pytest.mark.parametrize("speeds", [(1.0,), (0.5, 0.1), (1.0, 0.1, 0.2), (1.0, 1.0), ()])
def test_other_speeds_have_no_base(speeds):
    assert base(speeds) is None


def test_layers_alike_are_together(tmp_path):
    assert list(kinds(gptscope.load("tiny")).values()) == [[0, 1, 2, 3]]
    found = kinds(gptscope.load(write_folder("gemma2", tmp_path)))
    assert [(kind.window, layers) for kind, layers in found.items()] == [(16, [0]), (None, [1])]


def test_a_rotary_model_turns():
    (kind,) = kinds(gptscope.load(GOLDEN / "toy-rotary"))
    assert (kind.turned, kind.base, kind.factor, kind.steepest) == (10, 500, 1, None)


@pytest.mark.parametrize(("case", "expected"), [("llama", False), ("llama-dynamic", True)])
def test_speeds_may_depend_on_the_length(case, expected, tmp_path):
    assert stretched(gptscope.load(write_folder(case, tmp_path))) == expected


def test_the_cache_holds_keys_and_values_of_groups(tmp_path):
    model = gptscope.load(write_folder("llama-grouped", tmp_path))
    assert cache_numbers(model) == 2 * 2 * 2 * 10
