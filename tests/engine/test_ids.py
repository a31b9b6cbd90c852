import numpy as np
import pytest

from gptscope.engine.ids import checked_ids
from gptscope.errors import UsageError
from tests.helpers.micro import sizes

SPEC = sizes(n_vocab=13, n_ctx=4)


@pytest.mark.parametrize(
    "ids", [[0, 12], (0, 12), iter([0, 12]), np.array([0, 12]), np.array([0, 12], "int32")]
)
def test_any_iterable_of_ids(ids):
    np.testing.assert_array_equal(checked_ids(SPEC, ids), np.array([0, 12]), strict=True)


def test_the_longest_text():
    assert checked_ids(SPEC, [1] * 4).tolist() == [1] * 4


@pytest.mark.parametrize("ids", [[], (), iter([]), np.array([], int)])
def test_an_empty_text_is_refused(ids):
    with pytest.raises(UsageError, match="the text is empty"):
        checked_ids(SPEC, ids)


@pytest.mark.parametrize("length", [5, 1000])
def test_a_text_that_is_too_long_is_refused(length):
    why = f"the text is {length} tokens long, and this model reads 4 at most"
    with pytest.raises(UsageError, match=why) as fault:
        checked_ids(SPEC, [1] * length)
    assert "the first 4 tokens" in fault.value.hint


@pytest.mark.parametrize("wrong", [-1, 13, 10**30])
def test_an_id_outside_the_vocabulary_is_refused(wrong):
    why = f"token id {wrong} is outside the vocabulary: ids go from 0 to 12"
    with pytest.raises(UsageError, match=why):
        checked_ids(SPEC, [0, wrong])


@pytest.mark.parametrize(
    "ids", [[1.7], [0.5, 1], [float("nan")], ["a"], "12", [[1, 2]], [None], None]
)
def test_what_is_no_whole_number_is_refused(ids):
    with pytest.raises(UsageError, match="token id"):
        checked_ids(SPEC, ids)
