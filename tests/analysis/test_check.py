import math
from dataclasses import replace

import numpy as np
import pytest

from gptscope.analysis.check import changes
from gptscope.analysis.check.against import OF_THE_SCALE, allowed, errors
from gptscope.analysis.check.conventions import conventions
from gptscope.analysis.check.examine import drawn_ids
from gptscope.analysis.check.fit import Fit, losses, others, text_result
from gptscope.analysis.check.passes import pass_results
from gptscope.analysis.check.precision import measured, wide
from gptscope.analysis.check.result import Result, impossible
from gptscope.analysis.check.weights import copies, narrower, rounded
from gptscope.engine.forward import forward
from gptscope.engine.sampling import probabilities
from gptscope.engine.trace import trace
from gptscope.model.weights import Norm
from tests.helpers import close
from tests.helpers.micro import micro_model, sizes
from tests.helpers.variants import rotary

IDS = (1, 2, 3, 4, 5, 6)


def logits(model):
    return forward(model, np.array(IDS))


def test_verdicts():
    assert Result("x", "").verdict == "ok"
    assert Result("x", "", findings=("wrong",)).verdict == "found"
    assert impossible("x", "why").verdict == "not possible"


def test_every_pass_of_a_sound_model_is_sound():
    for model in (micro_model(), rotary(micro_model(sizes(d_head=4)))):
        assert {result.verdict for result in pass_results(model, IDS)} == {"ok"}


def test_a_loss_is_the_mean_of_minus_ln_p():
    model = micro_model()
    made = logits(model)
    expected = [-math.log(probabilities(made[i])[IDS[i + 1]]) for i in range(len(IDS) - 1)]
    np.testing.assert_allclose(losses(model, IDS), expected, rtol=1e-5, strict=True)
    assert text_result(model, IDS).limit == math.log(model.spec.n_vocab)


# Conventions: each is another model, of which the weights stay as they are


def test_every_convention_changes_something_and_nothing_for_good():
    model = rotary(micro_model(sizes(d_head=4)))
    before = logits(model)
    found = dict(conventions(model))
    assert len(found) > 20
    for words, other in found.items():
        assert logits(other).shape == before.shape, words
    np.testing.assert_array_equal(logits(model), before, strict=True)


@pytest.mark.parametrize("change", [changes.pairs, changes.fused])
def test_an_order_and_back_is_where_it_began(change):
    model = rotary(micro_model(sizes(d_head=4)))
    there = change(model, back=False)
    assert np.abs(logits(there) - logits(model)).max() > 1e-3
    np.testing.assert_array_equal(logits(change(there, back=True)), logits(model), strict=True)


@pytest.mark.parametrize(
    "change",
    [
        changes.queries_and_keys,
        lambda m: changes.transposed(m, "out"),
        lambda m: changes.transposed(m, "q", "k", "v"),
        lambda m: changes.in_order(m, [1, 0]),
    ],
)
def test_a_change_made_twice_is_none(change):
    model = micro_model()
    assert np.abs(logits(change(model)) - logits(model)).max() > 1e-3
    np.testing.assert_array_equal(logits(change(change(model))), logits(model), strict=True)


def test_gains_may_be_moved_and_moved_back():
    model = micro_model()
    np.testing.assert_allclose(
        logits(changes.gains(changes.gains(model, 1), -1)), logits(model), atol=1e-4, strict=True
    )


def test_what_does_not_apply_is_not_tried():
    words = " ".join(words for words, _ in conventions(micro_model()))
    for lacking in ("rotary", "causal", "window", "caps"):
        assert lacking not in words


def test_the_right_convention_has_the_loss_of_the_sound_model():
    model = micro_model()
    broken = changes.transposed(model, "out")
    fits = {fit.words: fit for fit in others(broken, IDS)}
    right = fits["the output matrices of attention transposed"]
    assert right.loss == losses(model, IDS).mean()
    assert right.gain == pytest.approx(losses(broken, IDS).mean() - right.loss)
    assert list(fits.values()) == sorted(fits.values(), key=lambda fit: -fit.gain)


def test_clearly_better_is_more_than_chance():
    assert not Fit("x", 1, gain=0.09, error=0).clearly_better
    assert not Fit("x", 1, gain=0.5, error=0.2).clearly_better
    assert Fit("x", 1, gain=0.7, error=0.2).clearly_better


# Precision


def test_float64_is_the_same_model():
    model = micro_model()
    exact = micro_model(dtype="float64")
    assert wide(model).blocks[0].attention.q.weight.dtype == np.float64
    assert logits(wide(model)).dtype == np.float64
    np.testing.assert_allclose(logits(wide(model)), logits(exact), atol=1e-4)


def test_rounding_is_measured_for_every_value():
    noise = measured(micro_model(), IDS)
    keys = {one.name.replace("*", "0") for one in noise}
    assert keys == {name for name in trace(micro_model(), IDS).names() if ".heads.1" not in name}
    assert all(one.error <= one.limit for one in noise)
    assert max(one.error for one in noise) < 1e-5


def test_a_fault_in_the_last_norm_is_beyond_rounding():
    model = micro_model()
    shift = model.ln_final.shift.astype(np.float16).astype(np.float32)
    other = trace(replace(model, ln_final=Norm(model.ln_final.gain, shift)), IDS)
    limit = next(one.limit for one in measured(model, IDS) if one.name == "ln_final.out")
    off = np.abs(other["ln_final.out"] - trace(model, IDS)["ln_final.out"]).max()
    assert off / np.abs(other["ln_final.out"]).max() > limit


# Weights and saved traces


def test_constants_are_no_copies():
    x = np.random.default_rng(0).normal(size=40).astype("float32")
    ones = np.ones(40, "float32")
    same = {"h.0.w": x, "h.1.w": x, "h.0.b": ones, "h.1.b": ones}
    assert list(copies(same)) == ["h.1.w of block 1 hold the same numbers as in block 0"]
    assert list(copies({"h.0.w": x, "h.0.v": x})) == []


def test_digits_of_narrower_formats():
    x = np.random.default_rng(0).normal(size=99).astype("float32")
    assert narrower(x) is None
    assert narrower(x.astype("float16").astype("float32")) == "float16"
    assert narrower((x.view("uint32") & 0xFFFF0000).view("float32")) == "bfloat16"
    few = {"h.0.w": x, "h.1.w": np.ones(99, "float32"), "h.2.w": x.astype("float16").astype("f4")}
    assert list(rounded(few)) == [
        "h.2.w has only the digits of float16, and other blocks have more"
    ]
    assert list(rounded({name: few[name] for name in ("h.1.w", "h.2.w")})) == []


def test_the_limits_are_those_of_the_tests():
    x = np.array([3.0, -np.inf, -70.0])
    for name in ("logits", "layers.0.heads.0.weights"):
        for dtype in ("float32", "float64"):
            assert allowed(name, x, dtype) == close.tolerance(name, x, dtype)
    assert {k: v for k, v in OF_THE_SCALE.items() if k in close.OF_THE_SCALE} == close.OF_THE_SCALE
    np.testing.assert_array_equal(errors(x, x), close.errors(x, x), strict=True)


def test_drawn_ids_are_always_the_same():
    spec = micro_model().spec
    assert drawn_ids(spec) == drawn_ids(spec)
    assert len(drawn_ids(spec)) == spec.n_ctx
