import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from tests.helpers.cli import asked, column, parts, refused, run_cli
from tests.helpers.families import family_folder
from tests.helpers.folders import GOLDEN, tensors_of

GPT2 = ["--model", str(GOLDEN / "gpt2")]
WTE = "transformer.wte.weight"
SPACED = "note: words of a sum are taken with a space before them, as in a text: "


def table_of(tiny):
    return np.asarray(tiny.token_table, np.float64)


def cosines(table, row):
    return table @ row / np.linalg.norm(table, axis=1) / np.linalg.norm(row)


def quietly(*args):
    """The parts of an answer to which notes on the tokens may be told."""
    return told(*args)[0]


def told(*args):
    """The parts of an answer, and the notes on its tokens."""
    result = run_cli(["neighbours", "--format", "json", *args])
    assert result.status == 0
    notes = result.err.splitlines()
    assert all(line.startswith(("note: TOKEN is ", SPACED)) for line in notes)
    return json.loads(result.out)["parts"], notes


def test_the_nearest_to_a_token(tiny):
    table, *notes = parts("neighbours", " dad")
    rows = table_of(tiny)
    i = tiny.tokenizer.encode(" dad", bos=False)[-1]
    expected = cosines(rows, rows[i])
    order = [j for j in np.argsort(-expected) if j != i][:10]
    assert column(table, "id") == order
    assert column(table, "rank") == list(range(1, 11))
    assert column(table, "token") == [tiny.tokenizer.text_of(j) for j in order]
    assert_allclose(column(table, "cosine"), expected[order], rtol=1e-6)
    assert_allclose(column(table, "dot product"), rows[order] @ rows[i], rtol=1e-6)
    assert table["title"] == f"Nearest to ·dad (id {i}) by cosine"
    mean = cosines(rows, rows.mean(axis=0)).mean()
    told = [note["text"] for note in notes]
    assert told[0] == (
        "The embedding of tiny has 4,096 rows of 128 numbers, which is the unembedding as well"
    )
    assert f"mean of all rows is {mean:.2f} on average" in told[-1]


def test_the_largest_dot_products(tiny):
    table, *_ = parts("neighbours", "<id 703>", "--by", "dot", "--top", "7")
    rows = table_of(tiny)
    expected = rows @ rows[703]
    order = [j for j in np.argsort(-expected) if j != 703][:7]
    assert column(table, "id") == order
    assert table["title"].endswith("by dot product")


def test_the_mean_comes_off_every_row(tiny):
    table, *notes = parts("neighbours", "<id 703>", "--centre", "--top", "4000")
    rows = table_of(tiny) - table_of(tiny).mean(axis=0)
    expected = cosines(rows, rows[703])
    assert_allclose(column(table, "cosine"), expected[column(table, "id")], atol=1e-6)
    assert notes[-1]["text"] == "The mean of all rows is taken off every row"


@pytest.mark.parametrize("by", ["cosine", "dot"])
def test_several_tokens_are_compared_first(tiny, by):
    grid, one, two, *_ = parts("neighbours", "<id 384>", "<id 703>", "--by", by)
    rows = table_of(tiny)[[384, 703]]
    sizes = np.linalg.norm(rows, axis=1) if by == "cosine" else np.ones(2)
    assert_allclose(grid["values"], rows @ rows.T / np.outer(sizes, sizes), rtol=1e-6)
    assert grid["rows"] == grid["columns"] == [" mom", " dad"]
    assert len(one["rows"]) == len(two["rows"]) == 5


def test_a_sum_of_tokens(tiny):
    table, *notes = parts("neighbours", "<id 384> - <id 462> + <id 494>")
    rows = table_of(tiny)
    expected = cosines(rows, rows[384] - rows[462] + rows[494])
    order = [j for j in np.argsort(-expected) if j not in {384, 462, 494}][:10]
    assert column(table, "id") == order
    assert_allclose(column(table, "cosine"), expected[order], rtol=1e-5)
    assert table["title"] == "Nearest to ·mom - ·girl + ·boy by cosine"
    assert any("The tokens named are left out" in note["text"] for note in notes)


@pytest.mark.parametrize("centre", [[], ["--centre"]])
def test_tiny_knows_that_a_king_is_to_a_man_as_a_queen_to_a_woman(centre):
    (table, *notes), said = told("king", "-", "man", "+", "woman", *centre)
    assert column(table, "token")[0] == " queen"
    assert table["title"] == "Nearest to \u00b7king - \u00b7man + \u00b7woman by cosine"
    assert said == [f"{SPACED}' king', ' man', ' woman'"]
    assert ("--centre" in notes[-1]["text"]) == (not centre)


def test_a_sum_is_the_same_in_one_argument_or_in_several():
    whole = told("king - man + woman")
    assert told("king", "-", "man", "+", "woman") == whole
    assert told("king - man", "+", "woman") == whole
    assert told("king", "-", "man + woman") == whole


def test_words_with_spaces_in_quotes_or_by_id_stay():
    (table, *_), said = told('"king"', "-", " man", "+", "\u00b7woman", "-", "<id 462>", "+", "boy")
    shown = "king - \u00b7man + \u00b7woman - \u00b7girl + \u00b7boy"
    assert table["title"] == f"Nearest to {shown} by cosine"
    assert said[0] == f"{SPACED}' boy'"


def test_words_of_which_one_has_no_token_with_a_space_are_taken_alike():
    (table, *_), said = told("king", "-", "zy")  # no text begins a word with zy
    assert table["title"] == "Nearest to king - zy by cosine"
    assert not [line for line in said if line.startswith(SPACED)]


def test_a_sign_at_an_end_is_a_token():
    made = quietly("--", "-", "king", "+")
    assert made[0]["rows"] == ["-", "king", "+"]


def test_a_sum_beside_a_token():
    grid, one, two, *_ = quietly("king", "-", "man", "<id 384>")
    assert grid["rows"] == ["\u00b7king - \u00b7man", "\u00b7mom"]
    assert [part["name"] for part in (grid, one, two)] == ["similarity", "nearest_1", "nearest_2"]


def test_a_sum_of_ids_of_a_model_without_a_tokenizer():
    table, *_ = parts("neighbours", "5", "-", "3", "+", "<id 2>", *GPT2)
    assert table["title"] == "Nearest to <id 5> - <id 3> + <id 2> by cosine"


def test_a_token_copied_from_a_table():
    (table, *_), said = told("\u00b7mom")
    assert table["title"] == "Nearest to \u00b7mom (id 384) by cosine"
    assert said == ["note: TOKEN is ' mom' (id 384), which tables show as '\u00b7mom'"]


def test_what_is_added_and_taken_off_is_nothing():
    whole, *_ = parts("neighbours", "<id 384>", "--top", "9")
    table, *_ = parts("neighbours", "<id 703> - <id 703> + <id 384>", "--top", "9")
    kept = [row for row in whole["rows"] if row["id"] != 703]
    for a, b in zip(kept, table["rows"], strict=False):
        assert (a["id"], a["cosine"]) == (b["id"], b["cosine"])


def test_terms_keep_their_own_spaces_and_signs():
    spaced, *_ = quietly(" mom -  girl +  boy")
    quoted, *_ = quietly('" mom" - " girl" + " boy"')
    assert spaced == quoted
    assert spaced["title"].startswith("Nearest to ·mom - ·girl + ·boy ")
    for text, title in ((".", "."), ("-", "-"), ("a-b", "a")):
        result = run_cli(["neighbours", "--format", "json", "--", text])
        assert f'"title": "Nearest to {title} (id ' in result.text


def test_a_token_that_could_be_another_is_told():
    result = run_cli(["neighbours", "king"])
    assert result.status == 0
    assert result.err.startswith("note: TOKEN is 'king' (id ")


def test_the_output_table_of_an_untied_model():
    folder = family_folder("llama")
    model = gptscope.load(folder)
    assert not model.tied
    for name, stored in (("embedding", model.token_table), ("unembedding", model.output_table)):
        rows = np.asarray(stored, np.float64)
        table, note, *_ = parts(
            "neighbours", "5", "--model", folder, "--table", name, "--top", "40"
        )
        expected = cosines(rows, rows[5])
        assert_allclose(column(table, "cosine"), expected[column(table, "id")], atol=1e-6)
        assert note["text"] == f"The {name} of llama has 43 rows of {rows.shape[1]} numbers"


def test_rows_of_zeros_are_left_out_and_told(folder):
    rows = tensors_of("gpt2")[WTE].copy()
    rows[4:] = 0
    padded = ["--model", str(folder(tensors={WTE: rows}))]
    table, *notes = parts("neighbours", "1", *padded)
    assert sorted(column(table, "id")) == [0, 2, 3]
    said = f"{len(rows) - 4} rows are left out as well"
    assert [note for note in notes if note["text"].startswith(said)]
    sentence, _ = refused(run_cli(["neighbours", "5", *padded]), 2)
    assert sentence.startswith("the row of <id 5> is all zeros, or holds NaN or infinity")


def test_rows_that_are_equal_have_no_direction_from_their_mean(folder):
    same = {WTE: np.full_like(tensors_of("gpt2")[WTE], 0.1)}
    args = ["neighbours", "5", "--model", str(folder(tensors=same))]
    sentence, _ = refused(run_cli([*args, "--centre"]), 2)
    assert sentence == "<id 5> is the mean of all rows: it has no direction"
    assert run_cli(args).status == 0


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ([], "there is no token"),
        (["", *GPT2], "TOKEN '': this model has no tokenizer.json, so a token is given by its id"),
        ([""], "TOKEN is empty"),
        (["<id 99999>"], "token id 99999 is outside the vocabulary"),
        (["<id 384> - <id 384>"], "·mom - ·mom adds up to zeros: it has no direction"),
    ],
)
def test_what_cannot_be_looked_for(args, why):
    sentence, _ = refused(run_cli(["neighbours", *args]), 2)
    assert sentence.startswith(why)


@pytest.mark.parametrize("text", ["\u202e\u6f22<a>\n", "[/b]", "=1+1", "\x1b[31m"])
@pytest.mark.parametrize("fmt", ["table", "svg", "csv"])
def test_hostile_tokens_are_shown_not_sent(text, fmt):
    result = run_cli(["neighbours", "--format", fmt, "--", text, f"{text} - <id 384>"])
    assert result.status == 0
    assert not {"\u202e", "\x1b", "\r"} & set(result.text)


def test_the_model_is_named_and_no_text():
    answer = asked("neighbours", "<id 384>")
    assert (answer["model"]["name"], answer["input"]) == ("tiny", None)
