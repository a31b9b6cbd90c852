import os
from pathlib import Path

import pytest

from gptscope.errors import ModelError
from gptscope.model.find import find_weights
from gptscope.model.hub import Repo, cache_folder, repo_at, repo_of
from tests.helpers.cli import refused, run_cli
from tests.helpers.folders import changed_copy

OLD, NEW = "0" * 40, "1" * 40


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "hub"


def downloaded(cache, commit=NEW, branch="main", name="org/name"):
    # As huggingface_hub leaves it: files in blobs, links to them in a snapshot.
    folder = cache / f"models--{name.replace('/', '--')}"
    made = changed_copy(cache.parent / "made")
    for place in ("blobs", "refs", f"snapshots/{commit}"):
        (folder / place).mkdir(parents=True, exist_ok=True)
    for file in made.iterdir():
        blob = folder / "blobs" / f"{commit[0]}{file.name}"
        file.rename(blob)
        link = folder / "snapshots" / commit / file.name
        link.symlink_to(Path("../../blobs") / blob.name)
    if branch:
        (folder / "refs" / branch).parent.mkdir(parents=True, exist_ok=True)
        (folder / "refs" / branch).write_text(commit, "ascii")
    return folder


def fault_of(name):
    with pytest.raises(ModelError) as fault:
        find_weights(name)
    assert "\n" not in fault.value.message
    return fault.value


@pytest.mark.parametrize(
    ("name", "repo"),
    [
        ("org/name", Repo("org/name")),
        ("gpt2", Repo("gpt2")),
        ("org/a.b-c_d@refs/pr/1", Repo("org/a.b-c_d", "refs/pr/1")),
        ("org/name@v1.0", Repo("org/name", "v1.0")),
    ],
)
def test_names_of_the_hub(name, repo):
    assert repo_of(name) == repo


@pytest.mark.parametrize(
    "name", ["/org/name", "./name", "../name", "a/b/c", "a/..", "a b", "", "a/b@../..", "\u00e9/a"]
)
def test_names_that_are_none_of_the_hub(name):
    assert repo_of(name) is None


@pytest.mark.parametrize(
    ("environ", "path"),
    [
        ({"HF_HUB_CACHE": "/a", "HF_HOME": "/b", "XDG_CACHE_HOME": "/c"}, "/a"),
        ({"HF_HOME": "/b", "XDG_CACHE_HOME": "/c"}, "/b/hub"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
        ({"HF_HUB_CACHE": "~/x"}, "~/x"),
        ({}, "~/.cache/huggingface/hub"),
    ],
)
def test_where_the_cache_is(environ, path):
    assert cache_folder(environ) == Path(path).expanduser()


def test_the_cache_is_where_the_library_has_it():
    constants = pytest.importorskip("huggingface_hub.constants")
    for key in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"):
        if key in os.environ:
            pytest.skip("the library has read other settings")
    assert cache_folder({}) == Path(constants.HF_HUB_CACHE)


def test_the_snapshot_of_main(cache):
    folder = downloaded(cache, OLD)
    newest = downloaded(cache, NEW, branch=None) / "snapshots" / NEW
    os.utime(newest, (2e9, 2e9))
    assert find_weights("org/name") == folder / "snapshots" / OLD / "model.safetensors"


def test_the_newest_snapshot_that_has_weights(cache):
    for i, commit in enumerate((NEW, OLD)):
        folder = downloaded(cache, commit, branch=None) / "snapshots"
        os.utime(folder / commit, (i, i))
    (folder / "empty").mkdir()
    assert find_weights("org/name").parent == folder / OLD


@pytest.mark.parametrize("revision", ["v1", "refs/pr/1", OLD])
def test_another_revision(cache, revision):
    downloaded(cache, NEW)
    folder = downloaded(cache, OLD, branch=None if revision == OLD else revision)
    assert find_weights(f"org/name@{revision}").parent == folder / "snapshots" / OLD


def test_a_revision_that_is_not_there(cache):
    downloaded(cache)
    fault = fault_of("org/name@v2")
    assert fault.message == f"org/name is in {cache}, but not its revision v2"
    assert fault.hint == "to download it: hf download org/name --revision v2"


@pytest.mark.parametrize("inside", ["", f"snapshots/{NEW}"])
def test_a_folder_of_the_cache_itself(cache, inside):
    folder = downloaded(cache) / inside
    assert find_weights(folder).parent.name == NEW
    assert repo_at(folder) == Repo("org/name")


def test_a_model_without_an_organisation(cache):
    folder = downloaded(cache, name="gpt2")
    assert find_weights("gpt2").parent == folder / "snapshots" / NEW


def test_a_folder_here_comes_first(cache):
    downloaded(cache)
    changed_copy(cache.parent / "org" / "name")
    assert find_weights("org/name") == Path("org/name/model.safetensors")


def test_a_model_that_was_not_downloaded(cache):
    said, hint = refused(run_cli(["next", "x", "-m", "org/name"]), 1)
    assert said == (
        f"there is no model at org/name, and org/name is not in the Hugging Face cache {cache}"
    )
    assert hint == "to download it: hf download org/name"


@pytest.mark.parametrize("name", ["nothing", "here/nothing", "org/x.safetensors", "a/b/c"])
def test_other_names_are_paths(cache, name):
    (cache.parent / "here").mkdir()
    assert fault_of(name).message == f"there is no model at {name}"
    assert "or one of: tiny" in fault_of(name).hint


@pytest.mark.usefixtures("cache")
def test_a_name_that_is_nearly_right():
    assert fault_of("tinyy").hint == "did you mean tiny?"


# Downloads that have not come to their end


def incomplete(name, why):
    fault = fault_of(name)
    assert fault.message.startswith("the download of org/name in ")
    assert f"is not complete: {why}" in fault.message
    assert fault.hint == "to complete it: hf download org/name"
    return fault.message


def test_no_snapshot(cache):
    (cache / "models--org--name").mkdir(parents=True)
    incomplete("org/name", "none of its snapshots has weights")


def test_a_snapshot_without_weights(cache):
    folder = downloaded(cache)
    (folder / "snapshots" / NEW / "model.safetensors").unlink()
    incomplete("org/name", "none of its snapshots has weights")
    incomplete(folder / "snapshots" / NEW, "its snapshot has no weights")


def test_parts_in_blobs_are_told(cache):
    folder = downloaded(cache)
    (folder / "snapshots" / NEW / "model.safetensors").unlink()
    (folder / "blobs" / "abc.incomplete").write_bytes(b"x")
    assert incomplete("org/name", "none of").endswith("and files in blobs are incomplete")


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_a_link_to_nowhere(cache, name):
    folder = downloaded(cache)
    (folder / "snapshots" / NEW / name).resolve().unlink()
    whys = {
        "model.safetensors": "none of its snapshots has weights",
        "config.json": "config.json is a link to a file that is not there",
    }
    incomplete("org/name", whys[name])


def test_a_shard_that_is_missing(cache):
    snapshot = downloaded(cache) / "snapshots" / NEW
    (snapshot / "model.safetensors").rename(snapshot / "a.safetensors")
    index = '{"weight_map": {"x": "a.safetensors", "y": "b.safetensors"}}'
    (snapshot / "model.safetensors.index.json").write_text(index, "utf-8")
    assert "names b.safetensors, which is not there" in incomplete("org/name", "")
    (snapshot / "b.safetensors").symlink_to("../../blobs/gone")
    incomplete("org/name", "b.safetensors is a link to a file that is not there")


def test_pickles_stay_refused(cache):
    snapshot = downloaded(cache) / "snapshots" / NEW
    (snapshot / "model.safetensors").rename(snapshot / "pytorch_model.bin")
    assert "pytorch_model.bin may run code when it is opened" in fault_of("org/name").message


@pytest.mark.parametrize("ref", ["../../..", "", "x" * 5000, "\0"])
def test_a_ref_that_is_no_commit(cache, ref):
    folder = downloaded(cache)
    (folder / "refs" / "main").write_text(ref, "utf-8")
    assert find_weights("org/name").parent == folder / "snapshots" / NEW
