# --edit with every command that runs the model: each shows the edited run, and says so.

import json

import pytest

from gptscope.app import loaded
from gptscope.render import RENDERERS
from tests.helpers.cli import AFTER, SENTENCE, run_cli, text_commands

EDIT = "layers.0.mlp_out[2:]=*-2"
LATE = {"embeddings": "token_embeddings[:,0]=5"}  # what a command looks at, where that is earlier
RUN_NOTHING = {"tokens", "experiment order"}
CALLS = {
    "explain": [SENTENCE, "layers.1.output[4,0]"],
    "generate": [SENTENCE, "--greedy", "--max-new-tokens", "4", "--steps"],
    "attention": [SENTENCE, "--layer", "1"],
    "mlp": [SENTENCE, "--layer", "1"],
    "norms": [SENTENCE, "--layer", "1"],
}


def edited(name):
    return {p.name for p in loaded(name).params} >= {"text", "edit"}


COMMANDS = [name for name in text_commands() if edited(name)]


def call(name, *more, fmt="json"):
    given = CALLS.get(name, [SENTENCE, *AFTER.get(name, [])])
    result = run_cli([name, *given, *more, "--format", fmt])
    assert result.status == 0, result.err
    return result


def test_every_command_that_runs_a_model_takes_edits():
    assert set(text_commands()) - set(COMMANDS) == RUN_NOTHING


@pytest.mark.parametrize("name", COMMANDS)
def test_the_edited_run_is_shown_and_named(name):
    edit = LATE.get(name, EDIT)
    made = json.loads(call(name, "--edit", edit).out)
    assert made["edits"] == [edit]
    if name == "compare":
        return
    plain = json.loads(call(name).out)
    assert plain["edits"] == []
    assert made["parts"] != plain["parts"]


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("fmt", [fmt for fmt in RENDERERS if fmt not in {"csv", "npz", "json"}])
def test_every_page_says_what_was_changed(name, fmt):
    page = call(name, "--edit", "layers.0.mlp_out=*2", fmt=fmt).text
    assert "changed:" in page.replace("&#160;", " ")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_bad_edit_is_one_sentence(name):
    given = CALLS.get(name, [SENTENCE, *AFTER.get(name, [])])
    result = run_cli([name, *given, "--edit", "layers.9.mlp_out=zero"])
    assert (result.status, result.out) == (2, b"")
    assert result.err == "error: layer 9 is out of range: this one has layers 0 to 3\n"


@pytest.mark.parametrize("text", ["[b]x[/b]", "\x1b[31m", "\u202eabc", "\0", "a\nb", "\ud800"])
def test_hostile_edits_are_harmless(text):
    for edit in (text, f"{text}=zero", f"logits={text}", f"logits[{text}]=0"):
        result = run_cli(["next", SENTENCE, "--edit", edit])
        assert result.status in {1, 2}
        assert "\x1b" not in result.err
        assert "\u202e" not in result.err
    done = run_cli(["next", "Lily ran", "--edit", f"logits[0]=from:{text}"])
    assert "\x1b" not in done.text + done.err
    assert "\u202e" not in done.text + done.err
