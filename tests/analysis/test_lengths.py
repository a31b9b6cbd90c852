import numpy as np
import pytest
from numpy.testing import assert_allclose

from gptscope.analysis.lengths import additions, lengths, lengths_of, remainder, stream, sums
from gptscope.engine.trace import trace
from tests.helpers.micro import micro_model
from tests.helpers.variants import WIRED

IDS = [1, 2, 3, 1]


@pytest.fixture(params=WIRED)
def made(request):
    return trace(WIRED[request.param](micro_model()), IDS)


def test_a_length_is_the_root_of_the_sum_of_squares():
    assert lengths(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [5, 0]


def test_lengths_of_several_values(made):
    names = ["embeddings", "layers.1.output"]
    found = lengths_of(made, names)
    assert_allclose(found, [np.linalg.norm(made[name], axis=1) for name in names], rtol=1e-6)


def test_sums_are_those_of_the_pass(made):
    for layer in range(2):
        for name, parts in sums(made, layer).items():
            total = sum(made[part] for part in parts)
            expected = total if name.endswith(("ln1", "ln2")) else made[name]
            assert_allclose(total, expected, rtol=1e-5, atol=1e-6)
    assert remainder(made) <= 1e-5


@pytest.mark.parametrize("wiring", [name for name in WIRED if name != "post_norm"])
def test_a_wrong_value_leaves_a_remainder(wiring):
    made = trace(WIRED[wiring](micro_model()), IDS)
    made.values["output", 1] = made.values["output", 1] + 1
    assert remainder(made) == pytest.approx(1, rel=1e-4)


def test_two_parts_add_to_the_stream(made):
    assert [len(additions(made, layer)) for layer in range(2)] == [2, 2]
    assert stream(made, 1)[-1] == "layers.1.output"
    assert len(stream(made, 1)) == (1 if made.spec.wiring == "parallel" else 2)
