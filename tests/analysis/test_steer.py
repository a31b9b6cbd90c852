import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import gptscope
from gptscope.analysis.steer import (
    Fed,
    activations,
    cosines,
    direction,
    lensed,
    separation,
)
from gptscope.engine.edits import Edits
from gptscope.engine.trace import trace
from tests.helpers.families import family_folder, one_of_each
from tests.helpers.micro import micro_model, models_and_ids

IDS = (3, 1, 4, 1, 5)
WHOLE = slice(0, None)
STEP = 1e-4


def sets(*sizes, d=4, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(n, d)) for n in sizes]


# The direction


def test_the_difference_of_the_means():
    starts, ends = np.array([[1.0, 2], [3, 2]]), np.array([[0.0, 5]])
    assert_array_equal(direction(starts, ends), [-2, 3])


def test_the_other_way_round_is_the_opposite():
    starts, ends = sets(3, 5)
    assert_array_equal(direction(starts, ends), -direction(ends, starts))


def test_equal_sets_have_none():
    starts, _ = sets(3, 5)
    assert_array_equal(direction(starts, starts), 0)


@given(models_and_ids(), st.integers(0, 12))
def test_adding_it_moves_the_projection_by_its_squared_length(drawn, seed):
    model, ids = drawn
    other = np.random.default_rng(seed).integers(0, model.spec.n_vocab, len(ids)).tolist()
    rows = [activations(model, [Fed(tuple(one), WHOLE)], "layers.0.output") for one in (ids, other)]
    v = direction(*rows)
    edit = ("layers.0.output", lambda x: x + v.astype(x.dtype))
    x, y = (trace(model, ids, ["layers.0.output"], e)["layers.0.output"] for e in ([], [edit]))
    moved = y.astype(float) @ v - x.astype(float) @ v
    size = np.linalg.norm(v) * (np.linalg.norm(x, axis=1).max() + np.linalg.norm(v))
    allowed = 1e-12 if model.dtype == "float64" else 1e-5
    assert_allclose(moved, np.full(len(ids), v @ v), rtol=0, atol=allowed * max(1, size))


# Activations


def test_the_last_token_or_the_mean_of_all(micro):
    value = trace(micro, IDS)["layers.1.attn_out"].astype(float)
    for tokens, rows in (("last", value[-1:]), ("all", value.mean(axis=0, keepdims=True))):
        found = activations(micro, [Fed(IDS, WHOLE)], "layers.1.attn_out", tokens)
        assert_allclose(found, rows, rtol=1e-12, strict=True)


def test_what_was_put_around_a_text_does_not_count(micro):
    value = trace(micro, IDS)["layers.0.output"].astype(float)
    text = Fed(IDS, slice(1, 4))
    assert_array_equal(activations(micro, [text], "layers.0.output"), value[3:4])
    assert_allclose(activations(micro, [text], "layers.0.output", "all")[0], value[1:4].mean(0))


def test_every_text_counts_once(micro):
    texts = [Fed((3,), WHOLE), Fed(IDS, WHOLE)]
    found = activations(micro, texts, "embeddings", "all")
    each = [trace(micro, text.ids)["embeddings"].mean(axis=0) for text in texts]
    assert_allclose(found, each, rtol=1e-5)
    done = []
    activations(micro, texts, "embeddings", tick=done.append)
    assert done == [1, 1]


def test_edits_hold_while_texts_are_read(micro):
    edits = Edits(micro, ["layers.0.output=2.5"])
    assert_array_equal(activations(micro, [Fed(IDS, WHOLE)], "layers.0.output", edits=edits), 2.5)


# How well it tells the sets apart


def test_sets_far_apart_are_told_apart():
    starts, ends = sets(6, 5)
    found = separation(starts - 9, ends + 9)
    assert (found.right, found.right_left_out) == (11, 11)
    p, q = found.projections
    assert p.max() < q.min()
    v = direction(starts - 9, ends + 9)
    assert_allclose(p, (starts - 9) @ v / np.linalg.norm(v), strict=True)


def test_the_same_texts_flatter_a_direction():
    starts, ends = sets(8, 8, d=60)  # nothing but noise
    found = separation(starts, ends)
    assert found.right == 16
    assert found.right_left_out < 13


@pytest.mark.parametrize("seed", range(8))
def test_left_out_is_what_a_direction_without_the_text_says(seed):
    starts, ends = sets(4, 3, d=2, seed=seed)
    right = 0
    for side, rows in ((-1, starts), (1, ends)):
        for i, x in enumerate(rows):
            a, b = starts, ends
            if side < 0:
                a = np.delete(starts, i, axis=0)
            else:
                b = np.delete(ends, i, axis=0)
            nearer_to_ends = np.linalg.norm(x - b.mean(0)) < np.linalg.norm(x - a.mean(0))
            right += nearer_to_ends == (side > 0)
    found = separation(starts, ends)
    assert found.right_left_out == right


def test_a_side_of_one_text_leaves_none_out():
    starts, ends = sets(1, 4)
    for pair in ((starts, ends), (ends, starts), (starts, ends[:1])):
        found = separation(*pair)
        assert (found.right, found.right_left_out) == (None, None)


def test_no_direction_tells_nothing_apart():
    starts, _ = sets(3, 1)
    found = separation(starts, starts)
    assert found.right == 0
    assert np.isnan(found.projections).all()


def test_cosines():
    rows = np.array([[2.0, 0], [0, 3], [-1, 0], [0, 0]])
    assert_array_equal(cosines(rows, np.array([5.0, 0])), [1, 0, -1, np.nan])


# What it raises


@pytest.mark.parametrize("case", one_of_each())
def test_logits_of_a_direction_are_what_adding_it_gives_with_frozen_norms(case):
    # At the end of the stream, where one norm is left.
    model = gptscope.load(family_folder(case), "float64")
    made = trace(model, (1, 2, 3))
    end = f"layers.{model.spec.n_layers - 1}.output"
    v = np.random.default_rng(0).normal(size=model.spec.d_model)
    x = made[end][-1]
    if model.ln_final is not None:  # at a right angle to what the scale is taken of
        x = x - x.mean() if model.spec.norm == "layer_norm" else x
        v -= v.mean() if model.spec.norm == "layer_norm" else 0
        v -= v @ x / (x @ x) * x
    up, down = (
        trace(model, (1, 2, 3), ["logits"], [(end, lambda y, by=by: y + by * v)])["logits"][-1]
        for by in (STEP, -STEP)
    )
    moved = (up - down) / (2 * STEP)
    if model.ln_final is not None:
        square = "variance" if model.spec.norm == "layer_norm" else "mean_square"
        moved *= np.sqrt(made[f"ln_final.{square}"][-1] + model.spec.norm_eps)
    if model.spec.logit_cap is not None:
        moved /= 1 - (made["logits"][-1] / model.spec.logit_cap) ** 2
    given = lensed(model, made, ("output", model.spec.n_layers - 1), v)
    moved -= moved.mean()
    assert_allclose(given, moved, rtol=0, atol=1e-6 * max(1, np.abs(moved).max()), strict=True)


def test_only_what_is_added_to_the_stream_as_it_is_has_logits(micro):
    made, v = trace(micro, IDS), np.ones(micro.spec.d_model)
    for key in ("embeddings", "token_embeddings", "input", "attn_out", "mlp_out", "output"):
        layer = None if "embeddings" in key else 0
        assert lensed(micro, made, (key, layer), v).shape == (micro.spec.n_vocab,)
    for key in ("ln1.out", "mlp_act", "out"):
        assert lensed(micro, made, (key, 0), v) is None
    assert lensed(micro, made, ("ln_final.out", None), v).shape == (micro.spec.n_vocab,)


def test_after_the_last_norm_it_is_the_output_matrix():
    model = micro_model(dtype="float64")
    v = np.arange(model.spec.d_model, dtype=float)
    given = lensed(model, trace(model, IDS), ("ln_final.out", None), v)
    logits = model.output_table @ v
    assert_allclose(given, logits - logits.mean(), rtol=1e-12, atol=1e-12, strict=True)
