import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.helpers.cli import SENTENCE, parts
from tests.helpers.folders import tensors_of

BLOCKS = [f"layers.{i}." for i in range(4)]


@pytest.fixture(scope="module")
def view():
    return parts("residual", SENTENCE)


def test_rows_are_the_steps_and_columns_the_tokens(view, labels):
    stream, added, _ = view
    after = [name + step for name in BLOCKS for step in ("resid_after_attn", "output")]
    assert stream["rows"] == ["embeddings", *after]
    assert added["rows"] == [name + step for name in BLOCKS for step in ("attn_out", "mlp_out")]
    assert stream["columns"] == added["columns"] == labels


@pytest.mark.parametrize("part", [0, 1])
def test_lengths_are_those_of_the_trace(view, trace, part):
    for name, lengths in zip(view[part]["rows"], view[part]["values"], strict=True):
        assert_allclose(lengths, np.linalg.norm(trace[name], axis=1), rtol=1e-5)


def test_the_sentence_names_the_longest_addition(view, labels):
    _, added, note = view
    lengths = np.array(added["values"])
    row, at = np.unravel_index(lengths.argmax(), lengths.shape)
    told = f"The longest single addition is {added['rows'][row]} at token {at} {labels[at]}"
    assert note["text"] == told


def test_the_sentence_tells_what_is_no_number(folder):
    bias = tensors_of("gpt2")["transformer.h.1.mlp.c_proj.bias"].copy()
    bias[0] = np.nan
    broken = folder(tensors={"transformer.h.1.mlp.c_proj.bias": bias})
    _, added, note = parts("residual", "--ids", "1,2", "--model", str(broken))
    row = added["rows"].index("layers.1.mlp_out")
    assert added["values"][row] == ["NaN", "NaN"]
    assert note["text"] == "layers.1.mlp_out at token 0 <id 1> is not a number"
