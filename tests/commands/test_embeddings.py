import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from tests.helpers.cli import SENTENCE, column, parts
from tests.helpers.families import family_folder


def test_strips_are_those_of_the_trace(trace, labels):
    table, note = parts("embeddings", SENTENCE)
    kept = {
        "token": trace.token_embeddings,
        "position": trace.position_embeddings,
        "sum": trace.embeddings,
    }
    assert column(table, "row") == list(kept) * len(labels)
    for row in table["rows"]:
        values = kept[row["row"]][row["position"]]
        assert np.array_equal(np.float32(row["values"]), values)
        assert_allclose(row["length"], np.linalg.norm(values), rtol=1e-6)
        assert row["token"] == labels[row["position"]]
    assert "128 numbers" in note["text"]


def test_token_and_position_make_the_sum():
    table, _ = parts("embeddings", SENTENCE)
    values = np.float32(column(table, "values")).reshape(-1, 3, 128)  # [3 T, d] -> [T, 3, d]
    assert np.array_equal(values[:, 0] + values[:, 1], values[:, 2])


@pytest.mark.parametrize(
    ("dims", "chosen"),
    [
        ("0:4", [0, 1, 2, 3]),
        (":2", [0, 1]),
        ("126:", [126, 127]),
        ("-2:", [126, 127]),
        ("3,17,90", [3, 17, 90]),
        ("5", [5]),
        ("9,9,1", [9, 9, 1]),
        ("-1", [127]),
    ],
)
def test_dims_choose_the_numbers_of_one_token(trace, dims, chosen):
    table, note = parts("embeddings", SENTENCE, "--token", "2", "--dims", dims)
    assert column(table, "dimension") == chosen
    assert np.array_equal(np.float32(column(table, "token")), trace.token_embeddings[2, chosen])
    assert np.array_equal(np.float32(column(table, "sum")), trace.embeddings[2, chosen])
    assert note["text"].startswith(f"{len(chosen)} of 128 dimensions")


@pytest.mark.parametrize(("token", "at"), [([], 5), (["--token", "0"], 0), (["-t", "-2"], 4)])
def test_token_chooses_the_row(trace, token, at):
    table, _ = parts("embeddings", SENTENCE, *token, "--dims", "7")
    assert table["title"].startswith(f"Token {at} ")
    assert np.float32(column(table, "position")) == trace.position_embeddings[at, 7]


def test_a_token_alone_shows_sixteen_numbers():
    table, note = parts("embeddings", SENTENCE, "--token", "0")
    assert column(table, "dimension") == list(range(16))
    assert "(--dims 0:128 shows all)" in note["text"]


def test_lengths_are_told_beside_the_numbers(trace):
    _, note = parts("embeddings", SENTENCE, "--token", "0")
    assert f"sum {np.linalg.norm(trace.embeddings[0]):.4f}" in note["text"]


@pytest.mark.parametrize(
    ("case", "rows", "words"),
    [
        ("gemma2", ["token", "sum"], "token is its row of the table times 5.65685"),
        ("gemma2", ["token", "sum"], "no row of positions is added: rotary positions"),
        ("bloom", ["token", "normed"], "normed is that after embed_norm"),
        ("bloom", ["token", "normed"], "no row of positions is added: ALiBi"),
        ("opt-350m", ["token", "position", "sum"], "token is 12 numbers of the table, widened"),
    ],
)
def test_rows_are_those_that_the_model_has(case, rows, words):
    table, note = parts("embeddings", "--ids", "4", "--model", family_folder(case))
    assert column(table, "row") == rows
    assert words in note["text"]
    folder = family_folder(case)
    exact, _ = parts("embeddings", "--ids", "4", "--dims", "2", "--model", folder)
    trace = gptscope.trace(gptscope.load(folder), [4])
    assert np.float32(column(exact, rows[-1])) == trace.embeddings[0, 2]
