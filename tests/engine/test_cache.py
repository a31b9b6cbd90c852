import numpy as np
import pytest

import gptscope
from gptscope.engine.cache import Cache
from gptscope.engine.forward import forward
from tests.helpers.folders import changed_copy, ids_of, tensors_of
from tests.helpers.micro import sizes

SPEC = sizes(n_layers=2, n_heads=3, d_head=4, n_ctx=6)


def some(n_tokens, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(2, 3, n_tokens, 4)).astype("float32")


def test_it_begins_empty():
    assert Cache(SPEC, np.dtype("float32")).length == 0


def test_what_is_added_comes_back_with_all_that_was_added_before():
    cache = Cache(SPEC, np.dtype("float32"))
    k1, v1 = some(2)
    k, v = cache.extend(0, k1, v1)
    np.testing.assert_array_equal(k, k1, strict=True)
    np.testing.assert_array_equal(v, v1, strict=True)
    cache.advance(2)
    k2, v2 = some(3, seed=1)
    k, v = cache.extend(0, k2, v2)
    np.testing.assert_array_equal(k, np.concatenate([k1, k2], axis=1), strict=True)
    np.testing.assert_array_equal(v, np.concatenate([v1, v2], axis=1), strict=True)
    assert cache.length == 2
    cache.advance(3)
    assert cache.length == 5


def test_layers_do_not_mix():
    cache = Cache(SPEC, np.dtype("float32"))
    first, second = some(2, seed=1), some(2, seed=2)
    one, _ = cache.extend(0, *first)
    two, _ = cache.extend(1, *second)
    np.testing.assert_array_equal(one, first[0])
    np.testing.assert_array_equal(two, second[0])


def test_all_places_of_the_context_can_be_filled():
    cache = Cache(SPEC, np.dtype("float32"))
    full = some(6)
    np.testing.assert_array_equal(cache.extend(1, *full)[1], full[1])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_dtype_is_kept(dtype):
    k, v = Cache(SPEC, np.dtype(dtype)).extend(0, *some(1))
    assert (k.dtype, v.dtype) == (np.dtype(dtype), np.dtype(dtype))


def test_float64_weights_are_not_narrowed(tmp_path):
    exact = {name: x.astype("float64") for name, x in tensors_of("gpt2").items()}
    model, ids = gptscope.load(changed_copy(tmp_path, tensors=exact)), np.array(ids_of("gpt2"))
    whole, cache = forward(model, ids), Cache(model.spec, model.dtype)
    rows = [forward(model, ids[i : i + 1], cache=cache)[0] for i in range(len(ids))]
    np.testing.assert_allclose(np.array(rows), whole, atol=1e-12, strict=True)
