from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

import gptscope
from gptscope.analysis.wiring import SOURCES, end, leads_to, sources, summands, way
from gptscope.engine.forward import WIRINGS
from tests.helpers.micro import micro_model, models_and_ids
from tests.helpers.variants import WIRED, normed_embeddings, one_norm, post_norm, sandwich

EMBEDDINGS = [("token_embeddings", None), ("position_embeddings", None)]


def total(trace, values):
    return np.sum([trace.values[value] for value in values], axis=0, dtype=np.float64)


def test_every_wiring_of_the_engine_is_told():
    assert SOURCES.keys() == WIRINGS.keys()


@given(models_and_ids())
def test_the_stream_is_the_sum_of_its_parts(model_and_ids):
    model, ids = model_and_ids
    trace = gptscope.trace(model, ids)
    allowed = {"atol": 1e-4} if model.dtype == "float32" else {"atol": 1e-10}
    for layer in range(model.spec.n_layers):
        for key in ("input", "resid_after_attn", "output"):
            if (key, layer) in trace.lacks:
                continue
            again = total(trace, summands(trace, key, layer))
            assert_allclose(again, trace.values[key, layer], **allowed)


@given(models_and_ids())
def test_a_norm_reads_what_its_sources_sum_to(model_and_ids):
    model, ids = model_and_ids
    trace = gptscope.trace(model, ids)
    places = [
        (key.removesuffix(".out"), layer) for key, layer in trace.values if key.endswith(".out")
    ]
    assert ("ln1", 0) in places
    for name, layer in places:
        read = total(trace, sources(trace, name, layer))
        if model.spec.norm == "layer_norm":
            assert_allclose(trace.values[f"{name}.mean", layer], read.mean(-1), atol=1e-5)
        else:
            square = trace.values[f"{name}.mean_square", layer]
            assert_allclose(square, (read**2).mean(-1), rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "part", "expected"),
    [
        (lambda model: model, "attention", [("ln1.out", 1)]),
        (lambda model: model, "mlp", [("ln2.out", 1)]),
        (sandwich, "ln1_post", [("attn_out", 1)]),
        (sandwich, "resid_after_attn", [("input", 1), ("ln1_post.out", 1)]),
        (sandwich, "output", [("resid_after_attn", 1), ("ln2_post.out", 1)]),
        (one_norm, "mlp", [("ln1.out", 1)]),
        (one_norm, "output", [("input", 1), ("attn_out", 1), ("mlp_out", 1)]),
        (WIRED["norm_of_parts"], "ln2", [("mlp_out", 1)]),
        (WIRED["norm_in_stream"], "output", [("ln2.out", 1), ("mlp_out", 1)]),
        (normed_embeddings, "embed_norm", EMBEDDINGS),
        (post_norm, "attention", [("input", 1)]),
        (post_norm, "ln2", [("resid_after_attn", 1), ("mlp_out", 1)]),
    ],
)
def test_what_a_part_reads(change, part, expected):
    trace = gptscope.trace(change(micro_model()), [1, 2])
    assert sources(trace, part, 1) == expected


def test_after_a_post_norm_the_stream_is_the_norm():
    trace = gptscope.trace(post_norm(micro_model()), [1, 2])
    assert summands(trace, "input", 1) == [("ln2.out", 0)]
    assert summands(trace, "input", 0) == EMBEDDINGS


def test_a_value_leads_to_what_it_is_a_part_of(micro):
    trace = gptscope.trace(micro, [1, 2])
    assert leads_to(trace, end(trace), ("position_embeddings", None))
    assert not leads_to(trace, ("output", 0), ("output", 1))


def test_the_way_has_both_ends():
    trace = gptscope.trace(micro_model(), [1, 2])
    start, goal = ("output", 1), ("mlp_out", 0)
    between = [("resid_after_attn", 1), ("input", 1), ("output", 0)]
    assert way(trace, start, goal) == [start, *between, goal]
    assert way(trace, goal, goal) == [goal]
    with pytest.raises(KeyError):
        way(trace, goal, start)


@pytest.mark.parametrize("wiring", WIRED)
def test_the_end_is_what_the_output_matrix_reads(wiring):
    model = replace(WIRED[wiring](micro_model(dtype="float64")), output_bias=None)
    trace = gptscope.trace(model, [1, 2])
    read = trace.values[end(trace)]
    assert_allclose(read @ model.output_table.T * model.spec.logit_scale, trace.logits, rtol=1e-9)
