import math

import numpy as np
import pytest

from gptscope.render.numbers import decimals, formatter


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("probability", 0.30556, "0.3056"),
        ("probability", 1.0, "1.0000"),
        ("probability", 1e-9, "0.0000"),
        ("count", 174_604_259_328, "174,604,259,328"),
        ("count", 0, "0"),
        ("id", 50_256, "50256"),
        ("id", -1, "-1"),
        ("number", 0.8, "0.8"),
        ("number", 40.0, "40"),
        ("signed", -1.5, "-1.500"),
        ("length", 12.345, "12.35"),
    ],
)
def test_each_kind_is_written_in_its_way(kind, value, text):
    assert formatter(kind, [value])(value) == text


def test_probabilities_in_a_grid_are_short():
    assert formatter("probability", [], grid=True)(0.125) == "0.12"


@pytest.mark.parametrize(
    ("values", "digits"),
    [
        ([1.0], 3),
        ([9.99, -0.001], 3),
        ([-10.0, 1.0], 2),
        ([123.4], 1),
        ([1234.5], 0),
        ([1e6], 0),
        ([0.5], 4),
        ([0.012], 5),
        ([1e-20], 8),
        ([0.0, -0.0], 2),
        ([], 2),
        ([None, math.nan, math.inf, 20.0], 2),
    ],
)
def test_the_largest_has_four_significant_digits(values, digits):
    assert decimals(values) == digits


@pytest.mark.parametrize("kind", ["probability", "count", "signed", "length", "number", "id"])
@pytest.mark.parametrize("nothing", [None, math.nan, np.float64("nan")])
def test_nothing_is_a_dash(kind, nothing):
    assert formatter(kind, [nothing])(nothing) == "-"


def test_nothing_in_float32_is_a_dash():
    assert formatter("signed", [])(np.float32("nan")) == "-"


def test_zero_has_no_sign():
    assert formatter("signed", [1.0])(-1e-9) == "0.000"


def test_one_column_has_one_number_of_digits():
    write = formatter("signed", [12.5, 0.004])
    assert [write(12.5), write(0.004), write(-3)] == ["12.50", "0.00", "-3.00"]
