import numpy as np
import pytest
from numpy.testing import assert_allclose

from gptscope.analysis.information import (
    divergence,
    entropies,
    entropy,
    mean_bits,
    softmax_and_logs,
)


def drawn(seed, *shape):
    return np.random.default_rng(seed).normal(0, 3, shape).astype(np.float32)


def test_logarithms_of_probabilities_do_not_overflow_or_vanish():
    p, logs = softmax_and_logs(np.array([1000, 0, -np.inf], np.float32))
    assert_allclose(p, np.array([1.0, 0.0, 0.0]), strict=True)
    assert_allclose(logs, np.array([0, -1000, -np.inf]), strict=True)
    p, logs = softmax_and_logs(drawn(0, 30))
    assert_allclose(p.sum(), 1)
    assert_allclose(logs, np.log(p), rtol=1e-13, strict=True)


def test_logits_are_left_as_they_are():
    logits = drawn(1, 9).astype(np.float64)
    before = logits.copy()
    softmax_and_logs(logits)
    assert_allclose(logits, before, rtol=0, strict=True)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_no_number_gives_nan(wrong):
    with np.errstate(invalid="ignore"):
        p, logs = softmax_and_logs(np.array([1.0, wrong, 0.0]))
    assert np.isnan(p).any()
    assert np.isnan(entropy(p, logs))


def test_the_entropy_of_equals_is_the_logarithm_of_their_number():
    assert entropy(*softmax_and_logs(np.zeros(8))) == pytest.approx(3)
    assert entropy(*softmax_and_logs(np.array([0.0, -np.inf]))) == 0


def test_many_rows_have_the_entropies_of_each():
    logits = drawn(2, 5, 40)
    logits[1, 3:] = -np.inf
    z = logits.astype(np.float64)
    z -= z.max(axis=1, keepdims=True)
    p = np.exp(z)
    each = np.array([entropy(*softmax_and_logs(row)) for row in logits])
    with np.errstate(invalid="ignore"):
        found = entropies(z, p, p.sum(axis=1))
    assert_allclose(found / np.log(2), each, rtol=1e-12, strict=True)


def test_divergence_is_that_of_the_formula():
    (p, logs), (q, others) = (softmax_and_logs(drawn(seed, 20)) for seed in (3, 4))
    assert divergence(p, logs, others) == pytest.approx((p * np.log2(p / q)).sum())
    assert divergence(p, logs, logs) == 0


def test_divergence_is_infinite_only_where_the_second_alone_says_never():
    p, logs = softmax_and_logs(np.array([0.0, 0.0, -np.inf]))
    q, others = softmax_and_logs(np.array([0.0, -np.inf, -np.inf]))
    assert divergence(p, logs, others) == np.inf
    assert divergence(q, others, logs) == pytest.approx(1)


def test_what_has_no_probability_adds_nothing():
    assert mean_bits(np.array([0.0, 0.5, 0.5]), np.array([np.inf, 1.0, 1.0])) == 1 / np.log(2)
    assert np.isnan(mean_bits(np.array([np.nan, 1.0]), np.array([0.0, 0.0])))
    assert str(mean_bits(np.array([1.0]), np.array([-0.0]))) == "0.0"
