from dataclasses import asdict

import pytest

import gptscope
from gptscope.errors import UsageError
from gptscope.model.params import n_params
from tests.helpers.folders import CASES, GOLDEN


def test_parts_by_hand():
    count = n_params(8, 2, 12, 0)
    assert asdict(count) == {
        "embeddings": 96,
        "attention": 576,
        "network": 1_104,
        "normalisations": 80,
    }
    assert count.total == 1_856


@pytest.mark.parametrize(
    ("sizes", "total"),
    [
        ({"d": 768, "L": 12}, 125_226_240),
        ({"d": 768, "L": 12, "ctx": 1024}, 124_439_808),
        ({"d": 1024, "L": 24, "ctx": 1024}, 354_823_168),
        ({"d": 12_288, "L": 96}, 174_604_259_328),
        ({"d": 128, "L": 4, "V": 4096, "ctx": 128}, 1_334_016),
    ],
)
def test_published_models(sizes, total):
    assert n_params(**sizes).total == total


def test_feed_forward_width():
    assert n_params(8, 2, 12, 0, ff=32) == n_params(8, 2, 12, 0)
    assert n_params(8, 2, 12, 0, ff=33).network == 1_104 + 2 * (2 * 8 + 1)


@pytest.mark.parametrize("name", ["d", "L", "V", "ctx", "ff"])
def test_a_size_below_zero_is_refused(name):
    sizes = {"d": 8, "L": 2, "V": 12, "ctx": 0, "ff": 32, name: -1}
    with pytest.raises(UsageError, match="a size cannot be below 0"):
        n_params(**sizes)


def test_the_shipped_model_has_as_many(tiny):
    s = tiny.spec
    assert tiny.n_params == n_params(s.d_model, s.n_layers, s.n_vocab, s.n_ctx, s.d_ff).total


@pytest.mark.parametrize("case", CASES)
def test_a_loaded_model_has_as_many_as_its_sizes_say(case):
    model = gptscope.load(GOLDEN / case)
    s = model.spec
    expected = n_params(s.d_model, s.n_layers, s.n_vocab, s.n_ctx, s.d_ff).total
    expected += 0 if model.tied else s.n_vocab * s.d_model
    if model.blocks[0].attention.q.bias is None:
        expected -= s.n_layers * (4 * s.d_model + s.d_ff + s.d_model + 2 * s.d_model) + s.d_model
    assert model.n_params == expected
