import numpy as np
import pytest
from hypothesis import given
from numpy.testing import assert_allclose

import gptscope
from gptscope.analysis.wiring import SOURCES, sources, summands
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
