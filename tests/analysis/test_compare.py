import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gptscope.analysis.compare import KEEP, divergences, moved, shares, watched
from gptscope.engine.edits import Edits
from gptscope.engine.trace import trace
from tests.helpers.micro import micro_model, models_and_ids

IDS = (3, 1, 4, 1, 5)


def passes(model, ids, *edits):
    changes = Edits(model, edits)
    keep = watched(changes)
    return trace(model, ids, keep), trace(model, ids, keep, changes)


def compared(model, ids, *edits):
    return moved(*passes(model, ids, *edits))


def doubled(x):
    return x * 2


@given(models_and_ids(), st.sampled_from(["weights", "scaled_masked", "mlp_out", "output", "q"]))
def test_an_edit_that_changes_no_bit_moves_nothing(drawn, key):
    made = compared(*drawn, (key, lambda x: x))
    assert (made.first, made.where.any(), made.predictions.any()) == (None, False, False)
    for numbers in (made.distance, made.relative, made.kl):
        assert_array_equal(numbers, 0)


@given(models_and_ids(min_size=2), st.data())
def test_nothing_moves_before_the_layer_and_the_position_of_an_edit(drawn, data):
    model, ids = drawn
    layer = data.draw(st.integers(0, model.spec.n_layers - 1))
    at = data.draw(st.integers(1, len(ids) - 1))
    made = compared(model, ids, (f"layers.{layer}.output[{at}]", lambda x: x + 1))
    row = made.rows.index(f"layers.{layer}.output")
    assert_array_equal(made.distance[:row], 0)
    assert_array_equal(made.distance[:, :at], 0)
    assert_array_equal(made.kl[:at], 0)
    assert (made.first, made.where.tolist()) == (made.rows[row], [i == at for i in range(len(ids))])
    assert_allclose(made.distance[row, at], model.spec.d_model**0.5, rtol=1e-4)


@given(models_and_ids())
def test_divergences_are_never_below_zero(drawn):
    before, after = passes(*drawn, ("layers.0.output", doubled))
    n = range(len(drawn[1]))
    assert (divergences(before, after, n) >= 0).all()
    assert (divergences(after, before, n) >= 0).all()


@pytest.mark.parametrize("bias", [True, False])
def test_numbers_are_those_of_the_two_passes(bias):
    model = micro_model(bias=bias, dtype="float64")
    edit = ("layers.0.mlp_out[2:]", doubled)
    made = compared(model, IDS, edit)
    before, after = trace(model, IDS), trace(model, IDS, edits=[edit])
    for i, name in enumerate(made.rows):
        x, y = before[name], after[name]
        far = np.linalg.norm(y - x, axis=1)
        assert_allclose(made.distance[i], far, atol=1e-12, strict=True)
        assert_allclose(made.relative[i], far / np.linalg.norm(x, axis=1), atol=1e-12, strict=True)
    p, q = (np.exp(t.logits) / np.exp(t.logits).sum(1, keepdims=True) for t in (before, after))
    assert_allclose(made.kl, (p * np.log2(p / q)).sum(axis=1), atol=1e-12, strict=True)
    assert made.predictions.tolist() == [False, False, True, True, True]


def test_rows_stand_in_the_order_of_the_pass(micro):
    made = compared(micro, IDS, "layers.0.mlp_out=0")
    steps = ("attn_out", "resid_after_attn", "mlp_out", "output")
    inside = [f"layers.{layer}.{step}" for layer in (0, 1) for step in steps]
    assert made.rows == ("embeddings", *inside)
    assert made.states.tolist() == [True, *[False, True] * 4]


def test_the_first_value_is_the_one_that_was_changed(micro):
    assert compared(micro, IDS, "layers.1.heads.1.q[1]=9").first == "layers.1.heads.1.q"
    assert compared(micro, IDS, "mlp_act=1", "layers.0.ln1.mean=3").first == "layers.0.ln1.mean"
    assert compared(micro, IDS, "logits[2]=1").first == "logits"
    same_then_not = ("layers.0.output=*1", "layers.1.attn_out=0")
    assert compared(micro, IDS, *same_then_not).first == "layers.1.attn_out"


def test_what_is_no_number_has_moved(micro):
    made = compared(micro, IDS, ("layers.1.output[1]", float("nan")))
    assert made.first == "layers.1.output"
    assert_array_equal(made.distance[-1], [0, np.inf, 0, 0, 0])
    assert_array_equal(made.relative[-1], [0, np.inf, 0, 0, 0])
    assert made.predictions.tolist() == [False, True, False, False, False]
    assert_array_equal(made.kl, [0, np.nan, 0, 0, 0])


def test_what_is_no_number_in_either_pass_is_unknown(micro):
    wrong = ("layers.1.output[1]", float("nan"))
    edits = Edits(micro, [wrong, ("layers.1.output[1:3]", doubled)])
    keep = watched(edits)
    before = trace(micro, IDS, keep, [wrong])
    made = moved(before, trace(micro, IDS, keep, edits))
    assert made.first == made.rows[-1] == "layers.1.output"
    assert made.unknown.tolist() == [False, True, False, False, False]
    for found in (made.where, made.predictions, made.changed[-1]):
        assert found.tolist() == [False, False, True, False, False]
    for numbers in (made.distance[-1], made.relative[-1], made.kl):
        assert_array_equal(np.isnan(numbers), made.unknown)
    assert not made.changed[:-1].any()


@pytest.mark.parametrize("at_once", [1, 40, 1 << 21])
def test_slices_of_positions_change_nothing(micro, monkeypatch, at_once):
    monkeypatch.setattr("gptscope.analysis.compare.AT_ONCE", at_once)
    made = compared(micro, IDS, ("layers.1.output[1:3]", doubled))
    assert made.where.tolist() == made.predictions.tolist() == [False, True, True, False, False]
    assert not made.unknown.any()


def test_a_token_that_may_not_come_any_more_is_infinitely_far(micro):
    edit = "logits[-1,3]=-inf"
    before, after = passes(micro, IDS, edit)
    assert divergences(before, after, [4]) == np.inf
    p = np.exp(before["logits"][-1].astype(float))
    assert_allclose(divergences(after, before, [4]), -np.log2(1 - p[3] / p.sum()), rtol=1e-6)


def test_shares():
    found = shares(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 2.0, 2.0, 0.0]))
    assert_array_equal(found, [0, 0, 0.5, np.inf])


def test_both_passes_keep_what_is_changed(micro):
    edits = Edits(micro, ["layers.1.heads.0.weights[2]=0", "layers.0.mlp_act=0", "logits=0"])
    more = {"layers.1.heads.*.weights", "layers.0.mlp_act", "logits"}
    assert set(watched(edits)) == {*KEEP, *more}
