import json
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

import gptscope
from gptscope.analysis.order import derangement
from gptscope.commands.experiment_order import view
from gptscope.commands.session import Run
from tests.helpers.cli import SENTENCE, asked, beside_notes, column, refused, rows, run_cli
from tests.helpers.families import family_folder
from tests.helpers.folders import tensors_of
from tests.helpers.micro import micro_model

CALL = ("experiment", "order")
TOY = ("the cat eats the fish and the dog", "--model", "toy")
ALIKE, OTHER = "permuted the same way", "different"


def answer(*args):
    result = run_cli([*CALL, "--format", "json", *args])
    assert (result.status, beside_notes(result.err)) == (0, [])
    return json.loads(result.out)


def parts(*args):
    return answer(*args)["parts"]


@pytest.mark.parametrize("where", [(), ("--layer", "1"), ("--head", "-1"), ("-l", "1", "-H", "1")])
@pytest.mark.parametrize("source", [(SENTENCE,), TOY], ids=["tiny", "toy"])
def test_only_without_positions_and_mask_the_outputs_are_permuted(source, where):
    table, note, _ = parts(*source, *where)
    assert column(table, "positions") == ["no", "yes", "no", "yes"]
    assert column(table, "mask") == ["no", "no", "yes", "yes"]
    assert column(table, "outputs") == [ALIKE, OTHER, OTHER, OTHER]
    first, *others = column(table, "largest difference")
    assert first < 1e-6
    assert min(others) > 1e-3
    assert min(column(table, "largest output")) > 0.01
    assert "Haviv, Ram, Press, Izsak and Levy 2022" in note["text"]


def test_float64_leaves_less_rounding():
    table, *_ = parts(SENTENCE, "--dtype", "float64")
    assert column(table, "largest difference")[0] < 1e-14


def test_the_last_row_is_the_model_itself(tiny, ids):
    table, *_ = parts(SENTENCE, "--head", "2")
    order = derangement(len(ids), 0)
    before, after = (
        gptscope.trace(tiny, i).layers[0].heads[2].out for i in (ids, np.array(ids)[order])
    )
    *_, last = table["rows"]
    difference = np.abs(after - before[order]).max()
    assert last["largest difference"] == pytest.approx(float(difference), rel=1e-5)
    assert last["largest output"] == pytest.approx(float(np.abs(before).max()), rel=1e-5)


def test_title_names_layer_and_head():
    table, *_ = parts(SENTENCE, "--layer", "-1", "--head", "-2")
    assert table["title"].startswith("Layer 3, head 2, on the embeddings alone")


def test_the_permuted_tokens_are_shown(labels):
    *_, moved = parts(SENTENCE, "--seed", "4")
    order = derangement(6, 4).tolist()
    assert rows(moved) == [
        [at, labels[at], labels[origin], origin] for at, origin in enumerate(order)
    ]
    assert all(at != origin for at, origin in enumerate(order))


def test_a_seed_repeats_and_another_differs():
    one, two, other = (parts(SENTENCE, "--seed", seed) for seed in ("1", "1", "2"))
    assert one == two
    assert one != other


def test_the_envelope_says_what_was_fed():
    given = answer("--ids", "1,2,5", "--model", "toy")
    assert (given["command"], given["input"]["ids"]) == ("experiment order", [1, 2, 5])
    assert given["model"]["name"] == "toy"


# What a model lacks


def lacking(model):
    table, note, _ = view(Run(model, (3, 1, 4), None), 0, 0, 0).parts
    return [row[:2] for row in table.rows], note.text.rpartition(". ")[2]


def test_a_model_without_a_mask_says_so():
    table, note, _ = parts(TOY[0], "--model", "toy-unmasked")
    assert column(table, "outputs") == [ALIKE, OTHER, OTHER, OTHER]
    assert note["text"].endswith(" This model itself has no mask.")


def test_a_model_without_positions_says_so():
    model = replace(micro_model(), position_table=None)
    assert lacking(model) == (
        [("no", "no"), ("no", "yes")],
        "This model itself has no positions.",
    )
    model = replace(model, spec=replace(model.spec, causal=False))
    assert lacking(model)[1] == "This model itself has no positions and no mask."


def test_a_model_that_has_both_lacks_nothing():
    assert "This model itself" not in lacking(micro_model())[1]


def test_what_is_no_number_is_said(folder):
    bias = np.full(tensors_of("gpt2")["transformer.h.0.attn.c_attn.bias"].shape, np.nan, "float32")
    broken = folder(tensors={"transformer.h.0.attn.c_attn.bias": bias})
    table, *_ = parts("--ids", "1,2", "--model", str(broken))
    assert column(table, "outputs") == ["not a number"] * 4


# The screen


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_wider_than_the_screen(width):
    lines = run_cli([*CALL, SENTENCE], env={"COLUMNS": str(width)}).lines
    assert [line for line in lines if cell_len(line) > width] == []


# What is refused


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("the", "'the' is one token: there is nothing to permute"),
        ("the the the", "all 3 tokens are 'the': there is nothing to permute"),
    ],
)
def test_nothing_to_permute(text, sentence):
    said, hint = refused(run_cli([*CALL, text, "--model", "toy"]), 2)
    assert (said, hint) == (sentence, "give two different ones or more")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["--layer", "4"], "layer 4 is out of range: this one has layers 0 to 3"),
        (["--head", "-5"], "head -5 is out of range: this one has heads 0 to 3"),
        (["--seed", "-1"], "Invalid value for '--seed': -1 is not in the range x>=0."),
        (["--ids", "1"], "give one of TEXT, --file and --ids, not several"),
    ],
)
def test_a_wrong_call(args, sentence):
    assert refused(run_cli([*CALL, SENTENCE, *args]), 2)[0] == sentence


def test_a_text_may_be_too_long():
    long = ",".join(["1", "2"] * 100)
    said, _ = refused(run_cli([*CALL, "--ids", long]), 2)
    assert said == "the text is 200 tokens long, and this model reads 128 at most"


def answer_of(*args):
    return asked("experiment order", *args)["parts"]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("llama", "those of the heads: rotary positions, which turn queries and keys."),
        ("bloom", "those of the heads: ALiBi, which takes off from the scores with the distance."),
    ],
)
def test_positions_in_the_heads_count(case, words):
    table, note, _ = answer_of("--model", family_folder(case), "--ids", "1,2,3,4")
    assert column(table, "positions") == ["no", "yes", "no", "yes"]
    assert column(table, "outputs") == ["permuted the same way", *["different"] * 3]
    assert words in note["text"]


def test_a_layer_that_does_not_turn_has_no_positions():
    args = ["--model", family_folder("smollm3"), "--ids", "1,2,3,4", "--layer", "1"]
    assert column(answer_of(*args)[0], "positions") == ["no", "no"]
