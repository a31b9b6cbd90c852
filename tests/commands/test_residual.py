import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.helpers.cli import SENTENCE, parts
from tests.helpers.families import family_folder
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


@pytest.mark.parametrize(
    ("case", "after", "added"),
    [
        ("gptj", ["output"], ["attn_out", "mlp_out"]),
        ("gemma2", ["resid_after_attn", "output"], ["ln1_post.out", "ln2_post.out"]),
        ("olmo2", ["resid_after_attn", "output"], ["ln1.out", "ln2.out"]),
        ("bloom-after-norm", ["resid_after_attn", "output"], ["attn_out", "mlp_out"]),
        ("opt-350m", ["resid_after_attn", "output"], ["attn_out", "mlp_out"]),
    ],
)
def test_rows_are_those_of_the_wiring(case, after, added):
    stream, parts_added, *_ = parts("residual", "--ids", "1,2,3", "--model", family_folder(case))
    layers = [f"layers.{i}." for i in range(2)]
    assert stream["rows"] == ["embeddings", *(layer + key for layer in layers for key in after)]
    assert parts_added["rows"] == [layer + key for layer in layers for key in added]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("gptj", "In every block output = input + attn_out + mlp_out"),
        ("gemma2", "resid_after_attn = input + ln1_post.out; output = resid_after_attn + ln2_post"),
        ("bloom-after-norm", "resid_after_attn = ln1.out + attn_out; output = ln2.out + mlp_out"),
    ],
)
def test_the_sums_are_said_with_what_they_leave(case, words):
    *_, how, left = parts("residual", "--ids", "1,2,3", "--model", family_folder(case))
    assert words in how["text"]
    name, _, value = left["text"].rpartition(" ")
    assert name == "Largest remainder of these sums in all layers:"
    assert float(value) < 1e-5


def test_gpt2_needs_no_words_for_its_sums():
    assert len(parts("residual", SENTENCE)) == 3
