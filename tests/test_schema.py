import json
from pathlib import Path

import numpy as np
import pytest
from jsonschema import Draft202012Validator

import gptscope.render
from gptscope.app import COMMANDS
from gptscope.render.as_json import SCHEMA, render
from gptscope.render.screen import Screen
from gptscope.view import Column, Facts, Passage, Sheet, Table, View
from tests.helpers.cli import SENTENCE, asked, needs, text_commands
from tests.helpers.folders import GOLDEN
from tests.helpers.views import EVERYTHING, INF, LENS, NAN, NOTE, PASSAGE, grid, view
from tests.test_contract import CALLS, VARIANTS

RULES = json.loads(Path(gptscope.render.__file__).with_name("schema.json").read_text("utf-8"))
GRID = {"kind": "grid", "title": "", "rows": [], "columns": [], "values": []}
PASSED = {"kind": "passage", "title": "", "tokens": ["a"], "values": [None]}
VALIDATOR = Draft202012Validator(RULES)
MODELS = {
    "toy": ["--model", "toy", "the cat eats the fish"],
    "toy-rotary": ["--model", str(GOLDEN / "toy-rotary"), "--ids", "1,2,3"],
    "float64": ["--dtype", "float64", SENTENCE],
}


def faults(answer):
    return [f"{fault.json_path}: {fault.message}" for fault in VALIDATOR.iter_errors(answer)]


def written(*parts):
    return json.loads(render(view(*parts), Screen()))


def changed(**keys):
    answer = json.loads(render(EVERYTHING, Screen()))
    answer["input"]["tokens"] = ["a", " b"]
    return answer | {"model": None} | keys


def test_the_schema_is_one():
    Draft202012Validator.check_schema(RULES)
    assert RULES["title"] == RULES["properties"]["schema"]["const"] == SCHEMA


def test_every_object_is_closed():
    def objects(rules):
        if isinstance(rules, dict):
            if rules.get("type") == "object":
                yield rules
            for inner in rules.values():
                yield from objects(inner)
        if isinstance(rules, list):
            for inner in rules:
                yield from objects(inner)

    assert [one for one in objects(RULES) if "additionalProperties" not in one] == []


@pytest.mark.parametrize("call", [*CALLS, *VARIANTS])
def test_every_command_keeps_to_it(call):
    assert faults(asked(*(CALLS | VARIANTS)[call])) == []


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("command", [name for name in text_commands() if name != "explain"])
def test_every_command_keeps_to_it_with_every_model(command, model):
    assert faults(asked(command, *needs(command), *MODELS[model])) == []


def test_the_calls_are_those_of_every_command():
    assert set(CALLS) >= set(COMMANDS)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numbers_that_json_lacks_are_in_it(dtype):
    values = np.array([[NAN, INF, -INF, 0.0]], dtype)
    hidden = np.array([[False, False, False, True]])
    parts = written(grid(values, hidden=hidden), Facts("", ((Column("x", "vector"), values[0]),)))
    assert faults(parts) == []


def test_a_sheet_is_in_it():
    assert faults(written(Sheet("all", (grid([[1.0]]), grid([[0.5]])), 2))) == []
    assert faults(written(Sheet("all", (NOTE,), 2))) != []


def test_tokens_in_cells_and_running_text_are_in_it():
    table = Table("", (Column("x", "contribution"),), [(-1.5,), (None,), (NAN,)])
    assert faults(written(LENS, PASSAGE, Passage("", (), ()), Sheet("", (LENS,), 1), table)) == []
    found = written(LENS, PASSAGE)["parts"]
    assert found[0]["tokens"][1] == ["\u6f22\u5b57", None]
    assert found[1]["values"] == [None, 2.5, 0.25, "NaN", 5.0]


def test_a_view_without_parts_is_in_it():
    assert faults(json.loads(render(View("test", ()), Screen()))) == []


def test_a_changed_envelope_is_refused():
    assert faults(changed()) == []
    assert faults(changed(parts=[GRID, GRID | {"tokens": [["a", None]]}, PASSED])) == []
    for key in changed():
        answer = changed()
        del answer[key]
        assert faults(answer) == [f"$: {key!r} is a required property"]


@pytest.mark.parametrize(
    "keys",
    [
        {"schema": "gptscope/view/3"},
        {"more": 1},
        {"model": {}},
        {"model": "tiny"},
        {"input": {"text": "a"}},
        {"edits": None},
        {"parts": [{"kind": "picture"}]},
        {"parts": [{"kind": "note", "text": 1}]},
        {"parts": [{"kind": "note", "text": "", "more": 1}]},
        {"parts": [{"kind": "grid", "title": "", "rows": [], "columns": [], "values": [["x"]]}]},
        {"parts": [GRID | {"tokens": [[1]]}]},
        {"parts": [GRID | {"tokens": None}]},
        {"parts": [PASSED | {"tokens": [None]}]},
        {"parts": [PASSED | {"values": ["x"]}]},
        {"parts": [PASSED | {"more": 1}]},
        {"parts": [{"kind": "passage", "title": "", "tokens": []}]},
        {"parts": [{"kind": "table", "title": "", "columns": [{"name": "a"}], "rows": []}]},
        {"parts": [{"kind": "facts", "title": "", "facts": {"a": {"b": 1}}}]},
    ],
    ids=str,
)
def test_what_it_does_not_know_is_refused(keys):
    assert faults(changed(**keys)) != []
