import json
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gptscope.analysis.sweep import KINDS, METRICS, REPLACEMENTS
from gptscope.commands.sweep import Metric, What, With
from gptscope.commands.sweep_map import Looks, Map
from gptscope.engine.trace import trace
from tests.helpers.cli import asked, beside_notes, column, parts, refused, run_cli
from tests.helpers.families import family_folder
from tests.helpers.folders import GOLDEN, tensors_of

TEXT, CLEAN, CORRUPT = "Lily saw a cat. The", "Lily saw a cat. The", "Lily saw a dog. The"
CAT, DOG = 483, 490
BOTH = ["--clean", CLEAN, "--corrupt", CORRUPT]
ANSWERS = ["--answer", " cat", "--against", " dog"]
SHARED = ["--model", family_folder("llama"), "--clean", "ids:1,2,3,4", "--corrupt", "ids:1,5,3,4"]


def of_kind(found, kind):
    return [part for part in found if part["kind"] == kind]


def said(found):
    return " ".join(note["text"] for note in of_kind(found, "note"))


def grid_of(*args):
    (grid,) = of_kind(parts("sweep", *args), "grid")
    return grid


def difference(tiny, text, edits=()):
    logits = trace(tiny, tiny.tokenizer.encode(text), ["logits"], edits).logits[-1]
    return float(logits[CAT] - logits[DOG])


# Values taken away


def test_heads(tiny):
    grid = grid_of(TEXT, *ANSWERS)
    assert (len(grid["rows"]), grid["columns"]) == (4, [f"head {h}" for h in range(4)])
    before = difference(tiny, TEXT)
    for layer, head in ((0, 0), (2, 2), (3, 1)):
        after = difference(tiny, TEXT, [f"layers.{layer}.heads.{head}.out=mean"])
        assert_allclose(grid["values"][layer][head], after - before, atol=1e-5)


def test_zero_in_the_place(tiny):
    grid = grid_of(TEXT, *ANSWERS, "--with", "zero")
    after = difference(tiny, TEXT, ["layers.3.heads.1.out=zero"])
    assert_allclose(grid["values"][3][1], after - difference(tiny, TEXT), atol=1e-5)


def test_the_strongest_come_first():
    found = parts("sweep", TEXT, *ANSWERS, "--top", "3")
    table = of_kind(found, "table")[1]
    values = np.array(of_kind(found, "grid")[0]["values"]).ravel()
    expected = values[np.argsort(-np.abs(values))][:3]
    assert table["title"] == "The 3 strongest of 16"
    assert_allclose(column(table, "change"), expected)
    assert column(table, "changed")[0] == "layers.3.heads.1.out"


def test_layers_are_a_table_in_their_order(tiny):
    found = parts("sweep", TEXT, *ANSWERS, "--what", "mlp")
    assert of_kind(found, "grid") == []
    table = of_kind(found, "table")[1]
    assert column(table, "changed") == [f"layers.{layer}.mlp_out" for layer in range(4)]
    after = difference(tiny, TEXT, ["layers.1.mlp_out=mean"])
    assert_allclose(column(table, "change")[1], after - difference(tiny, TEXT), atol=1e-5)


def test_the_stream(tiny):
    found = parts("sweep", TEXT, *ANSWERS, "--what", "resid")
    grid = of_kind(found, "grid")[0]
    assert grid["rows"] == ["layer 0", "layer 1", "layer 2", "layer 3", "end"]
    assert grid["columns"] == ["Lily", " saw", " a", " cat", ".", " The"]
    after = difference(tiny, TEXT, ["layers.2.input[3]=mean"])
    assert_allclose(grid["values"][2][3], after - difference(tiny, TEXT), atol=1e-5)
    assert grid["values"][4][:5] == [0] * 5
    assert "end: as it leaves the last" in said(found)


def test_tokens_after_the_place_are_left_out_and_it_is_said():
    found = parts("sweep", TEXT, "--what", "resid", "--at", "2")
    assert of_kind(found, "grid")[0]["columns"] == ["Lily", " saw", " a"]
    assert "tokens after 2 are not seen from there" in said(found)
    every = parts("sweep", TEXT, "--what", "resid", "--at", "2", "--edit", "layers.0.input=mean")
    assert len(of_kind(every, "grid")[0]["columns"]) == 6
    assert "Left out" not in said(every)


def test_edits_are_made_in_every_pass(tiny):
    edit = "layers.1.heads.2.out=*3"
    answer = asked("sweep", TEXT, *ANSWERS, "--edit", edit)
    assert answer["edits"] == [edit]
    grid = of_kind(answer["parts"], "grid")[0]
    after = difference(tiny, TEXT, [edit, "layers.3.heads.1.out=mean"])
    before = difference(tiny, TEXT, [edit])
    assert_allclose(grid["values"][3][1], after - before, atol=1e-5)
    assert "The edits are made in every pass" in said(answer["parts"])


def test_kl_is_of_all_tokens(tiny):
    found = parts("sweep", TEXT, "--metric", "kl", "--with", "zero")
    values = np.array(of_kind(found, "grid")[0]["values"])
    assert np.all(values >= 0)
    ids = tiny.tokenizer.encode(TEXT)
    p, q = (
        np.exp(x) / np.exp(x).sum()
        for x in (
            np.float64(trace(tiny, ids, ["logits"], edits).logits[-1])
            for edits in ([], ["layers.0.heads.3.out=zero"])
        )
    )
    assert_allclose(values[0, 3], (p * np.log2(p / q)).sum(), rtol=1e-3)
    assert "0 bits where nothing changes" in said(found)


def test_what_was_asked_is_told_as_numbers():
    def told(*args):
        (table,) = (p for p in parts("sweep", *args) if p.get("name") == "asked")
        return [(row["position"], row["asked"], row["id"]) for row in table["rows"]]

    apart = (5, "answer - against", None)
    assert told(TEXT, *ANSWERS) == [(5, "answer", CAT), (5, "against", DOG), apart]
    assert told(TEXT, "--at", "2", "-a", "<id 5>") == [(2, "answer", 5)]
    assert told(*BOTH)[:2] == [(5, "likeliest, clean", CAT), (5, "likeliest, corrupt", DOG)]
    assert "position" not in run_cli(["sweep", TEXT]).text


def test_the_difference_of_two_answers_is_told(tiny):
    found = parts("sweep", TEXT, *ANSWERS)
    *_, last = of_kind(found, "table")[0]["rows"]
    assert (last["asked"], last["token"], last["id"]) == ("answer - against", None, None)
    assert_allclose(last["logit"], difference(tiny, TEXT), atol=1e-5)
    title = of_kind(found, "grid")[0]["title"]
    logits = "(logit of \u00b7cat less that of \u00b7dog)"
    assert title.startswith(f"Change of answer - against {logits}, with what each head")
    alone = of_kind(parts("sweep", TEXT), "grid")[0]["title"]
    assert alone.startswith("Change of the logit of \u00b7cat, with what each head")
    shares = of_kind(parts("sweep", TEXT, *ANSWERS, "--metric", "prob"), "table")[0]["rows"]
    assert len(shares) == 2


@pytest.mark.parametrize(
    ("args", "names"),
    [
        ([TEXT], ["asked", "effects", "strongest"]),
        ([TEXT, "--what", "mlp"], ["asked", "effects"]),
        (
            [*BOTH, "--direction", "both"],
            [
                *("asked", "runs", "texts"),
                *("denoise", "denoise_strongest", "noise", "noise_strongest"),
            ],
        ),
    ],
)
def test_parts_have_names(args, names):
    assert [p["name"] for p in parts("sweep", *args) if p["kind"] != "note"] == names


@pytest.mark.parametrize(
    ("args", "which"),
    [(["--ids", "3,1"], ""), (["--clean", "ids:3,1", "--corrupt", "ids:4,1"], " of the clean run")],
)
@pytest.mark.parametrize(
    "answer", [[], ["--answer", "<id 5>"], ["--answer", "<id 5>", "--at", "0"]]
)
def test_logits_that_are_no_numbers_are_refused(folder, args, which, answer):
    gain = tensors_of("gpt2")["transformer.h.1.ln_1.weight"] * np.nan
    path = str(folder(tensors={"transformer.h.1.ln_1.weight": gain}))
    result = run_cli(["sweep", "--model", path, *args, *answer])
    assert (result.status, result.out) == (1, b"")
    assert f"{which} hold NaN, so no token can be rated" in result.err


def test_a_path_over_one_token_says_that_it_is_nothing():
    ends = ["Lily", "--from", "layers.0.mlp", "--to", "logits"]
    assert "With one token, the mean over tokens" in said(parts("sweep", *ends))
    assert "With one token" not in said(parts("sweep", *ends, "--with", "zero"))
    assert "With one token" not in said(parts("sweep", TEXT, *ends[1:]))


def test_a_mean_over_one_token_says_that_it_is_nothing():
    found = parts("sweep", "Lily")
    assert not np.any(of_kind(found, "grid")[0]["values"])
    assert "With one token, the mean over tokens is the value itself" in said(found)


def test_without_an_answer_it_is_the_likeliest():
    table = of_kind(parts("sweep", TEXT), "table")[0]
    assert [table["rows"][0][name] for name in ("asked", "token", "rank")] == [
        "likeliest",
        " cat",
        1,
    ]


# Patched


def test_clean_values_in_the_corrupt_run(tiny):
    found = parts("sweep", *BOTH, "--what", "resid")
    grid = of_kind(found, "grid")[0]
    assert (grid["columns"], grid["column_positions"]) == ([" cat", ".", " The"], [3, 4, 5])
    assert grid["values"][0] == [1, 0, 0]
    assert grid["values"][-1] == [0, 0, 1]
    clean, corrupt = difference(tiny, CLEAN), difference(tiny, CORRUPT)
    kept = trace(tiny, tiny.tokenizer.encode(CLEAN))
    edit = ("layers.2.input[3]", kept["layers.2.input"][3])
    score = (difference(tiny, CORRUPT, [edit]) - corrupt) / (clean - corrupt)
    assert_allclose(grid["values"][2][0], score, atol=1e-5)
    assert "tokens 0 to 2 are the same in both runs" in said(found)


def test_corrupt_values_in_the_clean_run(tiny):
    found = parts("sweep", *BOTH, "--direction", "noise")
    clean, corrupt = difference(tiny, CLEAN), difference(tiny, CORRUPT)
    kept = trace(tiny, tiny.tokenizer.encode(CORRUPT))
    edit = ("layers.3.heads.1.out", kept["layers.3.heads.1.out"])
    score = (difference(tiny, CLEAN, [edit]) - corrupt) / (clean - corrupt)
    values = of_kind(found, "grid")[0]["values"]
    assert_allclose(values[3][1], score, atol=1e-5)
    flat = np.ravel(values)
    strongest = flat[np.argsort(-np.abs(flat - 1))][:10]
    assert_allclose(column(of_kind(found, "table")[2], "score"), strongest)


def test_both_directions():
    found = parts("sweep", *BOTH, "--direction", "both", "--what", "attn")
    denoise, noise = of_kind(found, "grid")
    assert denoise["title"].startswith("Clean values in the corrupt run: what attention adds")
    assert noise["title"].startswith("Corrupt values in the clean run")
    assert (denoise["columns"][0], noise["columns"][0]) == (" cat", " dog")


@pytest.mark.parametrize("what", ["resid", "attn", "mlp", "heads", "head-pattern", "head-value"])
def test_what_is_patched(what):
    values = np.array(grid_of(*BOTH, "--what", what)["values"])
    assert values.shape == {"resid": (5, 3), "attn": (4, 3), "mlp": (4, 3)}.get(what, (4, 4))
    assert np.any(np.abs(values) > 1e-3)


def test_the_likeliest_tokens_of_both_runs_are_asked_about():
    found = parts("sweep", *BOTH)
    table, differ, *_ = of_kind(found, "table")
    assert column(table, "token") == [" cat", " dog"] * 2
    assert column(table, "asked") == ["likeliest, clean", "likeliest, corrupt"] * 2
    assert column(table, "run") == ["clean", "clean", "corrupt", "corrupt"]
    assert differ["rows"] == [{"position": 3, "clean": " cat", "corrupt": " dog"}]
    numbers = of_kind(found, "facts")[0]["facts"]
    logits = column(table, "logit")
    assert_allclose(numbers["clean"], logits[0] - logits[1], rtol=1e-6)
    assert_allclose(numbers["clean - corrupt"], numbers["clean"] - numbers["corrupt"], rtol=1e-6)


def test_kl_is_from_the_clean_run():
    found = parts("sweep", *BOTH, "--metric", "kl", "--what", "resid")
    assert of_kind(found, "facts")[0]["facts"]["clean"] == 0
    assert of_kind(found, "grid")[0]["values"][-1] == [0, 0, 1]


def test_heads_that_share_their_values_are_one_column():
    model = asked("info", SHARED[1])["model"]
    grid = grid_of(*SHARED, "--what", "head-value")
    assert len(grid["columns"]) < model["n_heads"]
    assert grid["columns"][0] == "head 0-1"


def test_ids_in_the_place_of_texts():
    found = of_kind(parts("sweep", *SHARED, "--what", "resid"), "grid")[0]
    assert found["columns"][0] == "<id 2>"


# Along paths


def test_a_path():
    ends = ["--from", "layers.0.mlp", "--to", "layers.3.heads.1.v"]
    found = parts("sweep", *BOTH, *ends)
    table = of_kind(found, "table")[2]
    assert column(table, "changed") == ["layers.0.mlp to layers.3.heads.1.v"]
    assert 0.4 < column(table, "score")[0] < 0.7
    assert "feed-forward layers and norms are computed anew" in said(found)
    frozen = parts("sweep", *BOTH, *ends, "--freeze-mlp")
    assert "and so does each feed-forward layer; norms are computed anew" in said(frozen)
    assert column(of_kind(frozen, "table")[2], "score") != column(table, "score")


def test_many_senders_and_many_receivers():
    senders = grid_of(*BOTH, "--from", "layers.*.heads.*", "--to", "layers.2.heads.1.q")
    assert (senders["rows"], len(senders["columns"])) == (["layer 0", "layer 1"], 4)
    receivers = grid_of(*BOTH, "--from", "layers.1.mlp", "--to", "layers.*.heads.*.k")
    assert receivers["rows"] == ["layer 2", "layer 3"]
    both = grid_of(*BOTH, "--from", "layers.*.mlp", "--to", "layers.2:.mlp")
    assert (both["rows"], both["columns"]) == (["0.mlp", "1.mlp", "2.mlp"], ["2.mlp", "3.mlp"])
    assert both["values"][2][0] is None


def test_what_leads_to_the_logits(tiny):
    ends = ["--from", "layers.3.heads.*", "--to", "logits"]
    grid = grid_of(TEXT, *ANSWERS, *ends)
    after = difference(tiny, TEXT, ["layers.3.heads.1.out=mean"])
    assert_allclose(grid["values"][0][1], after - difference(tiny, TEXT), atol=1e-5)


def test_shared_keys_are_told_of():
    ends = ["--from", "layers.0.mlp", "--to", "layers.1.heads.0.k"]
    assert "heads share their keys and values" in said(parts("sweep", *SHARED, *ends))


# What there is to choose


def test_options_are_the_tables():
    assert [*What] == [*KINDS]
    assert [*With] == [*REPLACEMENTS]
    assert [*Metric] == [*METRICS]


ENTRIES = """
import sys
from gptscope.analysis import sweep_choices as choices
from gptscope.app import run

def spread(wanted, before):
    return lambda logits: float(logits.max() - logits.min())

choices.KINDS["middle"] = choices.Kind("resid_after_attn", "token", "the middle of a block")
choices.KINDS["early"] = choices.Kind("k", "head", "what is looked for", patched_only=True)
choices.REPLACEMENTS["twice"] = choices.Replacement(
    lambda site: lambda value, seen: 2 * value[site.index],
    "its double", "doubled", "twice what it is", "Each is doubled, of {n} tokens."
)
choices.METRICS["spread"] = choices.Metric(
    "spread", spread, is_distance=True, what="how wide", unit="logits", meaning="Wide is sure."
)
sys.exit(run(["sweep", *sys.argv[1:]]))
"""


def with_entries(*args):
    made = [sys.executable, "-c", ENTRIES, *args]
    return subprocess.run(made, capture_output=True, encoding="utf-8", check=False)


def test_an_entry_is_all_that_is_needed(tiny):
    options = ["--what", "middle", "--with", "twice", "--metric", "spread"]
    answer = json.loads(with_entries(TEXT, *options, "-f", "json").stdout)["parts"]
    grid = of_kind(answer, "grid")[0]
    assert grid["rows"] == [f"layer {layer}" for layer in range(4)]
    what = "spread from the unedited pass, in logits, with the middle of a block doubled"
    assert grid["title"].startswith(what)
    ids = tiny.tokenizer.encode(TEXT)
    before, after = (
        np.ptp(trace(tiny, ids, ["logits"], edits).logits[-1])
        for edits in ([], ["layers.1.resid_after_attn[3]=*2"])
    )
    assert_allclose(grid["values"][1][3], after - before, atol=1e-5)
    assert "Each is doubled, of 6 tokens." in said(answer)
    assert "Wide is sure." in said(answer)


def test_the_words_of_an_entry():
    told = " ".join(with_entries("--help").stdout.replace("\u2502", " ").split())
    for word in ("middle", "early", "twice", "spread", "or its double.", "spread: how wide."):
        assert word in told
    refusal = with_entries(TEXT, "--what", "early").stderr
    assert "--what early needs --clean and --corrupt" in refusal
    refusal = with_entries(TEXT, "--metric", "spread", "--answer", " cat").stderr
    assert "--metric spread compares all tokens" in refusal
    path = [TEXT, "--from", "layers.0.mlp", "--to", "logits", "--with", "twice", "-f", "json"]
    found = json.loads(with_entries(*path).stdout)["parts"]
    assert "the sender gives twice what it is." in said(found)
    assert " doubled" in of_kind(found, "table")[-1]["title"]


# What does not go


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (["--clean", "a b"], "--clean and --corrupt go together"),
        ([*BOTH, "--with", "zero"], "--with and --clean do not go together"),
        ([TEXT, *BOTH], "--clean and --corrupt are the texts: give no other beside them"),
        (["--clean", TEXT, "--corrupt", TEXT], "--clean and --corrupt are the same tokens"),
        ([TEXT, "--direction", "noise"], "--direction needs --clean and --corrupt"),
        ([TEXT, "--what", "head-value"], "--what head-value needs --clean and --corrupt"),
        ([TEXT, "--from", "layers.0.mlp"], "--from and --to go together"),
        ([TEXT, "--freeze-mlp"], "--freeze-mlp needs --from and --to"),
        (
            [TEXT, "--what", "mlp", "--from", "layers.0.mlp", "--to", "logits"],
            "--what and --from do not go together",
        ),
        ([TEXT, "--from", "layers.2.mlp", "--to", "layers.2.heads.0"], "no path leads from"),
        ([TEXT, "--from", "wte", "--to", "logits"], "--from: 'wte' is no part of a model"),
        ([TEXT, "--metric", "kl", "--answer", " cat"], "--metric kl compares all tokens"),
        ([TEXT, "--answer", " cat", "--against", " cat"], "the answer and --against are the same"),
        ([TEXT, "--at", "6"], "token 6 is out of range"),
        ([*BOTH, "--at", "1"], "is the same|in both runs: there is nothing to restore"),
    ],
)
def test_refused(args, why):
    sentence, _ = refused(run_cli(["sweep", *args]), 2)
    assert any(one in sentence for one in why.split("|"))


def test_texts_of_different_lengths_are_shown_side_by_side():
    result = run_cli(["sweep", "--clean", "Lily saw a cat.", "--corrupt", "Lily saw a big dog."])
    sentence, hint = refused(result, 2)
    assert sentence == (
        "--clean has 5 tokens and --corrupt 6, and each must stand against one of the other; from "
        "token 3 on they are ·cat . | ·big ·dog ."
    )
    assert "gptscope tokens" in hint


def test_one_token_likeliest_in_both_runs_is_said():
    result = parts("sweep", "--clean", "Lily wanted to", "--corrupt", "Tom wanted to")
    assert "Both runs find the same token likeliest" in said(result)


def test_what_is_hostile_is_shown_and_not_sent():
    result = run_cli(["sweep", "--clean", "a\x1b[31m b", "--corrupt", "a\x1b[32m b"])
    assert result.status == 0
    assert "\x1b" not in result.text
    assert all("\x1b" not in line for line in beside_notes(result.err))


def test_numbers_that_went_wrong_come_first():
    values = np.array([[1.0, np.nan], [-2.0, 0.0]])
    names = [["a", "b"], ["c", "d"]]
    table = Map("t", ("r", "s"), ("x", "y"), names, values, Looks("change")).table(3)
    assert [row[0] for row in table.rows] == ["b", "c", "a"]


def test_a_model_that_sees_what_comes_later():
    found = parts("sweep", "--model", str(GOLDEN / "toy-unmasked"), "--ids", "3,1,4", "--at", "0")
    assert np.all(np.array(of_kind(found, "grid")[0]["values"]) != 0)
    args = ["--model", str(GOLDEN / "toy-unmasked"), "--ids", "3,1,4", "--at", "0"]
    assert len(grid_of(*args, "--what", "resid")["columns"]) == 3
