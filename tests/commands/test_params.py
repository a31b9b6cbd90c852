import pytest
from numpy.testing import assert_allclose

import gptscope
from tests.helpers.cli import asked, column, parts, run_cli

TOY = ["--d", "8", "--L", "2", "--V", "8", "--ctx", "4"]
TINY = ["--d", "128", "--L", "4", "--V", "4096", "--ctx", "128"]


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [
        (TOY, [96, 576, 1_104, 80, 1_856]),
        (["--d", "768", "--L", "12"], [40_170_240, 28_348_416, 56_669_184, 38_400, 125_226_240]),
        (["--d", "768", "--L", "12", "--ctx", "1024"], [39_383_808, *[None] * 3, 124_439_808]),
        (["--d", "12288", "--L", "96"], [*[None] * 4, 174_604_259_328]),
        (["--d", "8", "--L", "0", "--V", "3", "--ctx", "0"], [24, 0, 0, 16, 40]),
        ([*TOY, "--ff", "10"], [96, 576, 2 * (2 * 80 + 10 + 8), 80, 1_108]),
    ],
)
def test_counts(sizes, counts):
    table, _ = parts("params", *sizes)
    assert column(table, "part") == [
        "embeddings",
        "attention",
        "network",
        "normalisations",
        "total",
    ]
    pairs = zip(column(table, "parameters"), counts, strict=True)
    assert [(n, wanted) for n, wanted in pairs if wanted not in (n, None)] == []


@pytest.mark.parametrize("sizes", [TOY, ["--d", "768", "--L", "12"]])
def test_parts_make_the_whole(sizes):
    table, _ = parts("params", *sizes)
    *counts, total = column(table, "parameters")
    *shares, whole = column(table, "share")
    assert sum(counts) == total
    assert_allclose([sum(shares), whole], [1, 1], rtol=1e-12)


@pytest.mark.parametrize(("ff", "formula"), [([], "L (8 d^2 + 5 d)"), (["--ff", "9"], "L (2 d ff")])
def test_formulas(ff, formula):
    table, _ = parts("params", *TOY, *ff)
    assert table["rows"][2]["formula"].startswith(formula)


def test_the_rule_of_thumb():
    _, facts = parts("params", *TOY)
    assert facts["facts"] == {
        "12 L d^2": 12 * 2 * 64,
        "its share of the total": pytest.approx(1536 / 1856),
    }


def test_the_count_is_that_of_a_real_model(tiny):
    assert parts("params", *TINY)[0]["rows"][-1]["parameters"] == tiny.n_params


def test_it_is_that_of_the_library():
    assert gptscope.n_params(8, 2, V=8, ctx=4).total == 1_856


def test_there_is_no_model_and_no_input():
    answer = asked("params", *TOY)
    assert (answer["model"], answer["input"]) == (None, None)


def test_large_numbers_have_commas():
    assert "174,604,259,328" in run_cli(["params", "--d", "12288", "--L", "96"]).text
