# Every shell asks in its own way, and gets the same answers.

import pytest

from gptscope.app import COMMANDS
from gptscope.commands.tour import CardName
from gptscope.model.shipped import shipped_folders
from gptscope.render import RENDERERS
from tests.helpers.cli import spawn


def bash(line):
    words = line.split(" ")
    env = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    return spawn([], env={"_GPTSCOPE_COMPLETE": "complete_bash", **env}).text.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("gptscope exp", ["explain", "experiment"]),
        ("gptscope experiment ", ["mask", "order"]),
        ("gptscope attention --model to", ["toy", "toy-unmasked"]),
        ("gptscope attention --layer ", ["0", "1", "2", "3"]),
        ("gptscope attention --model toy --layer ", ["0", "1"]),
        ("gptscope attention --model toy --head ", ["0", "1"]),
        ("gptscope tour --card ", list(CardName)),
        ("gptscope next --format ", list(RENDERERS)),
        ("gptscope params --preset gpt2-", ["gpt2-medium", "gpt2-large", "gpt2-xl"]),
        ("gptscope trace --keep layers.0.attn_", ["layers.0.attn_concat", "layers.0.attn_out"]),
        ("gptscope explain x layers.3.heads.2.w", ["layers.3.heads.2.weights["]),
        ("gptscope next --edit layers.0.attn_", ["layers.0.attn_concat=", "layers.0.attn_out="]),
        ("gptscope next -e layers.0.mlp_out=z", ["layers.0.mlp_out=zero"]),
        ("gptscope next -e logits=f", ["logits=from:", "logits=freeze:"]),
        ("gptscope attention --theme l", ["light"]),
        ("gptscope attention --model /no/such/folder --layer ", []),
    ],
)
def test_what_is_offered(line, offered):
    assert bash(line) == offered


def test_all_commands_and_models_are_offered():
    assert set(bash("gptscope ")) == {name.split()[0] for name in COMMANDS}
    assert set(shipped_folders()) <= set(bash("gptscope tokens --model "))


def test_files_of_every_format_and_folders_are_offered(tmp_path):
    files = ["a.GGUF", "a.bin", "a.safetensors", "a.safetensors.index.json"]
    for name in [*files, "a.json", "a.txt"]:
        (tmp_path / name).touch()
    (tmp_path / "a-folder").mkdir()
    expected = sorted(f"{tmp_path}/{name}" for name in [*files, "a-folder/"])
    for line in (f"gptscope info {tmp_path}/a", f"gptscope next --model {tmp_path}/a"):
        assert sorted(bash(line)) == expected


def test_only_values_that_the_model_has_are_offered():
    assert bash("gptscope trace --keep layers.0.ln1.mean") == ["layers.0.ln1.mean"]
    assert bash("gptscope trace --keep layers.0.heads.0.q") == ["layers.0.heads.0.q"]


@pytest.mark.parametrize(
    ("shell", "env"),
    [
        ("zsh", {"_TYPER_COMPLETE_ARGS": "gptscope attention --model toy-"}),
        (
            "fish",
            {
                "_TYPER_COMPLETE_ARGS": "gptscope attention --model toy-",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            },
        ),
        (
            "powershell",
            {
                "_TYPER_COMPLETE_ARGS": "gptscope attention --model toy-",
                "_TYPER_COMPLETE_WORD_TO_COMPLETE": "toy-",
            },
        ),
    ],
)
def test_every_shell_is_answered(shell, env):
    answer = spawn([], env={"_GPTSCOPE_COMPLETE": f"complete_{shell}", **env}).text
    assert "toy-unmasked" in answer


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_every_shell_gets_its_script(shell):
    assert "gptscope" in spawn([], env={"_GPTSCOPE_COMPLETE": f"source_{shell}"}).text.lower()
