import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from tests.helpers.cli import SENTENCE, column, parts
from tests.helpers.families import family_folder
from tests.helpers.folders import GOLDEN

NORMS = [*(f"layers.{i}.ln{n}" for i in range(4) for n in (1, 2)), "ln_final"]


def tables(*args):
    found = parts("norms", *args)
    return {part["title"]: part for part in found[:-1] if part["kind"] == "table"}


@pytest.fixture(scope="module")
def found():
    return tables(SENTENCE)


def test_a_table_for_each_norm_with_a_row_for_each_token(found, labels):
    assert list(found) == NORMS
    for table in found.values():
        assert column(table, "token") == labels
        assert column(table, "position") == list(range(6))


@pytest.mark.parametrize("name", NORMS)
def test_numbers_are_those_of_the_trace(found, trace, name):
    out, normalized = trace[f"{name}.out"], trace[f"{name}.normalized"]
    expected = {
        "mean in": trace[f"{name}.mean"],
        "std in": np.sqrt(trace[f"{name}.variance"]),
        "mean normalized": normalized.mean(-1),
        "std normalized": normalized.std(-1),
        "mean out": out.mean(-1),
        "std out": out.std(-1),
    }
    for key, values in expected.items():
        assert_allclose(column(found[name], key), values, rtol=1e-5, atol=1e-6)


def test_mean_and_std_are_those_of_the_list_that_comes_in(found, trace):
    table, x = found["layers.1.ln1"], trace.layers[1].input
    assert_allclose(column(table, "mean in"), x.mean(-1), rtol=1e-3)
    assert_allclose(column(table, "std in"), x.std(-1), rtol=1e-4)
    assert_allclose(column(table, "mean normalized"), 0, atol=1e-6)
    assert_allclose(column(table, "std normalized"), 1, atol=1e-4)


def test_eats_enters_the_second_block_of_the_toy():
    text = "the cat eats the fish and"
    toy = gptscope.load("toy")
    stream = gptscope.trace(toy, toy.tokenizer.encode(text)).layers[0].output[2]
    row = tables("--model", "toy", text)["layers.1.ln1"]["rows"][2]
    assert (row["position"], row["token"]) == (2, "eats")
    assert_allclose([row["mean in"], row["std in"]], [stream.mean(), stream.std()], rtol=1e-5)


def test_gain_and_shift_are_those_of_the_model(tiny):
    weights = parts("norms", SENTENCE)[-1]
    rows = {(row["norm"], row["which"]): row for row in weights["rows"]}
    assert len(rows) == 2 * len(NORMS)
    for layer, block in enumerate(tiny.blocks):
        for name, norm in (("ln1", block.ln1), ("ln2", block.ln2)):
            gain = rows[f"layers.{layer}.{name}", "gain"]
            shift = rows[f"layers.{layer}.{name}", "shift"]
            assert_allclose(gain["values"], norm.gain, rtol=1e-6)
            assert_allclose(shift["values"], norm.shift, rtol=1e-6)
            assert_allclose([gain["mean"], shift["std"]], [norm.gain.mean(), norm.shift.std()])


def test_an_rms_norm_keeps_the_mean_and_has_no_shift():
    args = ["--model", str(GOLDEN / "toy-rotary"), "--ids", "3,1,4"]
    found, trace = tables(*args), gptscope.trace(gptscope.load(GOLDEN / "toy-rotary"), [3, 1, 4])
    x = trace.layers[1].input
    table = found["layers.1.ln1"]
    assert_allclose(column(table, "mean in"), x.mean(-1), rtol=1e-4)
    assert_allclose(column(table, "rms in"), np.sqrt((x**2).mean(-1)), rtol=1e-5)
    assert_allclose(column(table, "rms normalized"), 1, atol=1e-3)
    assert {row["which"] for row in parts("norms", *args)[-1]["rows"]} == {"gain"}


def test_a_post_norm_model_has_no_last_norm():
    args = ["--model", str(GOLDEN / "toy-post"), "--ids", "3,1,4"]
    assert "ln_final" not in tables(*args)
    assert "layers.2.ln2" in tables(*args)


@pytest.mark.parametrize(("layer", "at"), [("0", 0), ("2", 2), ("-1", 3)])
def test_layer_leaves_its_norms_alone(layer, at):
    args = [SENTENCE, "--layer", layer]
    assert list(tables(*args)) == [f"layers.{at}.ln1", f"layers.{at}.ln2"]
    assert {row["norm"] for row in parts("norms", *args)[-1]["rows"]} == set(tables(*args))


@pytest.mark.parametrize(("token", "at"), [("0", 0), ("-1", 5)])
def test_token_leaves_its_rows_alone(found, token, at):
    for name, table in tables(SENTENCE, "--token", token).items():
        assert table["rows"] == [found[name]["rows"][at]]


def notes_of(case):
    found = parts("norms", "--ids", "1,2,3", "--model", family_folder(case))
    return " / ".join(part["text"] for part in found if part["kind"] == "note")


@pytest.mark.parametrize(
    ("case", "names"),
    [
        ("gemma2", ["ln1", "ln1_post", "ln2", "ln2_post"]),
        ("olmo2", ["ln1", "ln2"]),
        ("gptj", ["ln1"]),
        ("bloom", ["ln1", "ln2"]),
    ],
)
def test_every_norm_of_a_model_has_a_table(case, names):
    found = list(tables("--ids", "1,2,3", "--model", family_folder(case)))
    first = ["embed_norm"] if case == "bloom" else []
    blocks = [f"layers.{i}.{name}" for i in range(2) for name in names]
    assert found == [*first, *blocks, "ln_final"]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("gemma2", "ln1_post and ln2_post norm what attention and feed-forward layer give"),
        ("olmo2", "ln1 and ln2 norm what attention and feed-forward layer give, before it is"),
        ("olmo2", "Queries and keys have a norm as well, all heads as one list"),
        ("qwen3", "each head by itself (Henry et al. 2020)"),
        ("qwen3", "q_before_norm, and after it, as q_before_rope"),
        ("gptj", "There is no ln2: attention and feed-forward layer both read ln1"),
        ("gpt_neox", "Attention reads ln1, the feed-forward layer ln2, both of the same list"),
        ("bloom", "embed_norm norms the embeddings, before the first block"),
        ("bloom-after-norm", "The stream goes on from what ln1 and ln2 give"),
    ],
)
def test_words_say_where_norms_stand(case, words):
    assert words in notes_of(case)
