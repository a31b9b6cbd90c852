import pytest
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from gptscope.app import COMMANDS
from tests.helpers.cli import run_cli

TEXT = "Lily wanted to play"
PICTURES = {
    "tokens": ["tokens", 'Lily\'s "caf\u00e9"\n\t\u6f22  said [b]no[/b]'],
    "embeddings": ["embeddings", "Lily ran"],
    "embeddings-of-one-token": ["embeddings", TEXT, "--token", "2", "--dims", "0:6"],
    "norms": ["norms", "Lily ran", "--layer", "1"],
    "attention": ["attention", TEXT, "--layer", "1", "--head", "2"],
    "attention-that-is-cut": ["attention", f"{TEXT} with her dog and they ran", "--head", "0"],
    "attention-of-one-token": ["attention", TEXT, "--head", "1", "--token", "3"],
    "mlp": ["mlp", TEXT, "--layer", "1"],
    "residual": ["residual", TEXT],
    "next": ["next", TEXT],
    "next-with-settings": ["next", TEXT, "--temperature", "0.7", "--top-k", "5", "--top", "7"],
    "next-after-every-token": ["next", TEXT, "--at", "all"],
    "generate": ["generate", TEXT, "--greedy", "-n", "30"],
    "generate-with-steps": ["generate", TEXT, "--seed", "3", "-n", "4", "--steps"],
    "params": ["params", "--d", "768", "--L", "12"],
    "models": ["models"],
}
COLOURED = ["attention", "embeddings", "next"]
TRUECOLOR = {"FORCE_COLOR": "1", "COLORTERM": "truecolor", "TERM": "xterm-256color"}


class OneFile(SingleFileSnapshotExtension):
    """A text file for each picture."""

    _write_mode = WriteMode.TEXT
    _file_extension = file_extension = "txt"  # before and since syrupy 5


@pytest.fixture
def picture(snapshot):
    return snapshot.use_extension(OneFile)


def drawn(name, env):
    result = run_cli(PICTURES[name], env=env)
    assert result.status == 0
    return "\n".join(line.rstrip() for line in result.lines)


def test_every_command_has_a_picture():
    assert {args[0] for args in PICTURES.values()} == set(COMMANDS)


@pytest.mark.parametrize("columns", ["80", "40"])
@pytest.mark.parametrize("name", PICTURES)
def test_plain(name, columns, picture):
    assert drawn(name, {"COLUMNS": columns}) == picture


@pytest.mark.parametrize("name", COLOURED)
def test_colours(name, picture):
    shown = drawn(name, {"COLUMNS": "80", **TRUECOLOR})
    assert shown.replace("\x1b", "\u241b") == picture
