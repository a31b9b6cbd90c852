import json

import numpy as np
import pytest

from gptscope.errors import ModelError
from gptscope.model.checkpoint import open_checkpoint
from gptscope.model.sharded import first_of_sets, is_shard
from tests.helpers.folders import safetensors_bytes, write_index, write_shards

TENSORS = {name: np.full((2, 3), i, "float32") for i, name in enumerate("abcde")}
INDEX = "model.safetensors.index.json"
FIRST, SECOND = (f"model-0000{i}-of-00002.safetensors" for i in (1, 2))


@pytest.fixture
def folder(tmp_path):
    return write_shards(tmp_path, TENSORS)


def refused(path, why):
    with pytest.raises(ModelError, match=why) as fault:
        open_checkpoint(path)
    assert "\n" not in fault.value.message
    return fault.value


@pytest.mark.parametrize("name", [INDEX, FIRST, SECOND])
def test_all_files_are_opened_whichever_is_named(folder, name):
    checkpoint = open_checkpoint(folder / name)
    assert list(checkpoint.arrays) == ["a", "c", "e", "b", "d"]
    assert checkpoint.path == folder / name
    assert checkpoint.files == (folder / FIRST, folder / SECOND)
    for key, x in TENSORS.items():
        np.testing.assert_array_equal(checkpoint.arrays[key], x, strict=True)


def test_metadata_of_all_files(folder):
    for name, key in ((FIRST, "a"), (SECOND, "b")):
        (folder / name).write_bytes(safetensors_bytes({key: TENSORS[key]}, {key: "said"}))
    assert open_checkpoint(folder / FIRST).metadata == {"a": "said", "b": "said"}


def test_links_to_files_elsewhere_are_followed(folder, tmp_path):
    blob = tmp_path / "blob"
    (folder / FIRST).rename(blob)
    (folder / FIRST).symlink_to(blob)
    assert set(open_checkpoint(folder / INDEX).arrays) == set(TENSORS)


def changed_index(folder, change):
    path = folder / INDEX
    places = json.loads(path.read_text("utf-8"))["weight_map"]
    change(places)
    return write_index(folder, places)


def test_a_tensor_that_its_file_lacks(folder):
    path = changed_index(folder, lambda places: places.update(z=FIRST))
    refused(path, rf"says that z lies in {FIRST}, which does not hold it")


def test_a_tensor_that_lies_in_the_other_file(folder):
    path = changed_index(folder, lambda places: places.update(a=SECOND))
    refused(path, rf"says that a lies in {SECOND}, which does not hold it")


def test_a_tensor_that_the_index_does_not_name(folder):
    path = changed_index(folder, lambda places: places.pop("c"))
    refused(path, rf"{FIRST} holds c, which {INDEX} does not name")


@pytest.mark.parametrize("name", [INDEX, FIRST])
def test_a_tensor_in_two_files(folder, name):
    (folder / SECOND).write_bytes(safetensors_bytes({k: TENSORS[k] for k in "abd"}))
    refused(folder / name, rf"{FIRST} and {SECOND} in .* both hold the tensor a")


def test_a_file_that_is_not_there(folder):
    (folder / SECOND).unlink()
    refused(folder / INDEX, rf"names {SECOND}, which is not there")
    refused(folder / FIRST, rf"is one of 2 files, with {SECOND} of them not there$")


@pytest.mark.parametrize("name", ["..", "../x.safetensors", "/etc/passwd", "a/b.safetensors"])
def test_no_file_elsewhere_is_opened(folder, name):
    path = changed_index(folder, lambda places: places.update(a=name))
    refused(path, f"names {name}, which (lies in another folder|is not there)")


@pytest.mark.parametrize("places", [{}, [], None, {"a": 1}, {"a": None}])
def test_an_index_that_names_no_file(folder, places):
    refused(write_index(folder, places), "names no file|has no weight_map that names a file")


def test_every_header_is_checked_at_once(folder):
    (folder / SECOND).write_bytes((folder / SECOND).read_bytes()[:-1])
    for name in (INDEX, FIRST):
        refused(folder / name, rf"{SECOND} .* ends 1 byte behind the end of the file")


def test_a_count_that_no_folder_has(tmp_path):
    path = tmp_path / "model-00001-of-99999.safetensors"
    path.write_bytes(safetensors_bytes({}))
    refused(path, "is one of 99999 files, more than are opened")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [(FIRST, True), ("x-00001-of-00001.safetensors", False), ("model.safetensors", False)],
)
def test_names_of_shards(name, is_one):
    assert is_shard(name) == is_one


def test_the_first_of_each_set():
    names = ["b-00002-of-00002.safetensors", FIRST, SECOND, "x.safetensors"]
    assert first_of_sets(names) == [names[0], FIRST]
