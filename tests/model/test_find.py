import numpy as np
import pytest

from gptscope.errors import ModelError
from gptscope.model.find import find_weights
from tests.helpers.folders import safetensors_bytes, write_index
from tests.model.test_llama2c import SMALL, llama2c_bytes

FILE = safetensors_bytes({"x": np.ones(1)})


def files(folder, *names):
    for name in names:
        (folder / name).write_bytes(FILE)
    return folder


@pytest.mark.parametrize(
    ("there", "found"),
    [
        (["model.safetensors", "other.safetensors", "a.gguf"], "model.safetensors"),
        (["x-00002-of-00002.safetensors", "x-00001-of-00002.safetensors"], "x-00001-of-00002"),
        (["a.gguf", "pytorch_model.bin"], "a.gguf"),
        (["A.GGUF"], "A.GGUF"),
    ],
)
def test_what_is_found_in_a_folder(tmp_path, there, found):
    assert find_weights(files(tmp_path, *there)).name.startswith(found)


def test_an_index_is_found(tmp_path):
    files(tmp_path, "a.safetensors")
    path = write_index(tmp_path, {"x": "a.safetensors"})
    assert find_weights(tmp_path) == find_weights(path) == path


@pytest.mark.parametrize(
    ("there", "named"),
    [
        (["step.safetensors"], "step.safetensors"),
        (["a.gguf", "b.gguf"], "a.gguf, b.gguf"),
        ([f"{i}.gguf" for i in range(5)], "0.gguf, 1.gguf, 2.gguf and 2 more"),
        (["a-00001-of-00002.safetensors", "b-00001-of-00003.safetensors"], "a-00001-of-0"),
    ],
)
def test_weights_that_have_to_be_named(tmp_path, there, named):
    with pytest.raises(ModelError) as fault:
        find_weights(files(tmp_path, *there))
    assert fault.value.message.startswith(f"{tmp_path} has no model.safetensors, but {named}")
    assert fault.value.hint == f"name the file: {tmp_path / there[0]}"


def test_llama2c_is_told_from_a_pickle(tmp_path):
    path = tmp_path / "stories.bin"
    path.write_bytes(llama2c_bytes(SMALL))
    (tmp_path / "tok32.bin").write_bytes(b"x")
    assert find_weights(tmp_path) == find_weights(path) == path
    path.write_bytes(path.read_bytes() + b"\0")
    for name in (tmp_path, path):
        with pytest.raises(ModelError, match=r"stories\.bin may run code when it is opened"):
            find_weights(name)
