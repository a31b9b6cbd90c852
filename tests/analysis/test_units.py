import numpy as np
import pytest
from numpy.testing import assert_array_equal

import gptscope
from gptscope.analysis.units import are_on, steps, strongest
from tests.helpers.families import family_folder


def test_the_strongest_are_farthest_from_zero_whatever_their_sign():
    assert strongest(np.array([0.1, -3, 2, 2, 0]), 4) == [1, 2, 3, 0]


def test_what_is_no_number_comes_first():
    assert strongest(np.array([1, np.nan, -9]), 2) == [1, 2]


@pytest.mark.parametrize(
    ("case", "names", "key"),
    [("llama", ["gate", "up", "after"], "mlp_gate"), ("phi", ["before", "after"], "mlp_act")],
)
def test_a_unit_is_on_by_its_gate_or_its_value(case, names, key):
    trace = gptscope.trace(gptscope.load(family_folder(case)), [1, 2, 3])
    assert list(steps(trace, 1)) == names
    assert_array_equal(are_on(trace, 1), getattr(trace.layers[1], key) > 0)
