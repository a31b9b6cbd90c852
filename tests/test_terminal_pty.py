"""The program behind a real terminal: colours, sizes, Ctrl-C, and pipes that close early."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len
from safetensors.numpy import load_file

from tests.helpers.cli import surroundings
from tests.helpers.folders import write_model

if sys.platform == "win32":
    pytest.skip("there are no pseudo-terminals", allow_module_level=True)

pexpect = pytest.importorskip("pexpect")
pyte = pytest.importorskip("pyte")

PYTHON = [sys.executable, "-m", "gptscope"]
LONG = "Lily wanted to play with her dog and they ran to the park"
XTERM = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
TINY = Path(__file__).parents[1] / "models" / "tiny"
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def environment(**env):
    kept = surroundings({**XTERM, **env})
    return {k: v for k, v in kept.items() if k in env or k not in {"COLORFGBG", "COLUMNS"}}


def spawned(args, columns=80, **env):
    return pexpect.spawn(
        PYTHON[0],
        [*PYTHON[1:], *args],
        env=environment(**env),
        dimensions=(24, columns),
        encoding="utf-8",
        timeout=20,
    )


def on_terminal(args, columns=80, **env):
    child = spawned(args, columns, **env)
    text = child.read()
    child.close()
    assert child.exitstatus == 0, text
    return text


def in_pipe(args, **env):
    done = subprocess.run(
        [*PYTHON, *args], env=environment(**env), capture_output=True, timeout=20, check=True
    )
    return done.stdout.decode()


def screen_after(text, columns=80):
    """What an emulated terminal shows, which is high enough to hold all of it."""
    screen = pyte.Screen(columns, text.count("\n") + 2)
    pyte.Stream(screen).feed(text)
    return screen


def test_colours_are_on_the_terminal_and_not_in_a_pipe():
    args = ["attention", LONG, "--head", "0"]
    screen = screen_after(on_terminal(args))
    backs = {cell.bg for line in screen.buffer.values() for cell in line.values()}
    assert len(backs - {"default"}) > 10
    assert "\x1b" not in in_pipe(args)


@pytest.mark.parametrize(
    ("env", "strongest"),
    [
        ({}, "48;2;253;231;37m"),
        ({"COLORFGBG": "0;15"}, "48;2;8;29;88m"),
        ({"COLORTERM": ""}, "48;5;227m"),
        ({"COLORTERM": "", "TERM": "xterm"}, "30;103m"),
        ({"NO_COLOR": "1"}, None),
        ({"TERM": "dumb"}, None),
    ],
    ids=str,
)
def test_a_terminal_gets_the_colours_it_has(env, strongest):
    text = on_terminal(["attention", "Lily", "--head", "0"], **env)
    found = re.search(rf"{strongest or ';[0-9;]*m'} *1\.00", text)
    assert bool(found) == bool(strongest)


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_the_page_is_as_wide_as_the_terminal(columns):
    text = on_terminal(["attention", LONG, "--head", "0"], columns)
    lines = ESCAPE.sub("", text).replace("\r", "").split("\n")
    widths = [cell_len(line) for line in lines]
    assert columns - 12 < max(widths[1:]) <= columns or columns == 200
    assert (max(widths) > 80) == (columns == 200)
    shown = [line.rstrip() for line in screen_after(text, columns).display]
    assert shown[: len(lines)] == [line.rstrip() for line in lines]  # nothing was broken


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    """The shipped model with a context so long that it does not end by itself."""
    tensors = load_file(TINY / "model.safetensors")
    tensors["transformer.wpe.weight"] = np.tile(tensors["transformer.wpe.weight"], (100, 1))
    config = json.loads((TINY / "config.json").read_text("utf-8"))
    n = len(tensors["transformer.wpe.weight"])
    folder = write_model(tmp_path_factory.mktemp("endless"), tensors, {**config, "n_positions": n})
    for name in ("tokenizer.json", "text.json"):
        if (TINY / name).exists():
            shutil.copy(TINY / name, folder)
    return folder


def test_ctrl_c_in_the_middle_of_generate(endless):
    args = ["generate", "Lily wanted", "--model", str(endless), "--greedy", "-n", "50000"]
    child = spawned(args)
    child.delaybeforesend = None
    child.expect("Lily wanted to .* ")
    child.sendintr()
    rest = child.read()
    child.close()
    assert (child.exitstatus, child.signalstatus) == (130, None)
    assert "Traceback" not in rest
    *_, last, empty = rest.split("\r\n")
    assert (last, empty) == ("error: interrupted", "")
    assert "\x1b" not in rest  # no mode is left switched on


def test_the_terminal_is_usable_after_ctrl_c(endless):
    command = " ".join([*PYTHON, "generate", "--greedy", "-n", "50000", "--model", str(endless)])
    child = pexpect.spawn("/bin/sh", env={**environment(), "PS1": "> "}, encoding="utf-8")
    child.timeout, child.delaybeforesend = 20, None
    child.expect("> ")
    child.sendline(command)
    child.expect("Once .* ")
    child.sendintr()
    child.expect("error: interrupted\r\n> ")
    child.sendline("echo status $?")
    child.expect("status 130\r\n> ")
    child.sendline("stty -a")
    child.expect("[^-]echo ")
    child.close()


@pytest.mark.parametrize(
    "args",
    [
        ["tokens", LONG],
        ["generate", "--greedy", "-n", "100"],
        ["--help"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_a_closed_pipe_is_quiet(args):
    with subprocess.Popen(
        [*PYTHON, *args], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        child.stdout.close()
        said = child.stderr.read().decode()
        assert (child.wait(20), "Traceback" in said, "error" in said) == (0, False, False)


def test_the_width_follows_a_terminal_that_is_resized():
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    command = " ".join([*PYTHON, "residual", f'"{LONG}"'])
    child = pexpect.spawn(
        bash,
        ["--norc", "--noprofile"],
        env={**environment(TERM="dumb"), "PS1": "ready> "},
        dimensions=(24, 120),
        encoding="utf-8",
        timeout=20,
    )
    child.expect("ready> ")
    seen = {}
    for columns in (120, 44):
        child.setwinsize(24, columns)
        child.sendline(command)
        child.expect("longest single addition.*ready> ")
        lines = ESCAPE.sub("", child.before + child.after).splitlines()
        seen[columns] = [line for line in lines if "layers." in line and "0." in line]
    child.close()
    assert max(map(cell_len, seen[44])) <= 44 < max(map(cell_len, seen[120]))
