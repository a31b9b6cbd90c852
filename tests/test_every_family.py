# Every command on a micro model of every family, and of what only some cases have.

import json

import pytest

from gptscope.app import COMMANDS
from gptscope.engine.forward import WIRINGS
from gptscope.model.load import load
from tests.helpers.cli import run_cli, text_commands
from tests.helpers.families import family_folder, one_of_each
from tests.test_schema import faults

CASES = sorted({*one_of_each(), "bloom-after-norm", "opt-350m", "phi-qk-norm", "stablelm-parallel"})
IDS = ["--ids", "1,2,3,4,5"]
OF_TEXTS = [name for name in text_commands() if name not in {"explain", "generate"}]
CALLS = {
    **{name: [name, *IDS] for name in OF_TEXTS},
    "positions": ["positions"],
    "params": ["params"],
    "one head": ["attention", "--layer", "-1", "--head", "0", *IDS],
    "one token": ["attention", "--token", "4", *IDS],
    "every head": ["attention", "--all", *IDS],
    "scores": ["attention", "--stage", "scaled", "--last", "3", *IDS],
    "units of a token": ["mlp", "--layer", "-1", "--token", "2", *IDS],
    "numbers of a token": ["embeddings", "--token", "1", *IDS],
    "order, last layer": ["experiment order", "--layer", "-1", "--head", "-1", *IDS],
    "a logit": ["explain", *IDS, "logits[-1]"],
    "a unit": ["explain", *IDS, "layers.1.mlp_act[4,3]"],
    "a weight": ["explain", *IDS, "layers.1.heads.1.weights[4,2]"],
    "the stream": ["explain", *IDS, "layers.1.output[4,0]"],
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("call", CALLS)
def test_every_command_works(case, call):
    first, *more = CALLS[call]
    args = [first, "--model", family_folder(case), *more]
    table, answer = (run_cli([*args, "--format", fmt]) for fmt in ("table", "json"))
    assert (table.status, table.err) == (answer.status, answer.err) == (0, "")
    assert "nan" not in table.text.lower()
    assert faults(json.loads(answer.out)) == []


@pytest.mark.parametrize("case", CASES)
def test_it_goes_on(case):
    args = ["generate", "--model", family_folder(case), *IDS, "--max-new-tokens", "3"]
    answer = run_cli([*args, "--format", "json"])
    assert answer.status == 0
    assert faults(json.loads(answer.out)) == []


def test_every_wiring_is_among_them():
    assert {load(family_folder(case)).spec.wiring for case in CASES} == set(WIRINGS)


def test_every_command_on_a_text_is_among_them():
    called = {args[0] for args in CALLS.values()} | {"generate"}
    assert called >= {*text_commands(), "positions", "params"}
    assert called <= set(COMMANDS)
