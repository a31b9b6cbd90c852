import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.helpers.cli import SENTENCE, column, parts

NORMS = [*(f"layers.{i}.ln{n}" for i in range(4) for n in (1, 2)), "ln_final"]


@pytest.fixture(scope="module")
def table():
    return parts("norms", SENTENCE)[0]


def test_a_row_for_each_norm_and_token(table, labels):
    assert column(table, "norm") == [name for name in NORMS for _ in labels]
    assert column(table, "token") == labels * len(NORMS)


@pytest.mark.parametrize("name", NORMS)
def test_numbers_are_those_of_the_trace(table, trace, name):
    rows = [row for row in table["rows"] if row["norm"] == name]
    out = trace[f"{name}.out"]
    expected = {
        "mean in": trace[f"{name}.mean"],
        "std in": np.sqrt(trace[f"{name}.variance"]),
        "mean out": out.mean(-1),
        "std out": out.std(-1),
    }
    for key, values in expected.items():
        assert_allclose([row[key] for row in rows], values, rtol=1e-5, atol=1e-6)


def test_std_is_that_of_the_list_that_comes_in(table, trace):
    std = [row["std in"] for row in table["rows"] if row["norm"] == "layers.1.ln1"]
    assert_allclose(std, trace.layers[1].input.std(-1), rtol=1e-4)


@pytest.mark.parametrize(("layer", "at"), [("0", 0), ("2", 2), ("-1", 3)])
def test_layer_leaves_its_norms_alone(layer, at):
    table, _ = parts("norms", SENTENCE, "--layer", layer)
    assert set(column(table, "norm")) == {f"layers.{at}.ln1", f"layers.{at}.ln2"}


@pytest.mark.parametrize(("token", "at"), [("0", 0), ("-1", 5)])
def test_token_leaves_its_rows_alone(table, token, at):
    one, _ = parts("norms", SENTENCE, "--token", token)
    assert one["rows"] == [row for row in table["rows"] if row["position"] == at]
