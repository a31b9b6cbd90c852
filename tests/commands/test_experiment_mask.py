import io
import json
import math
import shutil
import subprocess
import sys
from functools import cache, partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from rich.cells import cell_len

import gptscope
from gptscope.analysis.grammar import toy_grammar
from gptscope.analysis.mask import Loss, Measured, fresh
from gptscope.commands import experiment_mask, progress
from gptscope.engine.ops import softmax
from gptscope.model.shipped import shipped_folders
from tests.helpers.cli import column, refused, run_cli

MODELS = shipped_folders()["toy"].parent
CALL = ("experiment", "mask")
FEW = ("--sentences", "30")
MEASURED = [
    "masked model",
    "entropy of the grammar",
    "place and last word alone",
    "unmasked, looking ahead",
    "unmasked, mask put on",
    "unmasked, later words absent",
    "all 12 words alike, ln 12",
]


@cache
def answer(*args):
    result = run_cli([*CALL, "--format", "json", *args])
    assert (result.status, result.err) == (0, "")
    view = json.loads(result.out)
    assert (view["command"], view["model"], view["input"]) == ("experiment mask", None, None)
    return view["parts"]


# What is measured


def test_it_comes_out_as_the_lesson_says():
    table, note, chances, about = answer()
    found = dict(zip(column(table, "measured"), column(table, "nats per word"), strict=True))
    errors = column(table, "standard error")
    assert list(found) == MEASURED
    masked, entropy, last, ahead, writing, absent, even = found.values()
    assert abs(masked - entropy) < 0.01
    assert round(entropy, 3) == 0.526
    assert round(last, 3) == 0.690
    assert ahead < 0.1 < entropy
    assert min(writing, absent) > even == math.log(12)
    assert [error is None for error in errors] == [False, True, True, False, False, False, True]
    assert column(table, "compared") == [
        "within 0.01 of the entropy",
        "the least that is possible",
        "the least without looking further back",
        "far below the entropy (the lesson has 0.059)",
        "worse than ln 12 (the lesson has 3.088)",
        "worse than ln 12",
        "knowing nothing",
    ]
    assert "learned to copy it" in note["text"]
    assert note["text"].endswith("worse than to take all words as equally likely.")
    assert column(chances, "next word")[:3] == ["fish", "bone", "seed"]
    assert about["facts"] == {
        "models": "shipped with gptscope",
        "sentences drawn": 4000,
        "different ones among them": 1730,
        "seed of the draw": 2017,
        "kept out of training": 3375,
        "words predicted in each": 17,
    }


@pytest.mark.parametrize("seed", [2017, 5])
def test_losses_are_means_over_the_sentences_that_were_drawn(seed):
    table, *_, about = answer(*FEW, "--seed", str(seed))
    drawn = fresh(toy_grammar(), 30, seed)
    sentences = np.repeat(drawn.sentences, drawn.counts, axis=0)
    for row, name in (("masked model", "toy"), ("unmasked, looking ahead", "toy-unmasked")):
        model = gptscope.load(name)
        each = [
            -np.log(softmax(gptscope.trace(model, s[:-1]).logits)[np.arange(17), s[1:]]).mean()
            for s in sentences
        ]
        (shown,) = (r for r in table["rows"] if r["measured"] == row)
        assert shown["nats per word"] == pytest.approx(np.mean(each), rel=1e-4)
        error = np.std(each, ddof=1) / math.sqrt(30)
        assert shown["standard error"] == pytest.approx(error, rel=0.02)
    assert about["facts"]["sentences drawn"] == 30
    assert about["facts"]["different ones among them"] == len(drawn.counts)


def test_the_example_is_what_each_model_says():
    *_, chances, _ = answer(*FEW)
    assert chances["title"] == (
        "After 'the cat eats the' comes 'fish': the chance of each word (1% or more)"
    )
    toy = gptscope.load("toy")
    shown = dict(zip(column(chances, "next word"), column(chances, "masked"), strict=True))
    expected = softmax(gptscope.trace(toy, toy.tokenizer.encode("the cat eats the")).logits[-1])
    for word, chance in shown.items():
        assert chance == pytest.approx(expected[toy.tokenizer.encode(word)[0]], rel=1e-4)
    fish = chances["rows"][0]
    assert (fish["next word"], fish["grammar"]) == ("fish", 0.6)
    assert fish["unmasked, looking ahead"] > 0.99
    assert fish["unmasked, mask put on"] < 0.1 < fish["masked"]


def test_a_folder_of_models(tmp_path):
    for name in ("toy", "toy-unmasked"):
        shutil.copytree(MODELS / name, tmp_path / name)
    table, *_, about = answer(*FEW, "--models", str(tmp_path))
    shipped, *_ = answer(*FEW)
    assert table == shipped
    assert about["facts"]["models"] == str(tmp_path)
    shutil.rmtree(tmp_path / "toy-unmasked")
    shutil.copytree(MODELS / "toy", tmp_path / "toy-unmasked")
    said, _ = refused(run_cli([*CALL, "--models", str(tmp_path)]), 1)
    assert said == "toy-unmasked has a mask; it should be a model with none"


# In words


def measured(masked=0.53, ahead=0.001, writing=3.4, absent=3.5):
    return Measured(*(Loss(mean, 0.01) for mean in (masked, ahead, writing, absent)))


def test_what_does_not_come_out_is_said():
    found = measured(masked=0.6, ahead=0.3, writing=2, absent=float("nan"))
    table = experiment_mask.losses(found, 0.526, 0.69, 12)
    assert [row[-1] for row in table.rows if row[2] is not None] == [
        "not within 0.01 of the entropy",
        "not far below the entropy (the lesson has 0.059)",
        "not worse than ln 12 (the lesson has 3.088)",
        "not worse than ln 12",
    ]


@pytest.mark.parametrize(
    ("found", "ending"),
    [
        (measured(), "what it says is worse than to take all words as equally likely."),
        (measured(writing=1), "that word is not there yet, and there is nothing to copy."),
        (measured(ahead=0.6), "More steps of training would teach it."),
        (measured(ahead=float("nan")), "More steps of training would teach it."),
    ],
)
def test_the_sentence_follows_the_numbers(found, ending):
    assert experiment_mask.why(found, 0.526, math.log(12)).endswith(ending)


# The screen


@pytest.mark.parametrize("width", [40, 80])
def test_no_line_is_wider_than_the_screen(width):
    lines = run_cli([*CALL, *FEW], env={"COLUMNS": str(width)}).lines
    assert [line for line in lines if cell_len(line) > width] == []


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("to", "second", "bar"),
    [(Terminal, 0.05, False), (Terminal, 0.3, True), (io.StringIO, 0.3, False)],
)
def test_a_bar_appears_on_a_terminal_after_a_second(monkeypatch, to, second, bar):
    clock, err = SimpleNamespace(monotonic=partial(next, count(step=second))), to()
    monkeypatch.setattr("gptscope.commands.progress.time", clock)
    monkeypatch.setattr("sys.stderr", err)
    with progress.progress(100) as tick:
        for _ in range(10):
            tick(10)
    assert ("measuring" in err.getvalue()) == ("100%" in err.getvalue()) == bar
    assert bool(err.getvalue()) == bar


def test_a_bar_needs_no_standard_error(monkeypatch):
    monkeypatch.setattr("sys.stderr", None)
    with progress.progress(1) as tick:
        tick(1)


# Training


@pytest.fixture
def training(monkeypatch):
    calls = []

    def run(command, **settings):
        calls.append(command)
        assert settings == {"stdout": subprocess.DEVNULL, "check": False}
        out = Path(command[command.index("--out") + 1])
        for name in ("toy", "toy-unmasked"):
            shutil.copytree(MODELS / name, out / name)
        return subprocess.CompletedProcess(command, run.status)

    run.status = 0
    monkeypatch.setattr("gptscope.commands.retraining.find_spec", lambda _: "there")
    monkeypatch.setattr("gptscope.commands.retraining.subprocess.run", run)
    return run, calls


def test_retrain_trains_elsewhere_and_leaves_nothing(training):
    _, calls = training
    answer.cache_clear()
    *_, about = answer(*FEW, "--retrain", "--steps", "3", "--train-seed", "8")
    ((python, script, *options),) = calls
    assert (python, script) == (sys.executable, str(MODELS / "train_toy.py"))
    assert options[::2] == ["--out", "--steps", "--seed"]
    folder, *numbers = options[1::2]
    assert numbers == ["3", "8"]
    assert not Path(folder).exists()
    assert about["facts"]["models"] == "trained anew"


def test_retrain_into_a_folder_keeps_it(training, tmp_path):
    _, calls = training
    folder = tmp_path / "mine"
    *_, about = answer(*FEW, "--retrain", "--models", str(folder))
    assert calls[0][2:] == ["--out", str(folder), "--steps", "4000", "--seed", "0"]
    assert about["facts"]["models"] == str(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["toy", "toy-unmasked"]
    said, hint = refused(run_cli([*CALL, "--retrain", "--models", str(folder)]), 2)
    assert said == f"{folder / 'toy'} is there already"
    assert hint == "--force overwrites it"


@pytest.mark.parametrize("status", [130, -2])
def test_an_interrupted_training(training, status):
    run, _ = training
    run.status = status
    result = run_cli([*CALL, "--retrain"])
    assert (result.status, result.out, result.err) == (130, b"", "error: interrupted\n")


def test_a_training_that_fails(training):
    run, _ = training
    run.status = 7
    said, _ = refused(run_cli([*CALL, "--retrain"]), 1)
    assert said == "the training failed with exit status 7"


@pytest.mark.parametrize(
    ("there", "missing"), [((), "torch and tqdm"), (("torch",), "tqdm"), (("tqdm",), "torch")]
)
def test_what_training_needs_is_named(monkeypatch, there, missing):
    found = dict.fromkeys(there, "there")
    monkeypatch.setattr("gptscope.commands.retraining.find_spec", found.get)
    said, hint = refused(run_cli([*CALL, "--retrain"]), 1)
    assert said == f"--retrain needs {missing}"
    assert hint == 'pip install "gptscope[train]"'


# What is refused


@pytest.mark.parametrize(
    ("args", "match"),
    [
        (["--steps", "3"], "--steps and --train-seed go with --retrain"),
        (["--train-seed", "0"], "--steps and --train-seed go with --retrain"),
        (["--sentences", "1"], "Invalid value for '--sentences': 1 is not in the range"),
        (["--seed", "-1"], "Invalid value for '--seed': -1 is not in the range"),
    ],
)
def test_a_wrong_call(args, match):
    said, _ = refused(run_cli([*CALL, *args]), 2)
    assert said.startswith(match)


def test_no_models_there(tmp_path):
    said, _ = refused(run_cli([*CALL, "--models", str(tmp_path)]), 1)
    assert said == f"there is no model at {tmp_path / 'toy'}"
