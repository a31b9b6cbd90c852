import json
import shutil

import pytest
from numpy.testing import assert_allclose

import gptscope
from gptscope.model.shipped import shipped_folders
from tests.helpers.cli import SENTENCE, asked, column, parts, run_cli


def drawn(*args):
    return column(parts("generate", *args)[1], "id")


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
def test_a_row_for_each_draw(tiny, n):
    facts, table = parts("generate", SENTENCE, "-n", str(n))
    assert column(table, "step") == list(range(n))
    assert column(table, "token") == [tiny.tokenizer.text_of(i) for i in column(table, "id")]
    assert all(0 < p <= 1 for p in column(table, "probability"))
    told = facts["facts"]
    assert told["text"] == tiny.tokenizer.decode(column(table, "id"))
    assert (told["new tokens"], told["stopped"]) == (n, "as many tokens as were asked for")
    settings = {key: told[key] for key in ("temperature", "top-k", "top-p", "seed")}
    assert settings == {"temperature": 0.8, "top-k": 40, "top-p": None, "seed": 0}


def test_candidates_are_the_likeliest(tiny, ids):
    _, table = parts("generate", SENTENCE, "-n", "1")
    (draw,) = gptscope.generate(tiny, ids, 1).draws
    likely = [
        float(word.split()[-1]) for word in table["rows"][0]["likeliest candidates"].split(", ")
    ]
    assert_allclose(likely, [p for _, p in draw.candidates], atol=0.00501)
    assert likely == sorted(likely, reverse=True)


def test_the_text_is_streamed_after_what_was_given():
    told = parts("generate", SENTENCE, "-n", "12")[0]["facts"]
    result = run_cli(["generate", SENTENCE, "-n", "12"])
    assert result.text == SENTENCE + told["text"] + "\n"
    assert result.err == "stopped: as many tokens as were asked for\n"


def test_steps_are_a_table():
    result = run_cli(["generate", SENTENCE, "-n", "2", "--steps"])
    assert result.err == ""
    assert "likeliest candidates" in result.text
    assert result.text.startswith("tiny \u00b7 6 tokens")


@pytest.mark.parametrize("nothing", [[], [""]])
def test_without_a_text_a_story_begins(tiny, nothing):
    answer = asked("generate", *nothing, "-n", "6")
    assert answer["input"]["ids"] == [tiny.bos_id]
    assert answer["input"]["text"] is None
    assert answer["input"]["prepended"] == 1
    text = answer["parts"][0]["facts"]["text"]
    assert run_cli(["generate", *nothing, "-n", "6"]).text == text + "\n"


def test_the_context_is_filled_and_no_more():
    given = ",".join(["643"] * 125)
    facts, table = parts("generate", "--ids", given, "-n", "50", "--greedy")
    assert facts["facts"]["stopped"] == "the model's context is full"
    assert len(table["rows"]) == 3
    streamed = run_cli(["generate", "--ids", given, "-n", "50", "--greedy"])
    assert streamed.err == "stopped: the model's context is full\n"


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
    assert streamed.err == "stopped: the model drew its end token\n"
