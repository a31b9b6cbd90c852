import numpy as np
import pytest

from tests.helpers.close import assert_close

EXPECTED = np.array([[1.0, -4.0], [-np.inf, 0.5]])


def test_an_error_within_the_scale_passes():
    assert_close("x", (EXPECTED + 7e-5).astype("float32"), EXPECTED)
    assert_close("x", EXPECTED + 3e-10, EXPECTED, "float64")
    assert_close("x", np.zeros((0, 2), "float32"), np.zeros((0, 2)))


@pytest.mark.parametrize(("at", "wrong"), [((0, 1), -4.0001), ((1, 0), -1e9), ((1, 1), np.nan)])
def test_an_error_is_told_with_its_place(at, wrong):
    actual = EXPECTED.astype("float32")
    actual[at] = wrong
    with pytest.raises(AssertionError, match=rf"logits: largest error .* at \({at[0]}, {at[1]}\)"):
        assert_close("logits", actual, EXPECTED)


@pytest.mark.parametrize("wrong", [-np.inf, np.inf, np.nan])
def test_only_expected_infinities_pass(wrong):
    with pytest.raises(AssertionError, match="largest error inf"):
        assert_close("x", np.array([wrong, 1], "float32"), np.array([0.0, 1.0]))


def test_infinity_of_the_wrong_sign_is_an_error():
    with pytest.raises(AssertionError, match="largest error inf"):
        assert_close("x", np.array([np.inf], "float32"), np.array([-np.inf]))


def test_attention_weights_have_their_own_tolerance():
    weights = np.array([0.25, 0.75])
    assert_close("x.out", (weights + 1.5e-5).astype("float32"), weights)
    with pytest.raises(AssertionError, match=r"allowed 1\.0e-05"):
        assert_close("x.weights", (weights + 1.5e-5).astype("float32"), weights)


def test_dtype_and_shape_count():
    with pytest.raises(AssertionError, match="dtype float64, expected float32"):
        assert_close("x", EXPECTED, EXPECTED)
    with pytest.raises(AssertionError, match=r"shape \(2, 1\), not \(2,\)"):
        assert_close("x", np.zeros((2, 1), "float32"), np.zeros(2))
