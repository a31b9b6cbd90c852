import io
import os
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from gptscope.commands import output
from gptscope.commands.options import Target
from gptscope.commands.output import chosen_format, for_programs, write
from gptscope.errors import GptscopeError, UsageError
from gptscope.render import ENDINGS
from tests.helpers.cli import refused, run_cli, spawn

CALL = ["tokens", "Lily wanted"]


def left(folder):
    return sorted(path.name for path in folder.iterdir())


def test_npz_goes_into_a_pipe_as_it_is(tmp_path):
    result = run_cli([*CALL, "--format", "npz"])
    assert (result.status, result.err) == (0, "")
    with np.load(io.BytesIO(result.out), allow_pickle=False) as arrays:
        assert arrays["ids"].tolist() == arrays["table.id"].tolist() == [643, 414]
    assert run_cli([*CALL, "-o", str(tmp_path / "a.npz")]).status == 0
    assert (tmp_path / "a.npz").read_bytes() == result.out
    assert spawn([*CALL, "--format", "npz"]).out == result.out


@pytest.mark.parametrize("fmt", ["svg", "html", "markdown"])
def test_the_terminal_says_nothing_of_the_colours_of_a_picture(fmt):
    call = ["attention", "Lily wanted", "--head", "0", "--format", fmt]
    there = run_cli(call, env={"COLORFGBG": "0;15"})
    assert there == run_cli(call)
    assert (run_cli([*call, "--theme", "light"]) != there) == (fmt == "svg")


def test_npz_is_not_sent_to_a_terminal(tmp_path):
    said, hint = refused(run_cli([*CALL, "-f", "npz"], terminal=True), 2)
    assert said == "npz is not text, so a terminal cannot show it"
    assert hint == "--output FILE.npz writes a file"
    assert run_cli([*CALL, "-o", str(tmp_path / "a.npz")], terminal=True).status == 0


@pytest.mark.parametrize("ending", [*ENDINGS, "HTML", "Md"])
def test_every_ending_is_a_format(ending):
    assert chosen_format(Target(output=Path(f"a.b.{ending}"))) == ENDINGS[ending.lower()]


@pytest.mark.parametrize("name", ["a", "a.b/c", ".html", "a."])
def test_no_ending_is_a_table(name):
    assert chosen_format(Target(output=Path(name))) == "table"


def test_an_unknown_ending_is_refused_and_nothing_is_written(tmp_path):
    said, hint = refused(run_cli([*CALL, "-o", str(tmp_path / "a.pdf")]), 2)
    assert said.startswith(f"{tmp_path / 'a.pdf'} ends in none of: .txt, .json, .csv, .md, .html")
    assert hint == "--format names a format for any file"
    assert left(tmp_path) == []
    assert run_cli([*CALL, "-o", str(tmp_path / "a.pdf"), "-f", "csv"]).status == 0


def test_formats_of_one_command_are_endings_there():
    target = Target(output=Path("a.safetensors"))
    assert chosen_format(target, also=("safetensors",)) == "safetensors"
    with pytest.raises(UsageError, match=r"ends in none of: \.txt"):
        chosen_format(target)
    with pytest.raises(UsageError, match="format 'safetensors' is not one of: table, json"):
        chosen_format(Target(format="safetensors"))


@pytest.mark.parametrize("made", ["\u6f22\n", b"\xff\x00", lambda file: file.write(b"abc")])
def test_text_bytes_and_what_a_function_writes(tmp_path, made):
    path = tmp_path / "a"
    write(path, made, force=False)
    expected = b"abc" if callable(made) else made.encode() if isinstance(made, str) else made
    assert path.read_bytes() == expected
    assert left(tmp_path) == ["a"]


@pytest.mark.parametrize("before", [None, b"precious"])
@pytest.mark.parametrize("fault", [OSError(28, "No space left"), KeyboardInterrupt(), ValueError()])
def test_a_fault_leaves_no_half_file(tmp_path, before, fault):
    path = tmp_path / "a"
    if before is not None:
        path.write_bytes(before)

    def breaks(file):
        file.write(b"half")
        raise fault

    expected = GptscopeError if isinstance(fault, OSError) else type(fault)
    with pytest.raises(expected):
        write(path, breaks, force=True)
    assert left(tmp_path) == ([] if before is None else ["a"])
    assert before is None or path.read_bytes() == before


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_permissions_are_those_of_any_new_file(tmp_path, mask):
    before = os.umask(mask)
    try:
        write(tmp_path / "a", "x", force=False)
        (tmp_path / "b").touch()
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"]
    assert modes == [0o666 & ~mask] * 2


@pytest.mark.skipif(os.name != "posix", reason="permissions are those of POSIX")
def test_a_file_that_is_overwritten_keeps_its_permissions(tmp_path):
    path = tmp_path / "a"
    path.write_text("old")
    path.chmod(0o600)
    write(path, "new", force=True)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", 0o600)


def test_a_name_that_is_taken_is_left_alone(tmp_path, monkeypatch):
    names = iter(["taken", "taken", "free"])
    monkeypatch.setattr(output, "random_name", lambda: next(names))
    (tmp_path / ".gptscope-taken.part").write_text("of somebody else")
    write(tmp_path / "a", "x", force=False)
    assert left(tmp_path) == [".gptscope-taken.part", "a"]
    assert (tmp_path / ".gptscope-taken.part").read_text() == "of somebody else"


def test_names_that_are_all_taken_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(output, "random_name", lambda: "taken")
    (tmp_path / ".gptscope-taken.part").mkdir()
    with pytest.raises(GptscopeError, match="a cannot be written: no name is free"):
        write(tmp_path / "a", "x", force=False)
    assert left(tmp_path) == [".gptscope-taken.part"]


def test_of_many_at_once_one_wins_and_the_others_are_told(tmp_path):
    path, together = tmp_path / "a", threading.Barrier(8)

    def attempt(i):
        def slowly(file):
            file.write(bytes([i]) * 1000)
            together.wait(20)

        try:
            write(path, slowly, force=False)
        except UsageError as fault:
            return fault.message
        return None

    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(attempt, range(8)))
    (winner,) = [i for i, message in enumerate(said) if message is None]
    assert path.read_bytes() == bytes([winner]) * 1000
    assert set(said) == {None, f"{path} is there already"}
    assert left(tmp_path) == ["a"]


def test_many_at_once_that_may_overwrite_do_not_mix(tmp_path):
    path = tmp_path / "a"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: write(path, bytes([i]) * 9999, force=True), range(64)))
    assert len(path.read_bytes()) == 9999
    assert len(set(path.read_bytes())) == 1
    assert left(tmp_path) == ["a"]


def test_a_file_system_without_links_is_written_too(tmp_path, monkeypatch):
    def no_links(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(output.os, "link", no_links)
    write(tmp_path / "a", "x", force=False)
    assert ((tmp_path / "a").read_text(), left(tmp_path)) == ("x", ["a"])


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        *((Target(format=fmt), True) for fmt in ("json", "csv", "npz")),
        *((Target(format=fmt), False) for fmt in ("table", "markdown", "html", "svg")),
        (Target(output=Path("a.json")), True),
        (Target(output=Path("a.md")), False),
        (Target(), False),
    ],
)
def test_what_goes_to_programs(target, expected):
    assert for_programs(target) == expected
