import pytest

import gptscope
from gptscope.model.shipped import EXAMPLES
from tests.helpers.cli import column, parts, run_cli


@pytest.fixture(scope="module")
def table():
    return parts("models")[0]


def test_every_shipped_model_has_a_row(table):
    assert column(table, "name") == list(EXAMPLES)


def test_other_models_are_told_of():
    assert parts("models")[-1]["text"].endswith(
        "a folder, a file or org/name works as well: docs/models.md"
    )


@pytest.mark.parametrize("name", EXAMPLES)
def test_sizes_are_those_of_the_model(table, name):
    (row,) = (row for row in table["rows"] if row["name"] == name)
    model = gptscope.load(name)
    spec = model.spec
    sizes = [spec.n_layers, spec.n_heads, spec.d_model, spec.d_ff, spec.n_vocab, spec.n_ctx]
    assert list(row.values()) == [name, spec.family, *sizes, model.n_params]


@pytest.mark.parametrize("name", EXAMPLES)
def test_its_name_opens_it(name):
    assert run_cli(["tokens", "the cat eats", "--model", name]).status == 0
