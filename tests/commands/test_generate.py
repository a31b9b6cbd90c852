import json
import shutil

import pytest
from numpy.testing import assert_allclose

import gptscope
from gptscope.model.shipped import shipped_folders
from tests.helpers.cli import SENTENCE, asked, column, parts, run_cli

FED = "tiny \u00b7 6 tokens: 643 414 266 337 331 322 (nothing prepended)\n"


def chosen(table):
    return [row for row in table["rows"] if row["chosen"] == "chosen"]


def drawn(*args):
    return [row["id"] for row in chosen(parts("generate", *args)[1])]


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        ([], {}),
        (["--seed", "7"], {"seed": 7}),
        (["--greedy"], {"temperature": 0.0}),
        (["--greedy", "--temperature", "3"], {"temperature": 0.0}),
        (["--temperature", "1.5", "--top-k", "500"], {"temperature": 1.5, "top_k": 500}),
        (["--top-p", "0.6"], {"top_p": 0.6}),
    ],
)
def test_tokens_are_those_of_the_library(tiny, ids, options, settings):
    made = gptscope.generate(tiny, ids, 8, **settings)
    assert drawn(SENTENCE, "-n", "8", *options) == list(made.ids)


def test_a_seed_draws_the_same_and_another_seed_something_else():
    texts = [drawn(SENTENCE, "-n", "8", "--seed", seed) for seed in ("1", "1", "2")]
    assert texts[0] == texts[1] != texts[2]


def test_greedy_takes_the_likeliest_of_next():
    first = column(parts("next", SENTENCE, "--top", "1")[0], "id")
    assert drawn(SENTENCE, "-n", "1", "--greedy", "--seed", "5") == first


@pytest.mark.parametrize("n", [1, 5])
def test_one_row_of_each_step_is_chosen(tiny, n):
    facts, table = parts("generate", SENTENCE, "-n", str(n))
    names = ["step", "id", "token", "probability", "chosen"]
    assert [head["name"] for head in table["columns"]] == names
    assert [row["step"] for row in chosen(table)] == list(range(n))
    assert set(column(table, "chosen")) == {"chosen", None}
    assert column(table, "token") == [tiny.tokenizer.text_of(i) for i in column(table, "id")]
    assert all(0 < p <= 1 for p in column(table, "probability"))
    told = facts["facts"]
    assert told["text"] == tiny.tokenizer.decode([row["id"] for row in chosen(table)])
    assert (told["new tokens"], told["stopped"]) == (n, "as many tokens as were asked for")
    settings = {key: told[key] for key in ("temperature", "top-k", "top-p", "seed")}
    assert settings == {"temperature": 0.8, "top-k": 40, "top-p": None, "seed": 0}


def test_candidates_are_the_likeliest(tiny, ids):
    _, table = parts("generate", SENTENCE, "-n", "1")
    (draw,) = gptscope.generate(tiny, ids, 1).draws
    likely = column(table, "probability")
    assert column(table, "id") == [i for i, _ in draw.candidates]
    assert_allclose(likely, [p for _, p in draw.candidates], rtol=1e-12)
    assert len(likely) == 5
    assert likely == sorted(likely, reverse=True)


def test_a_chosen_token_that_is_not_among_the_likeliest_is_the_last_row(tiny, ids):
    hot = ["--temperature", "3", "--top-k", "4000"]
    _, table = parts("generate", SENTENCE, "-n", "3", *hot)
    made = gptscope.generate(tiny, ids, 3, temperature=3.0, top_k=4000).draws
    outside = [draw.id not in dict(draw.candidates) for draw in made]
    assert any(outside)
    for step, (draw, out) in enumerate(zip(made, outside, strict=True)):
        rows = [row for row in table["rows"] if row["step"] == step]
        expected = [*draw.candidates, *[(draw.id, draw.probability)] * out]
        assert [row["id"] for row in rows] == [i for i, _ in expected]
        assert_allclose([row["probability"] for row in rows], [p for _, p in expected], rtol=1e-12)
        assert [row["id"] for row in chosen({"rows": rows})] == [draw.id]


def test_greedy_has_no_other_candidate():
    _, table = parts("generate", SENTENCE, "-n", "2", "--greedy")
    assert column(table, "step") == [0, 1]
    assert column(table, "probability") == [1.0, 1.0]
    assert column(table, "chosen") == ["chosen", "chosen"]


def test_the_text_is_streamed_after_what_was_given():
    told = parts("generate", SENTENCE, "-n", "12")[0]["facts"]
    result = run_cli(["generate", SENTENCE, "-n", "12"])
    assert result.text == SENTENCE + told["text"] + "\n"
    assert result.err == FED + "stopped: as many tokens as were asked for\n"


def test_the_text_of_ids_is_written_too():
    told = parts("generate", "--ids", "643,414,266,337,331,322", "-n", "3")[0]["facts"]
    result = run_cli(["generate", "--ids", "643,414,266,337,331,322", "-n", "3"])
    assert result.text == SENTENCE + told["text"] + "\n"
    assert result.err == FED + "stopped: as many tokens as were asked for\n"


def test_steps_are_a_table():
    result = run_cli(["generate", SENTENCE, "-n", "2", "--steps"])
    assert result.err == ""
    heads = ["step", "id", "token", "probability", "chosen"]
    assert heads in [line.split() for line in result.lines]
    assert result.text.startswith(FED)


@pytest.mark.parametrize("nothing", [[], [""]])
def test_without_a_text_a_story_begins(tiny, nothing):
    answer = asked("generate", *nothing, "-n", "6")
    assert answer["input"]["ids"] == [tiny.bos_id]
    assert answer["input"]["text"] is None
    assert answer["input"]["prepended"] == 1
    text = answer["parts"][0]["facts"]["text"]
    streamed = run_cli(["generate", *nothing, "-n", "6"])
    assert streamed.text == text + "\n"
    assert streamed.err.startswith("tiny \u00b7 1 token: 0 (1 prepended)\nstopped: ")


def test_the_context_is_filled_and_no_more():
    given = ",".join(["643"] * 125)
    facts, table = parts("generate", "--ids", given, "-n", "50", "--greedy")
    assert facts["facts"]["stopped"] == "the model's context is full"
    assert len(chosen(table)) == 3
    streamed = run_cli(["generate", "--ids", given, "-n", "50", "--greedy"])
    shown = " ".join(["643"] * 24)
    assert streamed.err == (
        f"tiny \u00b7 125 tokens: {shown} \u2026 (nothing prepended)\n"
        "stopped: the model's context is full\n"
    )


def test_the_end_token_ends_the_text_and_is_not_part_of_it(tmp_path):
    first, second = drawn(SENTENCE, "-n", "2", "--greedy")
    ending = shutil.copytree(shipped_folders()["tiny"], tmp_path / "ending")
    config = json.loads((ending / "config.json").read_text())
    (ending / "config.json").write_text(json.dumps({**config, "eos_token_id": second}))
    args = [SENTENCE, "--greedy", "--model", str(ending)]
    facts, table = parts("generate", *args)
    assert column(table, "id") == [first, second]
    assert facts["facts"]["stopped"] == "the model drew its end token"
    assert facts["facts"]["text"] == table["rows"][0]["token"]
    streamed = run_cli(["generate", *args])
    assert streamed.text == SENTENCE + facts["facts"]["text"] + "\n"
    fed = FED.replace("tiny", "ending")
    assert streamed.err == fed + "stopped: the model drew its end token\n"
