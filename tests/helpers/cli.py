"""The command line as a user meets it: arguments in; exit status, bytes and words out."""

import io
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from unittest import mock

import numpy as np

from gptscope import app
from gptscope.model.tokenizer_files import load_tokenizer

SENTENCE = "Lily wanted to play with her"
# What a terminal, a locale or a user may have set, and what would change the output.
SURROUNDINGS = {
    "COLORFGBG",
    "COLORTERM",
    "COLUMNS",
    "FORCE_COLOR",
    "GPTSCOPE_MODEL",
    "LINES",
    "NO_COLOR",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "TERM",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
}

# What else a command needs to be given after its text.
AFTER = {"explain": ["embeddings[0,0]"]}
# And before it.
BEFORE = {"compare": ["--edit", "layers.0.mlp_out=*2"]}

read_once = cache(load_tokenizer)  # takes half of a call


@dataclass(frozen=True)
class Result:
    """How the program ended, and what it wrote."""

    status: int
    out: bytes
    err: str
    encoding: str = "utf-8"

    @property
    def text(self):
        return self.out.decode(self.encoding)

    @property
    def lines(self):
        return self.text.split("\n")


class Stream(io.TextIOWrapper):
    """A stream that keeps its bytes, and is a terminal if it is told so."""

    terminal = False

    def isatty(self):
        return self.terminal


def run_cli(args, *, encoding="utf-8", env=None, stdin=b"", terminal=False):
    """Call the program within this process."""
    read = io.TextIOWrapper(io.BytesIO(stdin), encoding)
    out = Stream(io.BytesIO(), encoding, newline="\n")
    err = io.TextIOWrapper(io.BytesIO(), encoding, errors="backslashreplace", newline="\n")
    out.terminal = terminal
    with (
        np.errstate(),  # what the program does about warnings ends with it
        mock.patch.multiple(sys, stdin=read, stdout=out, stderr=err),
        mock.patch.dict(os.environ, surroundings(env), clear=True),
        mock.patch("gptscope.model.load.load_tokenizer", read_once),
    ):
        status = app.run(words_of(args))
    out.flush()
    err.flush()
    return Result(status, out.buffer.getvalue(), err.buffer.getvalue().decode(encoding), encoding)


def spawn(args, *, encoding="utf-8", env=None, stdin=b""):
    """Call the program as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "gptscope", *words_of(args)],
        env=surroundings({"PYTHONIOENCODING": encoding, **(env or {})}),
        input=stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Result(done.returncode, done.stdout, done.stderr.decode(encoding), encoding)


def words_of(args):
    """The arguments, with a command of two words as two."""
    first, *rest = args or [""]
    return [*first.split(), *rest] if first in app.COMMANDS else list(args)


def text_commands():
    """The commands that read a text."""
    return [name for name in app.COMMANDS if any(p.name == "text" for p in app.loaded(name).params)]


def on_text(command, text):
    """The arguments that call a command on a text, whatever that looks like."""
    return [command, *BEFORE.get(command, []), "--", text, *AFTER.get(command, [])]


def needs(command):
    """What a command must be given beside a text."""
    return [*BEFORE.get(command, []), *AFTER.get(command, [])]


def surroundings(env):
    """The environment of this process without what would change the output, and with `env`."""
    kept = {name: value for name, value in os.environ.items() if name not in SURROUNDINGS}
    return kept | (env or {})


def asked(*args):
    """The JSON answer of a command that must succeed."""
    command, *more = args
    result = run_cli([command, "--format", "json", *more])
    assert (result.status, beside_notes(result.err)) == (0, [])
    return json.loads(result.out)


def beside_notes(err):
    """The lines of standard error but those on characters never seen, and on broken weights."""
    about = (
        "warning: tiny never saw: ",
        "mapped as in the training of tiny: ",
        "warning: tensor ",
        "warning: tokenizer.json has ",
    )
    return [line for line in err.split("\n") if line and not line.startswith(about)]


def parts(*args):
    """The parts of the JSON answer."""
    return asked(*args)["parts"]


def rows(part):
    """A table of the JSON answer without the names of its columns."""
    return [list(row.values()) for row in part["rows"]]


def column(part, name):
    """One column of a table of the JSON answer."""
    return [row[name] for row in part["rows"]]


def refused(result, status):
    """The sentence and the hint of a call that failed as it should: nothing else was written."""
    assert (result.status, result.out) == (status, b"")
    first, *more = beside_notes(result.err)
    assert first.startswith("error: ")
    assert len(first) > len("error: ")
    assert [line.partition(" ")[0] for line in more] in ([], ["hint:"])
    return first.removeprefix("error: "), "".join(more).removeprefix("hint: ")
