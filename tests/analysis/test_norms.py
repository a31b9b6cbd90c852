import numpy as np
from hypothesis import given
from numpy.testing import assert_allclose

import gptscope
from gptscope.analysis.norms import SPREAD, rms, statistics, std
from gptscope.analysis.wiring import sources
from gptscope.engine.norms import NORMS
from tests.helpers.micro import models_and_ids


def test_every_norm_of_the_engine_has_a_spread():
    assert SPREAD.keys() == NORMS.keys()


def test_spreads():
    x = np.array([[3.0, -4.0, 0.0, 1.0], [2.0, 2.0, 2.0, 2.0]])
    assert_allclose(std(x), [np.sqrt(26 / 4), 0])
    assert_allclose(rms(x), [np.sqrt(26 / 4), 2])


@given(models_and_ids())
def test_before_between_and_after(model_and_ids):
    model, ids = model_and_ids
    trace, (_, spread) = gptscope.trace(model, ids), SPREAD[model.spec.norm]
    for layer in range(model.spec.n_layers):
        name = f"layers.{layer}.ln1"
        read = sum(trace.values[value] for value in sources(trace, "ln1", layer))
        found = statistics(trace, name)
        assert found.shape == (len(ids), 6)
        allowed = {"rtol": 1e-3, "atol": 1e-4}
        assert_allclose(found[:, :2], np.stack([read.mean(-1), spread(read)], -1), **allowed)
        size = found[:, 1] / np.sqrt(found[:, 1] ** 2 + model.spec.norm_eps)
        assert_allclose(found[:, 3], size, **allowed)
        out = trace[f"{name}.out"]
        assert_allclose(found[:, 4:], np.stack([out.mean(-1), spread(out)], -1), **allowed)
