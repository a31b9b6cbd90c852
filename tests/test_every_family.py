# Every command on a micro model of every family, and of what only some cases have.

import json

import pytest

from gptscope.app import COMMANDS
from gptscope.engine.forward import WIRINGS
from gptscope.model.load import load
from tests.helpers.cli import needs, run_cli, text_commands
from tests.helpers.families import family_folder, one_of_each
from tests.test_schema import faults

CASES = sorted({*one_of_each(), "bloom-after-norm", "opt-350m", "phi-qk-norm", "stablelm-parallel"})
IDS = ["--ids", "1,2,3,4,5"]
OF_TEXTS = [name for name in text_commands() if name not in {"explain", "generate"}]
CALLS = {name: [name, *needs(name), *IDS] for name in OF_TEXTS} | {
    "steer": ["steer", "--from", "ids:1,2", "--from", "ids:3,1", "--to", "ids:4,5,6"],
    "positions": ["positions"],
    "params": ["params"],
    "neighbours": ["neighbours", "<id 5>"],
}
MORE = {
    "one head": ["attention", "--layer", "-1", "--head", "0", *IDS],
    "one token": ["attention", "--token", "4", *IDS],
    "every head": ["attention", "--all", *IDS],
    "scores": ["attention", "--stage", "scaled", "--last", "3", *IDS],
    "units of a token": ["mlp", "--layer", "-1", "--token", "2", *IDS],
    "numbers of a token": ["embeddings", "--token", "1", *IDS],
    "order, last layer": ["experiment order", "--layer", "-1", "--head", "-1", *IDS],
    "going on": ["generate", "--max-new-tokens", "3", *IDS],
    "a logit": ["explain", *IDS, "logits[-1]"],
    "a unit": ["explain", *IDS, "layers.1.mlp_act[4,3]"],
    "a weight": ["explain", *IDS, "layers.1.heads.1.weights[4,2]"],
    "the stream": ["explain", *IDS, "layers.1.output[4,0]"],
    "parts by token": ["attribute", "--by", "source", *IDS],
    "parts by unit": ["attribute", "--by", "neuron", *IDS],
    "parts by head of a difference": [
        *("attribute", "--by", "head", "--answer", "<id 5>", "--against", "<id 7>", *IDS)
    ],
    "parts set to zero": ["sweep", "--with", "zero", *IDS],
    "a path": ["sweep", "--from", "layers.0.heads.0", "--to", "layers.1.mlp", *IDS],
    "a lens of one token": ["lens", "--at", "-1", *IDS],
    "how far a lens is off": ["lens", "--show", "kl", *IDS],
    "heads of the weights": ["heads", "--weights-only"],
    "surprise in windows": ["surprise", "--window", "3", "--overlap", "1", *IDS],
    "every surprise": ["surprise", "--all", *IDS],
    "a hidden unit": ["neurons", "--layer", "0", "--unit", "1", *IDS],
    "before and after a head": ["compare", "-e", "layers.*.heads.0.out=mean", *IDS],
    "before and after a patch": [
        *("compare", "-e", "layers.0.output[-1]=from:ids:1,2,3,4,9", *IDS)
    ],
    "before and after no change": ["compare", "-e", "layers.1.output=*1", *IDS],
    "a sum of tokens": ["neighbours", "5", "-", "<id 3>", "+", "2", "--by", "dot", "--centre"],
    "a direction over all tokens": [
        *("steer", "--from", "ids:1,2", "--to", "ids:4,5,6", "--tokens", "all", "--layer", "0")
    ],
}


def called(args, case, fmt):
    first, *more = args
    result = run_cli([first, "--model", family_folder(case), *more, "--format", fmt])
    assert (result.status, result.err) == (0, "")
    return result


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("call", CALLS)
def test_every_command_works(case, call):
    assert "nan" not in called(CALLS[call], case, "table").text.lower()
    assert faults(json.loads(called(CALLS[call], case, "json").out)) == []


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("call", MORE)
def test_their_options_work(case, call):
    assert faults(json.loads(called(MORE[call], case, "json").out)) == []


def test_every_wiring_is_among_them():
    assert {load(family_folder(case)).spec.wiring for case in CASES} == set(WIRINGS)


def test_every_command_on_a_text_is_among_them():
    names = {args[0] for args in (*CALLS.values(), *MORE.values())}
    assert names >= {*text_commands(), "positions", "params", "neighbours", "steer"}
    assert names <= set(COMMANDS)
