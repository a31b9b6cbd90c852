import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import gptscope
from gptscope.app import COMMANDS, loaded
from gptscope.model.shipped import EXAMPLES as EXAMPLE_TEXTS
from gptscope.model.shipped import shipped_folders
from tests.helpers.cli import (
    SENTENCE,
    needs,
    on_text,
    refused,
    run_cli,
    spawn,
    surroundings,
    text_commands,
)
from tests.helpers.folders import write_model

ON_TEXT = text_commands()
# Python sets no handler where its parent ignores SIGINT, as a job in the background does.
INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from gptscope.app import main; main()"
)


# What the parser refuses


@pytest.mark.parametrize(
    ("args", "sentence", "hint"),
    [
        (["attenton"], "No such command 'attenton'. Did you mean 'attention'?", "gptscope --help"),
        (["zzz"], "No such command 'zzz'.", "gptscope --help"),
        (["--verson"], "No such option: --verson", "gptscope --help"),
        (["attention", "x", "--hed", "1"], "No such option: --hed", "gptscope attention --help"),
        (["params", "--L", "2"], "Missing option '--d'.", "gptscope params --help"),
        (["params", "--d", "8"], "Missing option '--L'.", "gptscope params --help"),
        (["params", "--d", "x", "--L", "2"], "Invalid value for '--d'", "gptscope params --help"),
        (["params", "--d", "0", "--L", "2"], "Invalid value for '--d'", "gptscope params --help"),
        (["next", "x", "--top", "0"], "Invalid value for '--top'", "gptscope next --help"),
        (["attention", "x", "--layer"], "Option '--layer' requires an argument", "gptscope"),
        (["attention", "x", "--stage", "y"], "Invalid value for '--stage'", "gptscope attention"),
        (["tokens", "one", "two"], "Got unexpected extra argument", "gptscope tokens --help"),
        (["models", "x"], "Got unexpected extra argument", "gptscope models --help"),
    ],
)
def test_the_parser_refuses(args, sentence, hint):
    said, hinted = refused(run_cli(args), 2)
    assert said.startswith(sentence)
    assert hinted.startswith(hint)


@pytest.mark.parametrize(
    "args",
    [
        ["\x1b[31m\u202e"],
        ["tokens", "--\x1b[31m"],
        ["tokens", "x", "--format", "\x1b[31m\n"],
        ["tokens", "x", "--model", "\x1b[31m\r"],
        ["tokens", "--file", "\x1b[31m\n"],
        ["embeddings", "x", "--dims", "\x1b[31m"],
    ],
    ids=ascii,
)
def test_an_error_sends_no_control_characters(args):
    result = run_cli(args)
    assert re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", result.err) is None
    refused(result, result.status)


def test_no_arguments_show_the_help():
    result = run_cli([])
    assert "Usage: gptscope" in result.text
    assert (result.status, result.err) == (2, "")


# What a command refuses


@pytest.mark.parametrize("command", [name for name in ON_TEXT if name not in {"generate", "heads"}])
def test_no_text(command, folder):
    args = [command, *needs(command), "--model", str(folder())]
    said, hint = refused(run_cli(args), 2)
    assert (said, hint[:11]) == ("there is no text", "give one in")


@pytest.mark.parametrize("model", EXAMPLE_TEXTS)
@pytest.mark.parametrize("command", [name for name in ON_TEXT if name != "generate"])
def test_a_shipped_model_has_an_example(command, model):
    args = [command, *needs(command), "--model", model, "--format", "json"]
    result = run_cli(args)
    assert result.status == 0
    assert result.err == f'no text was given, so this is an example: "{EXAMPLE_TEXTS[model]}"\n'
    assert json.loads(result.out)["input"]["text"] == EXAMPLE_TEXTS[model]


@pytest.mark.parametrize("command", [name for name in ON_TEXT if name != "generate"])
def test_an_empty_text(command):
    assert refused(run_cli(on_text(command, "")), 2)[0].startswith("the text is empty")


@pytest.mark.parametrize("command", ON_TEXT)
@pytest.mark.parametrize(
    "given", [["x", "--ids", "1"], ["x", "--file", "y"], ["--file", "y", "--ids", "1"]], ids=str
)
def test_several_texts(command, given):
    after = needs(command)
    said, _ = refused(run_cli([command, *given, *after]), 2)
    assert said == "give one of TEXT, --file and --ids, not several"


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["attention", "Lily", "--layer", "4"], "layer 4 is out of range: .* layers 0 to 3"),
        (["attention", "Lily", "--layer", "-5"], "layer -5 is out of range: .* layers 0 to 3"),
        (["attention", "Lily", "--head", "4"], "head 4 is out of range: .* heads 0 to 3"),
        (["attention", "Lily", "--token", "1"], "token 1 is out of range: .* tokens 0 to 0"),
        (["norms", "Lily", "--layer", "4"], "layer 4 is out of range: .* layers 0 to 3"),
        (["norms", "Lily", "--token", "9"], "token 9 is out of range: .* tokens 0 to 0"),
        (["mlp", "Lily", "--layer", "9"], "layer 9 is out of range: .* layers 0 to 3"),
        (["mlp", "Lily", "--token", "-2"], "token -2 is out of range: .* tokens 0 to 0"),
        (["next", "Lily", "--at", "1"], "token 1 is out of range: .* tokens 0 to 0"),
        (["next", "Lily", "--at", "x"], "--at takes a position or all, not 'x'"),
        (["embeddings", "Lily", "--token", "2"], "token 2 is out of range: .* tokens 0 to 0"),
        (["embeddings", "Lily", "--dims", "5,128"], "dimension 128 is out of range: .* 0 to 127"),
        (["embeddings", "Lily", "--dims", "200:"], "--dims 200: names no dimension: .* 0 to 127"),
        (["embeddings", "Lily", "--dims", "a"], "--dims takes 0:10 or 3,4,9, not 'a'"),
        (["embeddings", "Lily", "--dims", "1:2:3"], "--dims takes 0:10 or 3,4,9, not '1:2:3'"),
        (["embeddings", "Lily", "--dims", ""], "--dims takes 0:10 or 3,4,9, not ''"),
        (["next", "--ids", "4096"], "token id 4096 is outside the vocabulary: .* 0 to 4095"),
        (["next", "--ids", "-1"], "token id -1 is outside the vocabulary: .* 0 to 4095"),
        (["next", "--ids", "9" * 30], "token id 9+ is outside the vocabulary: .* 0 to 4095"),
        (["next", "--ids", "1,x"], "--ids takes whole numbers .*, not '1,x'"),
        (["next", "--ids", ","], "--ids holds no token id"),
        (["next", "Lily", "--temperature", "-1"], r"temperature -1\.0 must be 0 .* or more"),
        (["next", "Lily", "--temperature", "nan"], "temperature nan must be 0 .* or more"),
        (["next", "Lily", "--top-k", "0"], "top-k 0 must be 1 or more"),
        (["next", "Lily", "--top-p", "1.5"], r"top-p 1\.5 must be above 0 and at most 1"),
        (["generate", "Lily", "--temperature", "inf"], "temperature inf must be 0 .* finite"),
        (["generate", "Lily", "--top-p", "0"], r"top-p 0\.0 must be above 0 and at most 1"),
        (["tokens", "Lily", "--dtype", "float16"], "dtype 'float16' is not one of float32"),
        (["tokens", "Lily", "--format", "pdf"], "format 'pdf' is not one of: table, json, csv"),
    ],
    ids=lambda args: "" if isinstance(args, str) else " ".join(args)[:40],
)
def test_out_of_range(args, sentence):
    said, _ = refused(run_cli(args), 2)
    assert re.match(sentence, said)


@pytest.mark.parametrize("ids", ["4096", "-1", "9" * 30, ""])
def test_tokens_refuses_ids_outside_the_vocabulary(ids):
    refused(run_cli(["tokens", "--ids", ids]), 2)


@pytest.mark.parametrize("n", ["0", "-3"])
def test_generate_checks_before_it_writes(n):
    said, _ = refused(run_cli(["generate", "Lily", "-n", n]), 2)
    assert said == f"max-new-tokens {n} must be 1 or more"


def test_a_negative_seed():
    said, _ = refused(run_cli(["generate", "Lily", "-n", "1", "--seed", "-1"]), 2)
    assert said.startswith("seed -1 ")


def test_a_tiny_temperature_is_greedy():
    result = run_cli(["next", "Lily", "--temperature", "1e-320", "--format", "json"])
    assert (result.status, result.err) == (0, "")
    table, _ = json.loads(result.out)["parts"]
    assert [row["drawn with"] for row in table["rows"]] == [1.0, *[0.0] * 9]


@pytest.mark.parametrize(
    "command", [name for name in ON_TEXT if name not in {"tokens", "surprise"}]
)
def test_a_text_longer_than_the_context(command):
    said, hint = refused(run_cli(on_text(command, "word " * 200)), 2)
    assert re.match(r"the text is \d+ tokens long, and this model reads 128 at most", said)
    assert hint


def test_tokens_of_a_long_text_are_shown():
    result = run_cli(["tokens", "word " * 200, "--format", "json"])
    assert len(json.loads(result.out)["input"]["ids"]) > 128


def test_a_text_as_long_as_the_context_leaves_no_room():
    ids = ",".join(["643"] * 128)
    assert run_cli(["tokens", "--ids", ids]).status == 0
    said, _ = refused(run_cli(["generate", "--ids", ids]), 2)
    assert said == "the text fills all 128 places that this model has"


# Models


@pytest.mark.parametrize("name", ["nowhere", "nowhere/model.safetensors", "[bold]x[/bold]"])
def test_a_model_that_is_not_there(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said, hint = refused(run_cli(["tokens", "Lily", "--model", name]), 1)
    assert said == f"there is no model at {name}"
    assert "one of: " in hint
    assert "tiny" in hint


def test_a_model_that_might_run_code(tmp_path):
    said, hint = refused(run_cli(["tokens", "Lily", "-m", str(tmp_path / "model.bin")]), 1)
    assert said.endswith("may run code when it is opened, so it is not opened")
    assert hint.startswith("if you trust it, convert it with PyTorch: ")


def test_a_model_that_is_no_model(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(b"x" * 100)
    said, _ = refused(run_cli(["tokens", "Lily", "-m", str(tmp_path)]), 1)
    assert "cannot be read as safetensors" in said


def test_a_model_without_a_tokenizer(folder):
    path = str(folder())
    said, hint = refused(run_cli(["attention", "Lily", "-m", path]), 2)
    assert (said, hint[:19]) == (
        "this model has no tokenizer.json, so it cannot read a text",
        "give token ids: --i",
    )
    assert run_cli(["attention", "--ids", "1,2,3", "-m", path]).status == 0
    said, hint = refused(run_cli(["generate", "--ids", "1", "-n", "1", "-m", path]), 1)
    assert said == "this model has no tokenizer to write with"


def test_the_environment_names_a_model(tmp_path):
    env = {"GPTSCOPE_MODEL": str(tmp_path)}
    refused(run_cli(["tokens", "Lily"], env=env), 1)
    assert run_cli(["tokens", "Lily", "--model", "tiny"], env=env).status == 0


# Files


@pytest.mark.parametrize(
    ("name", "why"), [("missing.txt", "No such file or directory"), (".", "Is a directory")]
)
def test_a_file_that_cannot_be_read(name, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said, _ = refused(run_cli(["tokens", "--file", name]), 1)
    assert said == f"{name} cannot be read: {why}"


def test_a_file_that_is_not_utf8(tmp_path):
    (tmp_path / "x").write_bytes(b"Lily \xff")
    said, _ = refused(run_cli(["tokens", "--file", str(tmp_path / "x")]), 1)
    assert said.startswith(f"{tmp_path / 'x'} is not UTF-8 text: ")
    said, _ = refused(run_cli(["tokens", "--file", "-"], stdin=b"\xff"), 1)
    assert said.startswith("- is not UTF-8 text: ")


def test_a_file_and_standard_input_are_read_as_they_are(tmp_path):
    text = 'Lily said:\r\n "caf\u00e9"\n'.encode()
    (tmp_path / "x").write_bytes(text)
    args = ["tokens", "--format", "json", "--file"]
    from_file = run_cli([*args, str(tmp_path / "x")])
    assert json.loads(from_file.out)["input"]["text"] == text.decode()
    assert run_cli([*args, "-"], stdin=text) == from_file


def test_output_is_written_once(tmp_path):
    path = tmp_path / "answer.json"
    args = ["tokens", "Lily", "--output", str(path)]
    assert run_cli(args).out == b""
    first = path.read_bytes()
    assert json.loads(first)["command"] == "tokens"
    path.write_bytes(b"precious")
    said, hint = refused(run_cli(args), 2)
    assert (said, hint) == (f"{path} is there already", "--force overwrites it")
    assert path.read_bytes() == b"precious"
    assert run_cli([*args, "--force"]).status == 0
    assert path.read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "fmt", "begins"),
    [
        ("a.csv", [], "position,id,token"),
        ("a.svg", [], "<svg"),
        ("a.txt", [], "tiny \u00b7 1 token"),
        ("a.csv", ["--format", "json"], '{"schema"'),
    ],
)
def test_the_ending_is_a_format(tmp_path, name, fmt, begins):
    path = tmp_path / name
    assert run_cli(["tokens", "Lily", "-o", str(path), *fmt], encoding="ascii").status == 0
    assert path.read_text("utf-8").startswith(begins)


def test_output_into_a_missing_folder(tmp_path):
    path = tmp_path / "missing" / "a.json"
    said, _ = refused(run_cli(["tokens", "Lily", "--output", str(path)]), 1)
    assert said.startswith(f"{path} cannot be written: ")
    assert list(tmp_path.iterdir()) == []


def test_output_onto_a_folder(tmp_path):
    inner = tmp_path / "folder"
    inner.mkdir()
    said, _ = refused(run_cli(["tokens", "Lily", "--output", str(inner), "--force"]), 1)
    assert said.startswith(f"{inner} cannot be written: ")
    assert list(tmp_path.iterdir()) == [inner]


def test_output_onto_this_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said, _ = refused(run_cli(["tokens", "Lily", "--output", ".", "--force"]), 1)
    assert said.startswith(". cannot be written")


def test_output_through_a_link_keeps_the_link(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert run_cli(["tokens", "Lily", "--output", str(tmp_path / "link"), "--force"]).status == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text("utf-8").startswith("tiny")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_output_into_a_pipe_keeps_the_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDWR | os.O_NONBLOCK)
    try:
        run_cli(["tokens", "Lily", "--output", str(tmp_path / "pipe"), "--force"])
        assert (tmp_path / "pipe").is_fifo()
        assert os.read(reader, 100).startswith(b"tiny")
    finally:
        os.close(reader)


@pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no local sockets")
def test_output_into_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("end")
        try:
            result = run_cli(["tokens", "Lily", "--output", "end", "--force"])
        except OSError as traceback:
            pytest.fail(str(traceback))
    assert refused(result, 1)[0].startswith("end cannot be written: ")


@pytest.mark.parametrize("n", [250, 300])
def test_output_under_a_long_name(tmp_path, n):
    path = tmp_path / ("a" * n)
    try:
        result = run_cli(["tokens", "Lily", "--output", str(path)])
    except OSError as traceback:
        pytest.fail(str(traceback))
    if n > 255:
        assert refused(result, 1)[0].startswith(f"{path} cannot be written: ")
    else:
        assert path.read_text("utf-8").startswith("tiny")


def test_output_through_a_link_to_itself(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    try:
        result = run_cli(["tokens", "Lily", "--output", str(tmp_path / "loop"), "--force"])
    except RuntimeError as traceback:
        pytest.fail(str(traceback))
    assert refused(result, 1)[0].startswith(f"{tmp_path / 'loop'} cannot be written: ")


# Help


def test_version():
    result = run_cli(["--version"])
    assert (result.status, result.text) == (0, f"gptscope {gptscope.__version__}\n")


@pytest.mark.parametrize("program", [[sys.executable, "-m", "gptscope"], ["gptscope"]], ids=len)
def test_both_ways_to_start(program):
    path = str(Path(sys.executable).parent)
    done = subprocess.run(
        [shutil.which(program[0], path=path) or program[0], *program[1:], "--version"],
        capture_output=True,
        check=True,
    )
    assert done.stdout.decode() == f"gptscope {gptscope.__version__}\n"


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_lists_every_command(flag):
    def shown(*words):
        result = run_cli([*words, flag], env={"COLUMNS": "200"})
        assert (result.status, result.err) == (0, "")
        return result.text

    for name, (group, line) in COMMANDS.items():
        *above, last = name.split()
        assert re.search(rf" {last} +{re.escape(line)}", shown(*above))
        assert f" {group} " in shown()


def test_commands_that_share_a_word_are_listed_under_it():
    assert re.search(r" experiment +Experiments to repeat: mask, order\.", run_cli(["--help"]).text)
    assert run_cli(["experiment"]).status == 2
    said, hint = refused(run_cli(["experiment", "mas"]), 2)
    assert (said, hint) == (
        "No such command 'mas'. Did you mean 'mask'?",
        "gptscope experiment --help",
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_a_sentence_and_an_example(name):
    result = run_cli([name, "--help"], env={"COLUMNS": "200"})
    assert (result.status, result.err) == (0, "")
    assert COMMANDS[name][1] in result.text
    assert re.search(rf"^ +gptscope {name}", result.text, re.MULTILINE)


@pytest.mark.parametrize("name", COMMANDS)
def test_both_helps_say_the_same(name):
    sentence = loaded(name).help.split("\n")[0]
    assert sentence == COMMANDS[name][1]
    assert sentence.endswith(".")


EXAMPLES = [
    line.split("   ")[0]
    for name in COMMANDS
    for line in loaded(name).help.split("\n")
    if line.startswith(f"gptscope {name}")
]


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_of_the_help_run(line, tmp_path, monkeypatch):
    (tmp_path / "story.txt").write_text(SENTENCE)
    monkeypatch.chdir(tmp_path)
    result = run_cli(shlex.split(line)[1:])
    assert (result.status, bool(result.out)) == (0, " --output " not in line)


def test_help_imports_neither_numpy_nor_the_engine():
    code = """
import sys
from gptscope.app import COMMANDS, run
for args in ([], *(name.split() for name in COMMANDS)):
    assert run([*args, "--help"]) == 0
    heavy = [m for m in sys.modules if m == "numpy" or m.startswith("gptscope.engine.")]
    sys.stderr.write(f"{args} {heavy}\\n" if heavy else "")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stderr.decode() == ""


# How it ends


@pytest.fixture(scope="module")
def endless(tmp_path_factory):
    rng = np.random.default_rng(0)
    d, ctx, tiny = 32, 30_000, shipped_folders()["tiny"]
    shapes = {
        "wte.weight": (4096, d),
        "wpe.weight": (ctx, d),
        "h.0.attn.c_attn.weight": (d, 3 * d),
        "h.0.attn.c_attn.bias": (3 * d,),
        "h.0.attn.c_proj.weight": (d, d),
        "h.0.mlp.c_fc.weight": (d, 4 * d),
        "h.0.mlp.c_fc.bias": (4 * d,),
        "h.0.mlp.c_proj.weight": (4 * d, d),
    }
    vectors = [f"h.0.{name}" for name in ("attn.c_proj.bias", "mlp.c_proj.bias")]
    vectors += [f"{n}.{p}" for n in ("h.0.ln_1", "h.0.ln_2", "ln_f") for p in ("weight", "bias")]
    shapes |= dict.fromkeys(vectors, (d,))
    tensors = {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}
    sizes = {"n_embd": d, "n_layer": 1, "n_head": 2, "vocab_size": 4096, "n_positions": ctx}
    path = tmp_path_factory.mktemp("endless")
    write_model(path, tensors, {"model_type": "gpt2", **sizes})
    shutil.copy(tiny / "tokenizer.json", path)
    return path


@pytest.fixture(scope="module")
def interrupted(endless):
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTIBLE, "generate", "-m", str(endless), "-n", "29999", "Go"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=surroundings({}),
    ) as process:
        process.stdout.read(40)  # it is drawing now
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    return process.returncode, err.decode()


def test_ctrl_c_is_told(interrupted, endless):
    status, err = interrupted
    told, *more = err.strip().split("\n")
    assert (status, more) == (130, ["error: interrupted"])
    assert told == f"{endless.name} \u00b7 1 token: 3425 (nothing prepended)"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["norms", SENTENCE], ""),
        (["generate"], "tiny \u00b7 1 token: 0 (1 prepended)\n"),
        (["tokens", "x", "-f", "svg"], ""),
    ],
)
def test_a_closed_pipe_ends_quietly(args, told):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "gptscope", *args],
            stdout=out,
            stderr=subprocess.PIPE,
            env=surroundings({"PYTHONIOENCODING": "utf-8"}),
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr.decode()) == (0, told)


def test_a_reader_that_stops_early():
    line = f"{shlex.quote(sys.executable)} -m gptscope norms {shlex.quote(SENTENCE)} | head -1"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=True, timeout=60)
    assert done.stdout.startswith("tiny \u00b7 6 tokens".encode())
    assert (done.stdout.count(b"\n"), done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no /dev/full")
@pytest.mark.parametrize(
    "args", [["tokens", "Lily"], ["--help"], ["tokens", "--help"], ["--version"]]
)
def test_a_full_disk_is_told(args):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gptscope", *args],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1)
    assert done.stderr.startswith(b"error: ")


def test_a_closed_standard_output_is_no_traceback():
    line = f"exec {shlex.quote(sys.executable)} -m gptscope tokens Lily >&-"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (1, b"error: standard output is closed\n")


def test_a_closed_standard_input_is_told():
    line = f"exec {shlex.quote(sys.executable)} -m gptscope tokens --file - <&-"
    done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.startswith(b"error: ")


def test_a_process_says_its_fault_once():
    assert (
        refused(spawn(["attention", ""]), 2)[0] == "the text is empty: there is no token to look at"
    )


def test_a_fault_of_the_program_itself_keeps_its_traceback(monkeypatch):
    def wrong(_args):
        raise FileNotFoundError(2, "No such file", "a file of ours")

    monkeypatch.setattr("gptscope.app.program", wrong)
    with pytest.raises(FileNotFoundError):
        run_cli(["models"])


INTERRUPTED_EARLY = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
class Interrupt:
    def find_spec(self, name, *_):
        if name == "gptscope.app":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
from gptscope.__main__ import main
main()
"""


def test_ctrl_c_while_the_program_is_loaded_ends_it_without_a_word():
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_EARLY], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")
