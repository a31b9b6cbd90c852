import json
import math

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from gptscope.engine.sampling import probabilities, rank
from tests.helpers.cli import SENTENCE, asked, beside_notes, column, parts, refused, run_cli
from tests.helpers.families import family_folder, one_of_each
from tests.helpers.folders import tensors_of

EDIT = "layers.1.heads.0.out[2:]=zero"


@pytest.fixture(scope="module")
def edited(tiny, ids):
    return gptscope.trace(tiny, ids, edits=[EDIT])


@pytest.fixture(scope="module")
def view():
    return {part.get("title"): part for part in parts("compare", SENTENCE, "--edit", EDIT)}


def named(made, name):
    (found,) = (part for part in made if part.get("name") == name)
    return found


def of(view, start):
    (found,) = (part for title, part in view.items() if (title or "").startswith(start))
    return found


def facts(part):
    return part["facts"]


def test_where_the_passes_part(view):
    assert facts(view[""]) == {
        "first value that differs": "layers.1.heads.0.out",
        "at how many tokens": "4 of 6",
        "predictions that differ": "4 of 6",
    }


@pytest.mark.parametrize("at", [-1, 3])
def test_divergences_in_both_directions_and_units(at, trace, edited):
    p, q = (probabilities(t.logits[at]) for t in (trace, edited))
    (part,) = (
        part
        for part in parts("compare", SENTENCE, "--edit", EDIT, "--at", str(at))
        if part.get("title", "").startswith("How far apart the predictions after")
    )
    for row, (a, b) in zip(part["rows"], ((p, q), (q, p)), strict=True):
        nats = float((a * np.log(a / b)).sum())
        assert row["nats"] == pytest.approx(nats, rel=1e-6)
        assert row["bits"] == pytest.approx(nats / math.log(2), rel=1e-6)
    assert column(part, "divergence") == ["KL(before || after)", "KL(after || before)"]


def check_row(row, x, y):
    i = row["id"]
    p, q = probabilities(x)[i], probabilities(y)[i]
    assert (row["rank before"], row["rank after"]) == (rank(x, i), rank(y, i))
    assert row["probability before"] == pytest.approx(p)
    assert row["probability after"] == pytest.approx(q)
    assert row["change"] == pytest.approx(q - p)
    assert (row["logit before"], row["logit after"]) == pytest.approx((x[i], y[i]))


def test_the_likeliest_of_either_pass(view, trace, edited, tiny):
    table = of(view, "The next token after token 5")
    x, y = trace.logits[-1], edited.logits[-1]
    best = {int(i) for z in (x, y) for i in np.argsort(-z)[:5]}
    assert set(column(table, "id")) == best
    assert len(best) > 5
    for row in table["rows"]:
        check_row(row, x, y)
        assert row["token"] == tiny.tokenizer.text_of(row["id"])
    larger = [max(r["probability before"], r["probability after"]) for r in table["rows"]]
    assert larger == sorted(larger, reverse=True)


def test_answers_and_their_difference(tiny, trace, edited):
    args = ["--answer", " doll", "--against", " toys", "--at", "4", "--top", "2"]
    made = asked_quietly("compare", SENTENCE, "--edit", EDIT, *args)
    table = next(p for p in made if p.get("title", "").startswith("What was asked for"))
    x, y = trace.logits[4], edited.logits[4]
    ids = [tiny.tokenizer.encode(word)[-1] for word in (" doll", " toys")]
    assert column(table, "id") == ids
    for row in table["rows"]:
        check_row(row, x, y)
    part = named(made, "difference")
    assert part["title"] == "answer - against: logit of \u00b7doll less that of \u00b7toys"
    found = facts(part)
    before, after = (float(z[ids[0]]) - float(z[ids[1]]) for z in (x, y))
    assert found == pytest.approx({"before": before, "after": after, "change": after - before})


def test_what_was_asked_is_told_as_numbers(trace, tiny):
    edit = ["compare", SENTENCE, "--edit", EDIT]
    plain, of_one, of_two = (
        [[*row.values()][:4] for row in named(parts(*edit, *more), "asked")["rows"]]
        for more in ([], ["-a", "<id 5>"], ["-a", "<id 5>", "--against", "<id 7>", "--at", "2"])
    )
    best = int(trace.logits[-1].argmax())
    five, seven, first = (tiny.tokenizer.text_of(i) for i in (5, 7, best))
    assert plain == [[5, "likeliest", first, best]]
    assert of_one == [[5, "answer", five, 5]]
    assert of_two == [[2, "answer", five, 5], [2, "against", seven, 7]]
    (row,) = named(parts(*edit, "-a", "<id 5>"), "asked")["rows"]
    logits = trace.logits[-1]
    assert list(row)[4:] == ["logit", "probability", "rank"]
    assert row["logit"] == pytest.approx(logits[5])
    assert row["probability"] == pytest.approx(probabilities(logits)[5])
    assert row["rank"] == rank(logits, 5)
    assert "position   asked" not in run_cli([*edit, "-a", "<id 5>"]).text


def test_on_a_page_logits_have_a_table_of_their_own(trace, edited):
    call = ["compare", SENTENCE, "--edit", EDIT, "-a", "<id 5>"]
    text = run_cli(call, env={"COLUMNS": "200"}).text
    lines = text[text.index("Its logit") :].splitlines()
    assert lines[1].split() == ["token", "id", "logit", "before", "logit", "after", "change"]
    x, y = (float(t.logits[-1][5]) for t in (trace, edited))
    found = [float(word) for word in lines[3].split()[-3:]]
    assert found == pytest.approx([x, y, y - x], abs=6e-3)
    assert "Its logit" not in run_cli(call[:-2]).text


def test_without_an_answer_it_is_the_likeliest_before(trace):
    made = parts("compare", SENTENCE, "--edit", EDIT, "--against", "<id 5>")
    best = int(trace.logits[-1].argmax())
    assert column(named(made, "asked"), "id") == [best, 5]
    assert column(named(made, "answers"), "id") == [best, 5]


def asked_quietly(*args):
    return asked(*args)["parts"]


def test_how_far_each_part_is_moved(view, trace, edited):
    table = of(view, "How far values are moved at token 5")
    assert "from layers.1.attn_out on" in table["title"]
    assert column(table, "value")[0] == "layers.1.attn_out"
    assert column(table, "value")[-1] == "layers.3.output"
    for row in table["rows"]:
        x, y = trace[row["value"]], edited[row["value"]]
        far = np.linalg.norm(y - x, axis=1)
        shares = far / np.linalg.norm(x, axis=1)
        assert row["distance"] == pytest.approx(far[5], rel=1e-4)
        assert row["relative"] == pytest.approx(shares[5], rel=1e-4)
        assert row["most, relative"] == pytest.approx(shares.max(), rel=1e-4)
        assert int(row["at token"].split()[0]) == shares.argmax()
        assert row["tokens changed"] == np.count_nonzero(far) == 4


def test_the_grid_is_of_the_stream(view, trace, edited, labels):
    grid = of(view, "How far the stream is moved")
    steps = [f"layers.{i}.{key}" for i in range(1, 4) for key in ("resid_after_attn", "output")]
    assert grid["rows"] == steps  # nothing before the edit
    assert grid["title"].endswith(", from layers.1.resid_after_attn on")
    assert grid["columns"] == labels
    for name, values in zip(grid["rows"], grid["values"], strict=True):
        x, y = trace[name], edited[name]
        shares = np.linalg.norm(y - x, axis=1) / np.linalg.norm(x, axis=1)
        assert_allclose(values, shares, rtol=1e-4)
        assert values[:2] == [0, 0]  # nor there, to the last bit


def test_predictions_that_moved(view, trace, edited, tiny):
    table = of(view, "Predictions that moved")
    assert column(table, "position") == [2, 3, 4, 5]
    for row in table["rows"]:
        x, y = (t.logits[row["position"]] for t in (trace, edited))
        p, q = probabilities(x), probabilities(y)
        assert row["KL, bits"] == pytest.approx((p * np.log2(p / q)).sum(), rel=1e-5)
        assert row["best guess before"] == tiny.tokenizer.text_of(int(x.argmax()))
        assert row["best guess after"] == tiny.tokenizer.text_of(int(y.argmax()))


def notes(*args):
    return [p["text"] for p in asked("compare", *args)["parts"] if p["kind"] == "note"]


def numbers(value):
    if isinstance(value, dict | list):
        return [
            x for v in (value.values() if isinstance(value, dict) else value) for x in numbers(v)
        ]
    return [value] if isinstance(value, float) else []


@pytest.mark.parametrize("edit", ["layers.0.heads.1.weights=*1", "logits=*1", "mlp_out[2]=+0"])
def test_an_edit_that_changes_nothing_says_so(edit):
    made = parts("compare", SENTENCE, "--edit", edit)
    assert made[2]["text"].startswith("The edits change no number of this pass")
    assert facts(made[1])["first value that differs"] == "none"
    apart, likeliest = made[3:]
    assert set(numbers(apart["rows"])) == {0.0}
    assert set(column(likeliest, "change")) == {0.0}


def test_an_edit_that_nobody_reads_says_so():
    undone = ["--edit", "layers.0.mlp_out=*2", "--edit", f"layers.0.output=from:{SENTENCE}"]
    made = parts("compare", SENTENCE, *undone)
    assert made[2]["text"] == "The edits change layers.0.mlp_out, and no logit."
    assert [part for part in made if part["kind"] == "grid"] == []
    table = next(p for p in made if p.get("title", "").startswith("How far values are moved"))
    moved = [row["value"] for row in table["rows"] if row["tokens changed"]]
    assert moved == ["layers.0.mlp_out"]


def test_a_prediction_before_the_edit_says_where_to_look():
    said, *_ = notes(SENTENCE, "--edit", EDIT, "--at", "1")
    assert said.startswith("What follows token 1 ")
    assert said.endswith("--at 2 is the first that is.")


def test_logits_that_are_no_numbers():
    said, *_ = notes(SENTENCE, "--edit", "layers.2.ln2.variance=-1")
    assert said.startswith("With the edits the logits are not numbers")
    banned = parts("compare", SENTENCE, "--edit", "logits[-1,613]=-inf")
    assert named(banned, "divergence")["rows"][0]["bits"] == "Infinity"
    (row,) = (r for r in named(banned, "next")["rows"] if r["id"] == 613)
    assert (row["probability after"], row["rank after"]) == (0, 4096)


@pytest.fixture
def broken(folder):
    gain = np.array(tensors_of("gpt2")["transformer.h.1.ln_1.weight"])
    gain[3] = np.nan
    return str(folder(tensors={"transformer.h.1.ln_1.weight": gain}))


def broken_parts(broken, *args):
    call = ["compare", "--model", broken, "--ids", "3,1,4", "--format", "json", *args]
    result = run_cli(call)
    assert result.status == 0
    return json.loads(result.out)["parts"]


def test_what_is_no_number_in_either_pass_is_not_the_same(broken):
    made = broken_parts(broken, "--edit", "layers.0.mlp_out[1]=0")
    told = facts(named(made, "where"))
    assert told["predictions that are not numbers in either pass"] == "3 of 3"
    assert told["first value that differs"] == "layers.0.mlp_out"
    said = [part["text"] for part in made if part["kind"] == "note"]
    assert said[0].startswith("The edits change layers.0.mlp_out; the logits after 3 of 3 tokens")
    assert said[0].endswith("are not numbers in either pass, so that no change can be seen there.")
    assert said[1].startswith("The logits after token 2 ")
    *_, last = named(made, "values")["rows"]
    assert (last["distance"], last["relative"], last["tokens changed"]) == ("NaN", "NaN", None)
    grid = named(made, "stream")
    assert grid["rows"][0] == "layers.0.output"
    assert grid["values"][-1] == ["NaN"] * 3


def test_an_edit_after_numbers_went_wrong_is_not_said_to_change_nothing(broken):
    made = broken_parts(broken, "--edit", "layers.1.mlp_out=*1")
    assert facts(named(made, "where"))["first value that differs"] == "none"
    first = next(part["text"] for part in made if part["kind"] == "note")
    assert first.startswith("The edits change no number that can be compared; the logits after 3")


def test_no_answer_is_rated_by_what_is_no_number(broken):
    call = ["compare", "--model", broken, "--ids", "3,1,4", "--edit", "layers.0.mlp_out=0"]
    result = run_cli([*call, "--answer", "<id 5>"])
    assert result.status == 1
    assert "hold NaN, so no token can be rated" in result.err


def test_of_a_long_text_the_tokens_that_moved_most():
    text = "Lily wanted to play with her dog and they ran to the park to see a big red ball and a"
    whole = asked("compare", text, "--edit", "layers.0.mlp_out[2]=zero")
    grid = next(p for p in whole["parts"] if p["kind"] == "grid")
    n = len(whole["input"]["ids"])
    assert len(grid["columns"]) == n > 16
    table = run_cli(["compare", text, "--edit", "layers.0.mlp_out[2]=zero"])
    assert f"16 of {n} tokens, those whose prediction moves most" in table.text
    assert f"{n - 2 - 16} predictions more moved less: -f csv has all" in table.text


@pytest.mark.parametrize("case", one_of_each())
def test_every_family(case):
    made = parts(
        *("compare", "--ids", "1,2,3,4", "--model", family_folder(case)),
        *("--edit", "layers.1.output[2]=*2"),
    )
    grid = next(p for p in made if p["kind"] == "grid")
    assert grid["rows"][0] == "layers.1.output"
    assert grid["values"][0] == pytest.approx([0, 0, 1, 0])


def test_without_an_edit():
    said, hint = refused(run_cli(["compare", SENTENCE]), 2)
    assert said == "compare needs an --edit: what is to be changed"
    assert hint == "--edit layers.1.heads.0.out=zero"


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            ["-a", "<id 5>", "--against", "<id 5>"],
            "the answer and --against are the same token, 5",
        ),
        (["--at", "6"], "token 6 is out of range: this one has tokens 0 to 5"),
        (["--answer", ""], "--answer is empty"),
    ],
)
def test_what_is_refused(more, sentence):
    assert refused(run_cli(["compare", SENTENCE, "--edit", EDIT, *more]), 2)[0] == sentence


def test_a_token_of_hostile_text_is_shown_not_sent():
    result = run_cli(["compare", "a\x1b[31m[b]b", "--edit", EDIT.replace("[2:]", "")])
    assert (result.status, beside_notes(result.err)) == (0, [])
    assert "\x1b" not in result.text
