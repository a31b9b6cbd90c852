import numpy as np
import pytest

import gptscope


def test_the_demonstration_of_the_lesson():
    rng = np.random.default_rng(0)
    Q = K = V = rng.normal(size=(3, 4))
    weights, output = gptscope.causal_attention(Q, K, V)
    assert weights.round(2).tolist() == [[1, 0, 0], [0.25, 0.75, 0], [0.17, 0.13, 0.70]]
    np.testing.assert_allclose(output, weights @ V, strict=True)
    x = rng.normal(2.0, 3.0, size=8)
    y = gptscope.layer_norm(x, np.ones(8), np.zeros(8))
    assert y.shape == (8,)
    assert round(abs(y.mean()), 3) == 0.0
    assert round(y.std(), 3) == 1.0


def test_gain_and_bias_of_a_norm():
    x = np.random.default_rng(1).normal(size=(2, 3, 5))
    gain, bias = np.arange(1.0, 6), np.arange(5.0)
    plain = gptscope.layer_norm(x, np.ones(5), np.zeros(5), eps=0.1)
    np.testing.assert_allclose(
        gptscope.layer_norm(x, gain, bias, eps=0.1), plain * gain + bias, strict=True
    )
    spread = np.sqrt(x.var(-1, keepdims=True) + 0.1)
    np.testing.assert_allclose(plain, (x - x.mean(-1, keepdims=True)) / spread, rtol=1e-12)


def test_what_was_given_is_not_changed():
    x = np.random.default_rng(2).normal(size=(4, 6))
    before = x.copy()
    gptscope.layer_norm(x, np.ones(6), np.zeros(6))
    gptscope.causal_attention(x, x, x)
    gptscope.softmax(x)
    gptscope.gelu(x)
    np.testing.assert_array_equal(x, before)


def test_sinusoidal_positions_are_those_of_the_paper():
    table = gptscope.sinusoidal_positions(50, 8)
    assert table.shape == (50, 8)
    for position in (0, 1, 7, 49):
        for i in range(4):
            angle = position / 10_000 ** (2 * i / 8)
            assert table[position, 2 * i] == pytest.approx(np.sin(angle))
            assert table[position, 2 * i + 1] == pytest.approx(np.cos(angle))


def test_sinusoidal_positions_of_an_odd_width():
    assert gptscope.sinusoidal_positions(3, 5).shape == (3, 5)
