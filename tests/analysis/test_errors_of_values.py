import math

import numpy as np
import pytest

from gptscope.analysis.errors_of_values import (
    OF_THE_SCALE,
    alone,
    apart,
    compared,
    errors,
    first_apart,
    limit,
    scale,
)
from tests.helpers import close

X = np.array([3.0, -np.inf, -70.0])


def test_the_limits_are_those_of_the_tests():
    for name in ("logits", "layers.0.heads.0.weights"):
        for dtype in ("float32", "float64"):
            x = X if name == "logits" else np.array([0.25, 0.75])
            assert limit(name, dtype) * scale(x) == close.tolerance(name, x, dtype)
    assert {k: v for k, v in OF_THE_SCALE.items() if k in close.OF_THE_SCALE} == close.OF_THE_SCALE
    np.testing.assert_array_equal(errors(X, X), close.errors(X, X), strict=True)


def test_errors_are_in_parts_of_the_scale():
    y = X + np.array([0.7, 0, 0])
    one = compared("logits", y, X)
    assert (one.error, one.mean) == (pytest.approx(0.01), pytest.approx(0.01 / 3))
    assert not one.agrees
    assert compared("logits", X, X).agrees
    assert compared("x", np.array([1e-5]), np.array([0.0])).error == 1e-5  # the scale is at least 1


def test_what_is_the_same_is_0_apart_be_it_a_number_or_not():
    x = np.array([np.nan, np.inf, -np.inf, 1.0])
    np.testing.assert_array_equal(apart(x, x), np.zeros(4), strict=True)
    np.testing.assert_array_equal(np.abs(apart(x, np.zeros(4))), [np.inf, np.inf, np.inf, 1])


def test_other_shapes_are_told():
    one = compared("x", np.zeros((2, 3)), np.zeros((3, 2)))
    assert (one.error, one.wrong, one.agrees) == (math.inf, "shapes [2, 3] and [3, 2]", False)
    assert first_apart([compared("y", X, X), one]) is one
    assert first_apart([compared("y", X, X)]) is None


def test_an_empty_value_agrees():
    assert compared("x", np.zeros((0, 3)), np.zeros((0, 3))).agrees


def test_names_of_one_side_are_few():
    heads = [f"layers.{i}.heads.{h}.{name}" for i in range(3) for h in range(2) for name in "qk"]
    assert alone([*heads, "logits"], [name for name in heads if "layers.0" in name]) == (
        "layers.1.*",
        "layers.2.*",
        "logits",
    )
    assert alone(heads, [name for name in heads if name.endswith("k")]) == ("layers.*.heads.*.q",)
    assert alone(heads, heads) == ()
    deep = [f"layers.{i}.output" for i in range(9)]
    assert alone(deep, []) == ("layers.0.*", "...", "layers.8.*")
