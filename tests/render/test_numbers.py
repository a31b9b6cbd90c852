import math

import numpy as np
import pytest

from gptscope.render.numbers import decimals, formatter, number_format


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        ("probability", 0.30556, "0.3056"),
        ("probability", 1.0, "1.0000"),
        ("probability", 0.0, "0.0000"),
        ("probability", 0.0001, "0.0001"),
        ("probability", 0.000_099_9, "<0.0001"),
        ("probability", 1e-9, "<0.0001"),
        ("probability", np.float32(1e-45), "<0.0001"),
        ("count", 174_604_259_328, "174,604,259,328"),
        ("count", 0, "0"),
        ("id", 50_256, "50256"),
        ("id", -1, "-1"),
        ("number", 0.8, "0.8"),
        ("number", 40.0, "40"),
        ("number", 1e-6, "1e-06"),
        ("number", -1.23e-8, "-1e-08"),
        ("signed", -1.5, "-1.500"),
        ("length", 12.345, "12.35"),
    ],
)
def test_each_kind_is_written_in_its_way(kind, value, text):
    assert formatter(kind, [value])(value) == text


def test_probabilities_in_a_grid_are_short():
    write = formatter("probability", [], grid=True)
    assert [write(0.125), write(1e-9), write(0.0)] == ["0.12", "0.00", "0.00"]


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
        ([1e-5], 8),
        ([0.0, -0.0], 2),
        ([], 2),
        ([math.nan, math.inf, 20.0], 2),
    ],
)
def test_the_largest_has_four_significant_digits(values, digits):
    assert decimals(values) == digits
    assert number_format([None, *values]) == f"z.{digits}f"


@pytest.mark.parametrize("largest", [1e-20, 9.9e-6])
def test_what_is_next_to_nothing_is_written_in_powers_of_ten(largest):
    assert number_format([0.0, largest / 3, None, -largest]) == "+.1e"


@pytest.mark.parametrize("kind", ["signed", "length"])
@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([9_999_999.0, 0.5], ["9999999", "0"]),
        ([1e7, 0.5], ["1e+07", "0.5"]),
        ([-1e7, 123.456], ["-1e+07", "123.5"]),
        ([2.5e38, None, math.nan, math.inf], ["2.5e+38", "-", "nan", "inf"]),
        ([math.inf, 12.5], ["inf", "12.50"]),
    ],
)
def test_a_column_with_a_huge_number_has_four_significant_digits(kind, values, texts):
    write = formatter(kind, values)
    assert [write(value) for value in values] == texts


@pytest.mark.parametrize("kind", ["probability", "count", "signed", "length", "number", "id"])
@pytest.mark.parametrize("grid", [False, True])
def test_nothing_is_a_dash(kind, grid):
    assert formatter(kind, [None], grid=grid)(None) == "-"


@pytest.mark.parametrize("kind", ["probability", "signed", "length", "number", "id"])
@pytest.mark.parametrize("wrong", [math.nan, np.float64("nan"), np.float32("nan")])
@pytest.mark.parametrize("grid", [False, True])
def test_not_a_number_is_told(kind, wrong, grid):
    assert formatter(kind, [wrong], grid=grid)(wrong) == "nan"


def test_zero_has_no_sign():
    assert formatter("signed", [1.0])(-1e-9) == "0.000"


def test_one_column_has_one_number_of_digits():
    write = formatter("signed", [12.5, 0.004])
    assert [write(12.5), write(0.004), write(-3)] == ["12.50", "0.00", "-3.00"]
