import math
from dataclasses import replace

import numpy as np
import pytest

from gptscope.analysis.check import attention, changes
from gptscope.analysis.check.checks import CHECKS, STAGES, from_stage
from gptscope.analysis.check.conventions import conventions
from gptscope.analysis.check.examine import drawn_ids
from gptscope.analysis.check.fit import Fit, losses, others, others_result, text_result
from gptscope.analysis.check.passes import finite_result, pass_results
from gptscope.analysis.check.precision import measured, wide
from gptscope.analysis.check.result import Result, impossible
from gptscope.analysis.check.weights import copies, narrower, rounded
from gptscope.commands.check_text import chosen
from gptscope.engine.forward import forward
from gptscope.engine.sampling import probabilities
from gptscope.engine.trace import trace
from gptscope.model.load import load
from gptscope.model.positions import turning_speeds
from gptscope.model.weights import Norm, Turning
from tests.helpers.micro import micro_model, sizes
from tests.helpers.variants import alibi, gated, head_norms, rotary, shared_keys

IDS = (1, 2, 3, 4, 5, 6)


def logits(model):
    return forward(model, np.array(IDS))


def test_verdicts():
    assert Result("text", "").verdict == "ok"
    assert Result("text", "", findings=("wrong",), doubts=("?",)).verdict == "found"
    assert Result("text", "", doubts=("?",)).verdict == "doubtful"
    assert impossible("text", "why").verdict == "not possible"


def test_every_check_needs_what_comes_before_it():
    stages = [check.needs for check in CHECKS.values()]
    order = [*STAGES, "saved trace"]
    assert stages == sorted(stages, key=order.index)
    assert list(from_stage("files")) == list(CHECKS)[:-1]
    assert next(iter(from_stage("pass"))) == "attention rows"


def test_every_pass_of_a_sound_model_is_sound():
    for model in (micro_model(), rotary(micro_model(sizes(d_head=4)))):
        made = trace(model, IDS)
        assert finite_result(made).verdict == "ok"
        assert {result.verdict for result in pass_results(model, made)} == {"ok"}


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


def dealt_queries(model):
    """The file of a program that deals heads to groups in turn."""
    s = model.spec
    order = np.arange(s.n_heads).reshape(-1, s.n_kv_heads).T.ravel()  # 0 2 1 3: in turn -> in rows
    back = np.argsort(order)

    def change(a):
        rows = np.arange(a.out.weight.shape[0]).reshape(-1, s.d_head)[back].ravel()
        out = replace(a.out, stored=a.out.weight[rows])
        return replace(a, q=attention.in_groups(a.q, back, s.d_head), out=out)

    return changes.in_attention(model, change)


LLAMA_FAULTS = {
    "the gate and the units that it multiplies swapped": changes.gates,
    "the two norms of a block swapped": changes.norms,
    "keys and values of the groups in the reverse order": lambda m: attention.reversed_groups(
        m, "k", "v"
    ),
    "values of the groups in the reverse order": lambda m: attention.reversed_groups(m, "v"),
    "the matrices of queries transposed": lambda m: attention.transposed(m, "q"),
    "all square matrices of attention transposed": lambda m: attention.transposed(m, "q", "out"),
    "4 heads": lambda m: attention.with_heads(m, 2),
    "head h reading keys and values h mod G, not h // (H/G)": dealt_queries,
}


def made(model):
    """The same with blocks that are there, and shapes of their own."""
    return replace(model, blocks=tuple(model.blocks))


@pytest.fixture(scope="module")
def llama_tiny():
    model = load("llama-tiny")
    return model, chosen(model, "llama-tiny", None, None).ids


@pytest.mark.parametrize("fault", LLAMA_FAULTS)
def test_a_fault_of_a_llama_is_named(fault, llama_tiny):
    model, ids = llama_tiny
    broken = made(LLAMA_FAULTS[fault](model))
    found = others_result(others(broken, ids), losses(broken, ids).mean(), model.spec.n_vocab)
    assert f"would fit better with {fault}: " in found.findings[0]


@pytest.mark.parametrize("fault", LLAMA_FAULTS)
def test_the_right_convention_of_a_gated_grouped_model_is_among_those_tried(fault):
    model = gated(rotary(shared_keys(micro_model(sizes(n_heads=4, d_head=8)))))
    broken = made(LLAMA_FAULTS[fault](model))
    assert np.abs(logits(broken) - logits(model)).max() > 1e-3
    right = {fit.words: fit for fit in others(broken, IDS)}[fault]
    assert right.loss == pytest.approx(losses(model, IDS).mean(), abs=1e-6)


def test_rolled_rows_have_no_cause_among_conventions(llama_tiny):
    model, ids = llama_tiny
    table = np.roll(np.asarray(model.token_table), 1, axis=0)
    broken = replace(model, token_table=table, output_table=table)
    assert text_result(broken, ids).verdict == "found"
    found = others_result(others(broken, ids), losses(broken, ids).mean(), model.spec.n_vocab)
    assert all("the cause is another" in one for one in found.findings)


def test_heads_that_are_not_alike_are_not_counted_otherwise():
    model = micro_model(sizes(d_head=4))
    assert attention.with_heads(model, 2) is not None
    assert attention.with_heads(model, 0.25) is None
    assert attention.with_heads(alibi(model), 2) is None
    assert attention.with_heads(head_norms(model), 2) is None
    assert attention.with_heads(shared_keys(micro_model(sizes(n_heads=3, d_head=4))), 0.5) is None


def test_the_base_of_speeds():
    assert attention.base_of(Turning(turning_speeds(8, 5e5))) == pytest.approx(5e5)
    assert attention.base_of(Turning((1.0, 0.3, 0.2))) is None


@pytest.mark.parametrize("change", [attention.pairs, attention.fused])
def test_an_order_and_back_is_where_it_began(change):
    model = rotary(micro_model(sizes(d_head=4)))
    there = change(model, back=False)
    assert np.abs(logits(there) - logits(model)).max() > 1e-3
    np.testing.assert_array_equal(logits(change(there, back=True)), logits(model), strict=True)


@pytest.mark.parametrize(
    "change",
    [
        attention.queries_and_keys,
        lambda m: attention.transposed(m, "out"),
        lambda m: attention.transposed(m, "q", "k", "v"),
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
    broken = attention.transposed(model, "out")
    fits = {fit.words: fit for fit in others(broken, IDS)}
    right = fits["the output matrices of attention transposed"]
    assert right.loss == losses(model, IDS).mean()
    assert right.gain == pytest.approx(losses(broken, IDS).mean() - right.loss)
    assert list(fits.values()) == sorted(fits.values(), key=lambda fit: -fit.gain)


def test_clearly_better_is_more_than_chance():
    assert not Fit("x", 1, gain=0.09, error=0).clearly_better
    assert not Fit("x", 1, gain=0.5, error=0.2).clearly_better
    assert Fit("x", 1, gain=0.7, error=0.2).clearly_better


def test_a_cause_takes_away_half_of_what_is_above_a_trained_models_loss():
    n_vocab = 4096  # ln V / 4 = 2.08
    assert not Fit("rolled rows", 8.33, gain=1.79, error=0.1).mends(n_vocab)
    assert not Fit("8 heads of 16", 3.01, gain=0.33, error=0.01).mends(n_vocab)
    assert Fit("gates", 1.36, gain=1.44, error=0.1).mends(n_vocab)
    assert Fit("the activation", 1.2, gain=0.12, error=0.01).mends(n_vocab)
    assert not Fit("chance", 1.2, gain=0.09, error=0.01).mends(n_vocab)


def test_a_cause_is_not_named_where_nothing_mends():
    (said,) = others_result(
        [Fit("this", 7.0, 1.0, 0.1), Fit("that", 7.9, 0.1, 0.1)], 8.0, 4096
    ).findings
    assert said == (
        "1 other convention fits better than 8.00 nats per token, the best (this) at 7.00: none "
        "mends it, so the cause is another"
    )
    (said,) = others_result(
        [Fit("this", 1.0, 2.0, 0.1), Fit("that", 2.5, 0.5, 0.1)], 3.0, 4096
    ).findings
    assert said == (
        "the text would fit better with this: 1.00 nats per token, and not 3.00; 1 other is "
        "better too"
    )


def test_a_loss_near_ln_v_is_doubtful():
    model = micro_model()  # its weights are drawn
    near = replace(model, spec=replace(model.spec, logit_scale=0.01))
    result = text_result(near, IDS)
    assert result.verdict == "doubtful"
    assert "1.00 of ln V; ln V: what a model that knows nothing pays" in result.looked_at


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


def test_drawn_ids_are_always_the_same():
    spec = micro_model().spec
    assert drawn_ids(spec) == drawn_ids(spec)
    assert len(drawn_ids(spec)) == spec.n_ctx
