import math

import numpy as np
import pytest

from gptscope.engine.ops import (
    ACTIVATIONS,
    activation,
    gelu,
    gelu_tanh,
    join_heads,
    mask_scores,
    sigmoid,
    silu,
    softmax,
    softplus,
    split_heads,
)
from gptscope.engine.products import linear
from gptscope.errors import ModelError

DTYPES = ["float32", "float64"]


def phi(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def tanh_form(x, slope=(2 / math.pi) ** 0.5):
    return 0.5 * x * (1 + math.tanh(slope * (x + 0.044715 * x**3)))


def logistic(x):
    return 1 / (1 + math.exp(-x))


# Each by its definition, in plain Python.
BY_DEFINITION = {
    "gelu": lambda x: x * phi(x),
    "gelu_python": lambda x: x * phi(x),
    "gelu_new": tanh_form,
    "gelu_fast": lambda x: tanh_form(x, 0.7978845608),
    "gelu_bloom": lambda x: tanh_form(x, 0.79788456),
    "gelu_accurate": tanh_form,
    "gelu_pytorch_tanh": tanh_form,
    "gelu_python_tanh": tanh_form,
    "gelu_10": lambda x: min(10, x * phi(x)),
    "quick_gelu": lambda x: x * logistic(1.702 * x),
    "relu": lambda x: max(x, 0),
    "relu2": lambda x: max(x, 0) ** 2,
    "relu6": lambda x: min(max(x, 0), 6),
    "leaky_relu": lambda x: x if x > 0 else 0.01 * x,
    "silu": lambda x: x * logistic(x),
    "swish": lambda x: x * logistic(x),
    "mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "sigmoid": logistic,
    "tanh": math.tanh,
    "linear": lambda x: x,
}
POINTS = [*np.linspace(-15, 15, 241).tolist(), -1e-3, 1e-3, -1e-9, 1e-9, 0.0]


def test_every_activation_has_a_definition_here():
    assert BY_DEFINITION.keys() == ACTIVATIONS.keys()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_by_their_definition(name, dtype):
    x = np.array(POINTS, dtype)
    expected = np.array([BY_DEFINITION[name](float(value)) for value in x], dtype)
    tolerance = 8 * np.finfo(dtype).eps
    allowed = tolerance * np.maximum(np.abs(x), np.abs(expected))
    actual = activation(name)(x)
    assert actual.dtype == dtype
    assert (np.abs(actual - expected) <= allowed).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_neither_overflow_nor_change_their_input(name):
    x = np.array([[-1e4, -500, -1, 0], [1, 20, 500, 1e4]], "float32")
    x.flags.writeable = False
    before = x.tobytes()
    y = activation(name)(x)
    assert np.isfinite(y).all()
    assert y.shape == x.shape
    assert x.tobytes() == before


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_let_nan_through(name):
    y = activation(name)(np.array([np.nan, 1], "float32"))
    assert np.isnan(y).tolist() == [True, False]


def test_the_gelus_are_different_functions():
    x = np.linspace(-3, 3, 101)
    names = ["gelu", "gelu_new", "quick_gelu", "silu"]
    values = {name: ACTIVATIONS[name](x) for name in names}
    for one in names:
        for two in names[: names.index(one)]:
            assert np.abs(values[one] - values[two]).max() > 1e-4, (one, two)


@pytest.mark.parametrize("name", ["GELU", "gelu ", "", "magic"])
def test_an_unknown_activation_is_refused(name):
    with pytest.raises(ModelError, match=f"the activation '{name}' is not one of: gelu, gelu_10"):
        activation(name)


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_by_hand(dtype):
    p = softmax(np.array([[0, np.log(3)], [-np.inf, 7], [1e4, 1e4]], dtype))
    expected = np.array([[0.25, 0.75], [0, 1], [0.5, 0.5]], dtype)
    np.testing.assert_allclose(p, expected, rtol=1e-6, strict=True)
    assert p[1, 0] == 0


@pytest.mark.parametrize("bias", [None, np.array([10.0, 20, 30])])
def test_linear_by_hand(bias):
    x, w = np.array([[1.0, 2]]), np.array([[1.0, 0, 3], [0, 1, 4]])
    expected = np.array([[1.0, 2, 11]]) + (0 if bias is None else bias)
    np.testing.assert_array_equal(linear(x, w, bias), expected, strict=True)
    assert x.tolist() == [[1, 2]]


@pytest.mark.parametrize("dtype", DTYPES)
def test_scores_are_scaled_and_masked(dtype):
    scores = np.arange(8, dtype=dtype).reshape(2, 2, 2)
    scores.flags.writeable = False
    hidden = np.array([[False, True], [False, False]])
    expected = np.array([[[0, -np.inf], [1, 1.5]], [[2, -np.inf], [3, 3.5]]], dtype)
    np.testing.assert_array_equal(mask_scores(scores, hidden, 0.5), expected, strict=True)


def test_heads_are_split_and_joined():
    x = np.arange(12).reshape(2, 6)
    heads = split_heads(x, 2)
    assert heads.shape == (3, 2, 2)
    np.testing.assert_array_equal(heads[1], [[2, 3], [8, 9]])
    np.testing.assert_array_equal(join_heads(heads), x, strict=True)


def test_heads_of_one_token_and_of_one_number():
    assert split_heads(np.ones((1, 6)), 6).shape == (1, 1, 6)
    assert split_heads(np.ones((4, 3)), 1).shape == (3, 4, 1)
    assert join_heads(np.ones((3, 1, 2))).shape == (1, 6)


def test_sigmoid_and_softplus_at_the_ends():
    x = np.array([-1e4, 0, 1e4], "float32")
    np.testing.assert_array_equal(sigmoid(x), np.array([0, 0.5, 1], "float32"), strict=True)
    expected = np.array([0, np.log(2), 1e4], "float32")
    np.testing.assert_allclose(softplus(x), expected, rtol=1e-6, strict=True)


@pytest.mark.parametrize("function", [gelu, gelu_tanh, silu])
def test_gates_close_below_and_open_above(function):
    x = np.array([-200.0, 0, 200])
    np.testing.assert_allclose(function(x), [0, 0, 200], atol=1e-12)


def test_lists_and_whole_numbers_are_counted_as_floats():
    expected = softmax(np.array([1.0, 2, 3]))
    np.testing.assert_array_equal(softmax([1, 2, 3]), expected, strict=True)
    whole = np.array([-1, 0, 2])
    np.testing.assert_array_equal(gelu(whole), gelu(whole.astype("float64")), strict=True)
    np.testing.assert_array_equal(gelu([[1, 2]]), gelu(np.array([[1.0, 2]])), strict=True)
