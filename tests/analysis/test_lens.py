from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import gptscope
from gptscope.analysis import lens as module
from gptscope.analysis.lens import came_next, lens, on_top_from, states
from gptscope.engine.forward import unembed
from gptscope.engine.trace import trace
from gptscope.errors import UsageError
from tests.golden.transformers.cases import CASES
from tests.helpers.families import family_folder
from tests.helpers.folders import GOLDEN, ids_of, tensors_of
from tests.helpers.micro import micro_model, models_and_ids
from tests.helpers.variants import WIRED, changed, drawn, post_norm

IDS = [1, 2, 3, 1]
KEPT = ("embeddings", "output", "logits")
LOOSE = {"float32": 2e-4, "float64": 1e-10}  # a bit that rounding of the stream may cost


def softmax(x):
    e = np.exp(np.float64(x) - np.max(x, axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def bits(p, q):
    return (p * np.log2(p / q)).sum(axis=-1)


def assert_lens_is_that_of(made, logits, end):
    """Every field, from the logits [R, T, V] of each row and those of the end [T, V]."""
    p, q = softmax(end), softmax(logits)
    assert_array_equal(made.top_ids[..., 0], logits.argmax(axis=-1), strict=True)
    assert_allclose(made.top_probabilities[..., 0], q.max(axis=-1), rtol=1e-4, strict=True)
    assert_allclose(made.entropy, -(q * np.log2(q)).sum(axis=-1), rtol=1e-4, atol=1e-6)
    assert_allclose(made.kl, bits(p, q), rtol=1e-3, atol=1e-6, strict=True)
    answers = np.broadcast_to(np.array(made.answers)[None, :, None], (*made.rank.shape, 1))
    own = np.take_along_axis(logits, answers, axis=-1)
    assert_array_equal(made.rank, (logits > own).sum(axis=-1) + 1)
    assert_allclose(made.logit, own[..., 0], rtol=1e-4, atol=1e-4)
    chance = np.take_along_axis(q, answers, axis=-1)[..., 0]
    assert_allclose(made.probability, chance, rtol=1e-3, strict=True)


# Against a lens written down again


@pytest.mark.parametrize("case", ["gpt2", "gpt2-variant"])
def test_a_lens_of_gpt2_in_plain_numpy(case):
    model, ids = gptscope.load(GOLDEN / case), ids_of(case)
    made = trace(model, ids)
    stored = {k.removeprefix("transformer."): np.float64(v) for k, v in tensors_of(case).items()}
    table = stored.get("lm_head.weight", stored["wte.weight"])
    stream = [made["embeddings"]]
    for layer in made.layers:
        stream += [layer.resid_after_attn, layer.output]
    x = np.float64(np.stack(stream))
    x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + model.spec.norm_eps)
    logits = (x * stored["ln_f.weight"] + stored["ln_f.bias"]) @ table.T
    found = lens(model, made, came_next(made))
    assert found.rows[:3] == ("embeddings", "layers.0.resid_after_attn", "layers.0.output")
    assert found.answers == (*ids[1:], int(made.logits[-1].argmax()))
    assert_lens_is_that_of(found, logits, logits[-1])


# Laws


@given(models_and_ids())
def test_the_last_row_is_the_pass_to_the_last_bit(model_and_ids):
    model, ids = model_and_ids
    made = trace(model, ids, KEPT)
    found = lens(model, made, 0)
    assert_array_equal(found.logit[-1], made.logits[:, 0], strict=True)
    assert_array_equal(found.kl[-1], np.zeros(len(ids)), strict=True)
    expected = [gptscope.probabilities(row) for row in made.logits]
    assert_allclose(found.top_probabilities[-1, :, 0], np.max(expected, axis=1), rtol=1e-12)
    assert_array_equal(found.top_ids[-1, :, 0], made.logits.argmax(axis=1), strict=True)


@given(models_and_ids(), st.data())
def test_each_row_is_that_state_alone_read_by_the_end(model_and_ids, data):
    model, ids = model_and_ids
    made = trace(model, ids)
    answer = data.draw(st.integers(0, model.spec.n_vocab - 1))
    found, to = lens(model, made, answer), LOOSE[str(model.dtype)]
    assert found.rows == states(made)
    for i, name in enumerate(found.rows):
        logits = unembed(model, made[name])
        q = softmax(logits)
        assert_allclose(found.logit[i], logits[:, answer], rtol=to, atol=to)
        assert_allclose(found.probability[i], q[:, answer], rtol=10 * to)
        chosen = np.take_along_axis(q, found.top_ids[i], axis=1)
        assert_allclose(chosen[:, 0], q.max(axis=1), rtol=10 * to)
        assert_allclose(found.kl[i], bits(softmax(made.logits), q), atol=10 * to, rtol=10 * to)


@given(models_and_ids())
def test_divergence_and_entropy_are_within_their_bounds(model_and_ids):
    model, ids = model_and_ids
    found = lens(model, trace(model, ids))
    assert (found.kl >= 0).all()
    assert (found.entropy >= 0).all()
    assert (found.entropy <= np.log2(model.spec.n_vocab) + 1e-12).all()
    assert ((found.rank >= 1) & (found.rank <= model.spec.n_vocab)).all()
    assert (found.rank[-1] == 1).all()  # without an answer, the end's own is rated


@given(models_and_ids(min_size=2), st.data())
def test_later_tokens_change_no_earlier_column(model_and_ids, data):
    model, ids = model_and_ids
    seen, to = data.draw(st.integers(1, len(ids) - 1)), 10 * LOOSE[str(model.dtype)]
    whole, start = (lens(model, trace(model, i), 0) for i in (ids, ids[:seen]))
    for field in ("entropy", "kl", "probability", "logit"):
        expected, actual = getattr(whole, field)[:, :seen], getattr(start, field)
        assert_allclose(actual, expected, rtol=to, atol=to, strict=True)


@given(models_and_ids(), st.data())
def test_some_positions_are_those_of_all(model_and_ids, data):
    model, ids = model_and_ids
    made = trace(model, ids)
    chosen = data.draw(st.lists(st.integers(0, len(ids) - 1), min_size=1, max_size=4))
    some, every = lens(model, made, 0, chosen), lens(model, made, 0)
    to = LOOSE[str(model.dtype)]
    assert some.positions == tuple(chosen)
    assert_allclose(some.logit, every.logit[:, chosen], rtol=to, atol=to, strict=True)
    assert_allclose(some.entropy, every.entropy[:, chosen], rtol=to, atol=to, strict=True)


# Every wiring and every family


@pytest.mark.parametrize("wiring", WIRED)
def test_the_states_of_every_wiring(wiring):
    made = trace(WIRED[wiring](micro_model()), IDS)
    between = [] if made.spec.wiring == "parallel" else ["resid_after_attn"]
    names = [f"layers.{i}.{key}" for i in range(2) for key in (*between, "output")]
    assert states(made) == ("embeddings", *names)


@pytest.mark.parametrize("case", [case.name for case in CASES])
def test_every_family_has_a_lens(case):
    model = gptscope.load(family_folder(case))
    made = trace(model, [1, 2, 3], KEPT)
    found = lens(model, made, came_next(made))
    assert found.rows == ("embeddings", *(f"layers.{i}.output" for i in range(len(model.blocks))))
    logits = np.stack([unembed(model, made[name]) for name in found.rows])
    assert_lens_is_that_of(found, logits, made.logits)


def test_statistics_of_the_last_norm_are_taken_anew():
    model = micro_model()
    grown = replace(model, token_table=np.asarray(model.token_table) * 100)
    end = replace(grown, output_table=model.output_table)
    made = trace(end, IDS)
    first = lens(end, made, 0).logit[0]
    x = np.float64(made["embeddings"])
    alone = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    ln = model.ln_final
    expected = (alone * ln.gain + ln.shift) @ np.float64(model.output_table)[0]
    assert_allclose(first, expected, rtol=1e-3, atol=1e-4)


def test_caps_scale_bias_and_no_last_norm_are_as_the_model_has_them():
    model = changed(post_norm(micro_model(dtype="float64")), logit_scale=0.5, logit_cap=3.0)
    model = replace(model, output_bias=drawn(model, model.spec.n_vocab))
    made = trace(model, IDS)
    raw = made["embeddings"] @ np.asarray(model.output_table).T * 0.5 + model.output_bias
    assert_allclose(lens(model, made, 3).logit[0], 3 * np.tanh(raw / 3)[:, 3], rtol=1e-9)


# Answers, ranks, slices


def test_among_equals_the_lower_id_comes_first():
    model = micro_model()
    table = np.array(model.output_table)
    table[:] = table[5]
    model = replace(model, output_table=table)
    found = lens(model, trace(model, IDS), [0, 3, 7, 12], top=3)
    assert found.rank.tolist() == [[1, 4, 8, 13]] * 5
    assert (found.top_ids == [0, 1, 2]).all()
    assert_allclose(found.entropy, np.full((5, 4), np.log2(13)), rtol=1e-12)


def test_more_top_tokens_than_there_are():
    model = micro_model()
    found = lens(model, trace(model, IDS), top=99)
    assert found.top_ids.shape == (5, 4, 13)
    assert_allclose(found.top_probabilities.sum(axis=-1), np.ones((5, 4)), rtol=1e-12)
    assert (np.diff(found.top_probabilities, axis=-1) <= 0).all()


@pytest.mark.parametrize("at_once", [1, 150])
def test_slices_of_positions_change_nothing(monkeypatch, at_once):
    model = micro_model()
    made = trace(model, IDS)
    whole, ticks, sizes = lens(model, made, 4), [], []
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    monkeypatch.setattr(module, "unembed", lambda m, x: sizes.append(len(x)) or unembed(m, x))
    sliced = lens(model, made, 4, tick=ticks.append)
    assert ticks == [1] * 4
    assert sizes == {1: [4] * 4, 150: [8, 8]}[at_once]
    assert_allclose(sliced.logit, whole.logit, rtol=1e-5, atol=1e-6, strict=True)
    assert_allclose(sliced.kl, whole.kl, rtol=1e-4, atol=1e-6, strict=True)


def test_a_trace_of_one_state_alone():
    model = micro_model()
    made = trace(model, IDS, ("layers.1.output", "logits"))
    found = lens(model, made)
    assert (found.rows, found.kl.tolist()) == (("layers.1.output",), [[0] * 4])


@pytest.mark.parametrize(
    ("keep", "settings", "why"),
    [
        (("embeddings", "logits"), {}, r"layers\.1\.output is not in this trace"),
        (("embeddings", "output"), {}, "logits is not in this trace"),
        (KEPT, {"positions": [4]}, "token 4 is out of range"),
        (KEPT, {"positions": []}, "there is no position to look at"),
        (KEPT, {"answers": 13}, "token id 13 is outside the vocabulary"),
        (KEPT, {"answers": -1}, "token id -1 is outside the vocabulary"),
    ],
)
def test_what_cannot_be_asked(keep, settings, why):
    model = micro_model()
    with pytest.raises(UsageError, match=why):
        lens(model, trace(model, IDS, keep), **settings)


def test_as_many_answers_as_positions():
    model = micro_model()
    with pytest.raises(ValueError, match="zip"):
        lens(model, trace(model, IDS), [1, 2])


# Numbers that are none


def test_rows_that_are_not_numbers_are_said_to_be_so():
    model = micro_model()
    made = trace(model, IDS)
    broken = np.array(made.values["output", 0])
    broken[2, 1] = np.nan
    made.values["output", 0] = broken
    found = lens(model, made, 3, top=2)
    wrong = np.zeros((5, 4), bool)
    wrong[2, 2] = True
    for field in (found.entropy, found.kl, found.probability, found.logit):
        assert_array_equal(np.isnan(field), wrong)
    assert_array_equal(np.isnan(found.top_probabilities).all(axis=-1), wrong)
    assert_array_equal(found.rank == 0, wrong)


def test_a_token_that_may_not_come_adds_nothing():
    model = micro_model()
    bias = np.zeros(13, "float32")
    bias[4] = -np.inf
    model = replace(model, output_bias=bias)
    found = lens(model, trace(model, IDS), 4)
    assert np.isfinite(found.kl).all()
    assert np.isfinite(found.entropy).all()
    assert (found.rank == 13).all()
    assert (found.probability == 0).all()


@pytest.mark.parametrize(
    ("ranks", "first"),
    [([1, 1], 0), ([4, 1, 1], 1), ([1, 2, 1], 2), ([1, 2], None), ([0, 1], 1), ([3], None)],
)
def test_from_where_on_a_token_is_on_top(ranks, first):
    assert on_top_from(np.array(ranks)) == first
