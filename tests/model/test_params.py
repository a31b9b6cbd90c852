import pytest

import gptscope
from gptscope.errors import UsageError
from gptscope.model.params import Sizes, count, count_tensors, n_params, rule_of_thumb, sizes_of
from gptscope.model.shipped import shipped_folders
from tests.helpers.folders import CASES, GOLDEN
from tests.helpers.micro import micro_model
from tests.helpers.variants import post_norm


def test_parts_by_hand():
    counted = n_params(8, 2, 12, 0)
    assert counted == counted.total == 1_856
    assert f"{n_params(12288, 96, 50257, 2048):,}" == "174,604,259,328"
    assert vars(counted) == {
        "embeddings": 96,
        "attention": 576,
        "network": 1_104,
        "normalisations": 80,
        "unembedding": 0,
    }
    assert (counted.total, counted.non_embedding) == (1_856, 1_760)


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


def test_an_output_of_its_own_is_counted_beside_the_tokens():
    untied = n_params(8, 2, 12, 5, tied=False)
    assert untied.unembedding == 12 * 8
    assert untied.total == n_params(8, 2, 12, 5).total + 12 * 8
    assert untied.non_embedding == n_params(8, 2, 12, 5).non_embedding


def test_without_a_last_norm_a_gain_and_a_shift_are_missing():
    usual = count(Sizes(8, 2, 12, 0))
    assert usual.normalisations - count(Sizes(8, 2, 12, 0, final_norm=False)).normalisations == 16


@pytest.mark.parametrize("sizes", [Sizes(8, 2), Sizes(8, 2, ff=32), Sizes(8, 2, V=0, ctx=0)])
def test_the_rule_of_thumb(sizes):
    assert rule_of_thumb(sizes) == 12 * 2 * 8**2


@pytest.mark.parametrize("ff", [1, 31, 100])
def test_the_rule_counts_the_matrices_of_the_blocks(ff):
    biases, norms = 2 * (4 * 8 + ff + 8), (4 * 2 + 2) * 8
    counted = count(Sizes(8, 2, ff=ff))
    assert rule_of_thumb(Sizes(8, 2, ff=ff)) == counted.non_embedding - biases - norms


# Models


@pytest.mark.parametrize("name", shipped_folders())
def test_the_formula_agrees_with_every_shipped_gpt2(name):
    model = gptscope.load(name)
    assert count_tensors(model).total == model.n_params
    if model.spec.family == "llama":  # neither biases nor as many keys; analysis/info_formulas
        assert model.n_params == 1_250_432
    else:
        assert count_tensors(model) == count(sizes_of(model))


@pytest.mark.parametrize("model", [micro_model(), post_norm(micro_model())], ids=["pre", "post"])
def test_the_formula_agrees_with_both_wirings(model):
    assert count_tensors(model) == count(sizes_of(model))
    assert sizes_of(model).final_norm == (model.spec.wiring == "pre_norm")


def test_a_model_without_biases_has_fewer_than_the_formula_says():
    model = micro_model(bias=False)
    counted, formula, s = count_tensors(model), count(sizes_of(model)), model.spec
    assert counted.embeddings == formula.embeddings
    assert formula.attention - counted.attention == s.n_layers * 4 * s.d_model
    assert formula.network - counted.network == s.n_layers * (s.d_ff + s.d_model)
    assert counted.normalisations * 2 == formula.normalisations


@pytest.mark.parametrize("case", CASES)
def test_every_array_is_counted_once(case):
    model = gptscope.load(GOLDEN / case)
    assert count_tensors(model).total == model.n_params
    assert count_tensors(model).unembedding == (
        0 if model.tied else model.spec.n_vocab * model.spec.d_model
    )


@pytest.mark.parametrize("case", CASES)
def test_a_loaded_model_has_as_many_as_its_sizes_say(case):
    model = gptscope.load(GOLDEN / case)
    d, L, ff = model.spec.d_model, model.spec.n_layers, model.spec.d_ff
    expected = count(sizes_of(model)).total
    if model.blocks[0].attention.q.bias is None:
        expected -= L * (4 * d + ff + d)
    if model.blocks[0].ln1.shift is None:
        expected -= (2 * L + sizes_of(model).final_norm) * d
    assert model.n_params == expected
