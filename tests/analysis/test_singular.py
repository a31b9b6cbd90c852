import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gptscope.analysis.singular import circuits, effective_rank, norm, singular_values
from gptscope.model.weights import Attention, Linear

SIZES = st.integers(1, 7)


def attention(rng, d, n_heads, groups, d_head):
    q, k, v, o = (
        Linear(rng.normal(size=shape).astype("f4"), None)
        for shape in [
            (d, n_heads * d_head),
            (d, groups * d_head),
            (d, groups * d_head),
            (n_heads * d_head, d),
        ]
    )
    return Attention(q, k, v, o, 1.0)


@given(SIZES, SIZES, SIZES, st.integers(0, 99))
def test_values_are_those_of_the_product(n, d, d_head, seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n, d, d_head))
    found = singular_values(a, b)
    expected = np.linalg.svd(a @ b.swapaxes(1, 2), compute_uv=False)
    assert found.shape == (n, min(d, d_head))
    assert_allclose(found, expected[:, : found.shape[1]], atol=1e-10)


@pytest.mark.parametrize("groups", [1, 2, 6])
def test_heads_of_a_group_share_keys_and_values(groups):
    a = attention(np.random.default_rng(0), 12, 6, groups, 4)
    found = circuits(a, 6)
    for head in range(6):
        own, g = slice(4 * head, 4 * head + 4), head * groups // 6
        shared = slice(4 * g, 4 * g + 4)
        ov = a.v.weight[:, shared].astype("f8") @ a.out.weight[own]
        qk = a.q.weight[:, own].astype("f8") @ a.k.weight[:, shared].T
        for values, product in ((found.ov, ov), (found.qk, qk)):
            assert_allclose(values[head], np.linalg.svd(product, compute_uv=False)[:4], rtol=1e-5)
            assert_allclose(norm(values[head]), np.linalg.norm(product), rtol=1e-5)


def test_a_broken_head_leaves_the_others_alone():
    a = attention(np.random.default_rng(0), 6, 3, 3, 2)
    whole = circuits(a, 3)
    a.q.weight[1, 2] = np.nan
    broken = circuits(a, 3)
    assert np.isnan(broken.qk[1]).all()
    assert np.isnan(effective_rank(broken.qk[1]))
    assert_allclose(broken.qk[[0, 2]], whole.qk[[0, 2]])
    assert_allclose(broken.ov, whole.ov)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([3, 3, 3], 3), ([5, 0, 0], 1), ([0, 0, 0], 0), ([2, 2, 0], 2), ([0.5, 0.25, 0.25], 2**1.5)],
)
def test_the_effective_rank_counts_what_matters(values, expected):
    assert_allclose(effective_rank(np.array(values, float)), expected, rtol=1e-12)
