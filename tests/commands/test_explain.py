import pytest
from rich.cells import cell_len

import gptscope
from tests.helpers.cli import SENTENCE, asked, column, parts, refused, run_cli
from tests.helpers.families import family_folder
from tests.helpers.folders import GOLDEN


def test_the_number_its_meaning_and_its_tokens(trace):
    head, *_ = parts("explain", SENTENCE, "layers.0.heads.0.weights[5,0]")
    assert head["title"] == "layers.0.heads.0.weights[5,0]"
    facts = head["facts"]
    assert facts["value"] == pytest.approx(trace["layers.0.heads.0.weights"][5, 0])
    assert facts["what it is"].startswith("softmax of each row")
    assert (facts["token"], facts["reads from"]) == ("5 \u00b7her", "0 Lily")
    assert facts["the steps below give"] == pytest.approx(facts["value"], rel=1e-6)
    assert facts["difference"] == facts["value"] - facts["the steps below give"]


def test_a_long_sum_shows_the_largest_and_the_rest(trace):
    _, table, steps, *_ = parts("explain", SENTENCE, "layers.1.mlp_hidden[5,3]", "--top", "5")
    *shown, rest, bias, total = table["rows"]
    sizes = [abs(row["product"]) for row in shown]
    assert sizes == sorted(sizes, reverse=True)
    assert (len(shown), rest["dimension"], bias["dimension"]) == (5, "the other 123", "bias")
    again = sum(row["product"] for row in (*shown, rest, bias))
    assert again == pytest.approx(total["product"])
    assert total["product"] == pytest.approx(trace.layers[1].mlp_hidden[5, 3], rel=1e-4)
    assert [row["step"] for row in steps["rows"]] == ["layers.1.mlp_hidden", "remainder"]
    assert table["title"] == (
        "layers.1.mlp_hidden: a sum of 128 terms, layers.1.ln2.out[5,i] x weight[i,3] + bias"
    )


@pytest.mark.parametrize("option", [["--temperature", "2"], ["--top-k", "3"], ["--top-p", "0.5"]])
def test_settings_are_for_probabilities(option):
    said, _ = refused(run_cli(["explain", SENTENCE, "logits[5]", *option]), 2)
    assert said == "--temperature, --top-k and --top-p count for probabilities alone"


def test_a_sum_that_fits_is_shown_whole():
    table = parts("explain", SENTENCE, "layers.1.heads.0.out[5,3]")[1]
    assert column(table, "token")[:-1] == [
        "0 Lily",
        "1 \u00b7wanted",
        "2 \u00b7to",
        "3 \u00b7play",
        "4 \u00b7with",
        "5 \u00b7her",
    ]


def test_the_parts_of_the_stream_are_all_shown_in_order():
    table = parts("explain", SENTENCE, "layers.3.output[5,3]", "--top", "1")[1]
    assert len(table["rows"]) == 2 + 2 * 4 + 1
    assert column(table, "part")[:2] == ["token_embeddings", "position_embeddings"]


def test_a_whole_row_of_weights_with_nothing_where_it_is_hidden(trace):
    row = parts("explain", SENTENCE, "layers.0.heads.1.weights[3,1]")[3]
    weights = column(row, "weight")
    assert weights[:4] == pytest.approx(trace.layers[0].heads[1].weights[3, :4].tolist())
    assert weights[4:] == [None, None]


def test_a_long_row_shows_the_largest_and_the_one_explained():
    text = "Lily and her dog " * 6
    row = parts("explain", text, "layers.0.heads.1.weights[-1,0]", "--top", "2")[3]
    positions = column(row, "position")
    assert (len(positions) <= 4, positions[0]) == (True, 0)
    assert row["title"].startswith("The whole row, ")
    assert "left out (--top shows more)" in row["title"]


def test_settings_count_for_probabilities(trace):
    answer = asked("explain", SENTENCE, "probabilities[5]", "--temperature", "0.5", "--top-k", "3")
    expected = gptscope.probabilities(trace.logits[5], 0.5, 3).max()
    assert answer["parts"][0]["facts"]["value"] == pytest.approx(expected)


def test_the_address_alone_is_enough_with_ids():
    ids = ["--ids", "643,414"]
    answer = asked("explain", *ids, "logits[1]")
    assert answer["input"]["ids"] == [643, 414]
    assert answer == asked("explain", "--ids=643,414", "logits[-1]")


@pytest.mark.parametrize("args", [[], ["--ids", "1,2"]])
def test_an_address_is_needed(args):
    said, hint = refused(run_cli(["explain", *args]), 2)
    assert said == "there is no address of a number"
    assert hint == "for example layers.0.heads.0.weights[5,0]"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("layers.0.output", "layers.0.output is not the address of a number"),
        ("layers.7.output[0,0]", "layer 7 is out of range: this one has layers 0 to 3"),
        ("layers.0.output[9,0]", "token 9 is out of range: this one has tokens 0 to 5"),
        ("x\x1b[0]", "no value is called x<0x1B>"),
    ],
)
def test_what_is_no_number_is_refused(address, said):
    assert refused(run_cli(["explain", SENTENCE, address]), 2)[0] == said


@pytest.mark.parametrize(
    "address",
    ["layers.0.heads.0.weights[5,0]", "layers.1.ln1.out[5,0]", "probabilities[5]", "logits[5]"],
)
def test_nothing_is_wider_than_a_narrow_screen(address):
    result = run_cli(["explain", SENTENCE, address], env={"COLUMNS": "40"})
    assert [line for line in result.lines if cell_len(line) > 40] == []


def test_a_rotary_pair():
    model = str(GOLDEN / "toy-rotary")
    steps = parts("explain", "--model", model, "--ids", "3,1,4", "layers.1.heads.0.q[2,8]")[2]
    values = {row["step"]: row["value"] for row in steps["rows"]}
    assert values["angle"] == pytest.approx(2 * values["speed"])
    assert values["q"] == pytest.approx(values["a"] * values["sin"] + values["b"] * values["cos"])


def explained(case, address):
    found = parts("explain", "--model", family_folder(case), "--ids", "1,2,3,4", address)
    return found[0]["facts"]["what it is"], [part["text"] for part in found if "text" in part]


def test_heads_that_share_keys_are_told():
    _, said = explained("llama-grouped", "layers.0.heads.3.weights[3,1]")
    assert said[0] == "Heads 3-5 share key-value head 1"
    assert len(explained("llama-grouped", "layers.0.heads.3.q[3,1]")[1]) == 1
    assert len(explained("gptj", "layers.0.heads.1.weights[3,1]")[1]) == 1


def test_a_meaning_is_that_of_the_model():
    gated, _ = explained("llama-grouped", "layers.0.mlp_act[3,1]")
    assert gated == "hidden units after their gates: the activated gate times the unit"
    assert explained("gptj", "layers.0.mlp_act[3,1]")[0] == "hidden units after activation"
    assert explained("olmo2", "layers.0.ln1.out[3,1]")[0].endswith("normalized * gain")
    assert explained("gptj", "layers.0.ln1.out[3,1]")[0].endswith("normalized * gain + shift")
