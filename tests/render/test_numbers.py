import math

import numpy as np
import pytest

from gptscope.render.numbers import brief, decimals, formatter, number_format


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
        ("number", 0.000_123_456, "0.000123456"),
        ("number", -1.23e-8, "-1e-08"),
        ("error", 0, "0"),
        ("error", 2.345_6, "2.35"),
        ("error", 0.000_123_456, "0.000123"),
        ("error", 9.87e-5, "1e-04"),
        ("error", np.float32(3.3e-7), "3e-07"),
        ("error", math.inf, "inf"),
        ("signed", -1.5, "-1.500"),
        ("contribution", -1.5, "-1.500"),
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


@pytest.mark.parametrize("kind", ["signed", "contribution", "length"])
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


@pytest.mark.parametrize(
    "kind", ["probability", "count", "signed", "contribution", "length", "number", "error", "id"]
)
@pytest.mark.parametrize("grid", [False, True])
def test_nothing_is_a_dash(kind, grid):
    assert formatter(kind, [None], grid=grid)(None) == "-"


@pytest.mark.parametrize(
    "kind", ["probability", "signed", "contribution", "length", "number", "error", "id"]
)
@pytest.mark.parametrize("wrong", [math.nan, np.float64("nan"), np.float32("nan")])
@pytest.mark.parametrize("grid", [False, True])
def test_not_a_number_is_told(kind, wrong, grid):
    assert formatter(kind, [wrong], grid=grid)(wrong) == "nan"


def test_zero_has_no_sign():
    assert formatter("signed", [1.0])(-1e-9) == "0.000"


def test_one_column_has_one_number_of_digits():
    write = formatter("signed", [12.5, 0.004])
    assert [write(12.5), write(0.004), write(-3)] == ["12.50", "0.00", "-3.00"]


@pytest.mark.parametrize(
    ("kind", "value", "precision", "text"),
    [
        ("probability", 0.305_561, 2, "0.31"),
        ("probability", 0.305_561, 6, "0.305561"),
        ("probability", 0.0049, 2, "<0.01"),
        ("probability", 0.01, 2, "0.01"),
        ("probability", 1.0, 1, "1.0"),
        ("signed", -1.234_567_8, 2, "-1.2"),
        ("signed", -1.234_567_8, 6, "-1.23457"),
        ("signed", 1234.5, 2, "1234"),
        ("signed", 1_234_567.891, 9, "1234567.89"),
        ("signed", 12_345_678.9, 3, "1.23e+07"),
        ("signed", 12_345_678.9, 10, "12345678.90"),
        ("length", 3.3e-6, 3, "+3.30e-06"),
        ("length", 1 / 3, 17, "0.33333333333333331"),
        ("number", 0.123_456_789, 2, "0.123457"),  # a setting is not rounded
        ("number", 0.123_456_789, 8, "0.12345679"),
        ("number", 10_000.0, 2, "10000"),
        ("number", 1e-9, 3, "1.00e-09"),
        ("error", 2.345_6, 2, "2.3"),
        ("error", 1.234e-9, 3, "1.23e-09"),
        ("count", 1_234_567, 2, "1,234,567"),
        ("id", 50_256, 2, "50256"),
        ("probability", math.nan, 3, "nan"),
        ("signed", None, 3, "-"),
    ],
)
def test_precision_is_the_number_of_significant_digits(kind, value, precision, text):
    assert formatter(kind, [value], precision=precision)(value) == text


@pytest.mark.parametrize("precision", range(1, 18))
def test_probabilities_have_as_many_decimals_in_tables_and_in_grids(precision):
    for grid in (False, True):
        write = formatter("probability", [], grid=grid, precision=precision)
        assert write(0.75) == f"{0.75:.{precision}f}"
    assert formatter("probability", [], grid=True, precision=precision)(0.0) == (
        "0." + precision * "0"
    )


@pytest.mark.parametrize("kind", ["probability", "signed", "length"])
@pytest.mark.parametrize("precision", [1, 3, 8, 17])
def test_a_column_has_one_number_of_decimals_at_every_precision(kind, precision):
    values = [0.5, 0.25, 0.001_234_567_89, 0.999]
    write = formatter(kind, values, precision=precision)
    texts = [write(value).replace("<", "") for value in values]
    assert len({len(text.partition(".")[2]) for text in texts}) == 1


@pytest.mark.parametrize(("precision", "text"), [(None, "1.235"), (2, "1.2"), (6, "1.23457")])
def test_beside_a_legend_numbers_are_brief(precision, text):
    assert brief(1.234_567_8, precision) == text
