import json
import math

import numpy as np
import pytest

from gptscope.errors import ModelError
from gptscope.model.checkpoint import open_checkpoint
from gptscope.model.dtypes import BF16, DTYPES, widen
from gptscope.model.tensors import Tensors
from tests.helpers.folders import safetensors_bytes

FLOAT32 = np.dtype("float32")
# One tensor of two numbers, byte for byte.
LITERAL = (
    b'\x40\0\0\0\0\0\0\0{"a":{"dtype":"F32","shape":[2,1],"data_offsets":[0,8]}}        '
    b"\0\0\x80\x3f\0\0\0\xc0"
)


@pytest.fixture
def file(tmp_path):
    def write(content):
        path = tmp_path / "model.safetensors"
        path.write_bytes(content)
        return path

    return write


def one(kind, data, shape):
    header = {"x": {"dtype": kind, "shape": shape, "data_offsets": [0, len(data)]}}
    head = json.dumps(header).encode()
    return len(head).to_bytes(8, "little") + head + data


def opened(file, **tensors):
    return open_checkpoint(file(safetensors_bytes(tensors)))


def taken(file, rename=str, **tensors):
    return Tensors(opened(file, **tensors), rename, FLOAT32)


def memory_of(array):
    while getattr(array, "base", None) is not None:
        array = array.base
    return type(array).__name__


# The file


def test_the_format_byte_for_byte(file):
    checkpoint = open_checkpoint(file(LITERAL))
    expected = np.array([[1], [-2]], "float32")
    np.testing.assert_array_equal(checkpoint.arrays["a"], expected, strict=True)
    assert list(checkpoint.arrays) == ["a"]
    assert checkpoint.metadata == {}
    assert checkpoint.path.name == "model.safetensors"
    assert checkpoint.files == (checkpoint.path,)
    assert checkpoint.config is checkpoint.make_tokenizer is None


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "int64", "uint8", "bool"])
def test_dtypes_that_numpy_has(file, dtype):
    x = np.arange(6).reshape(2, 3).astype(dtype)
    np.testing.assert_array_equal(opened(file, x=x).arrays["x"], x, strict=True)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [("I32", "<i4"), ("I16", "<i2"), ("I8", "i1"), ("U64", "<u8"), ("U32", "<u4"), ("U16", "<u2")],
)
def test_integers_of_every_size(file, kind, dtype):
    x = np.array([1, 2, 3], dtype)
    stored = open_checkpoint(file(one(kind, x.tobytes(), [3]))).arrays["x"]
    np.testing.assert_array_equal(stored, x, strict=True)


def test_bf16_keeps_its_bits(file):
    stored = open_checkpoint(file(one("BF16", b"\x80\x3f\x00\xc0", [2, 1]))).arrays["x"]
    assert stored.dtype == BF16
    assert stored.shape == (2, 1)
    assert stored["bf16"].tolist() == [[0x3F80], [0xC000]]


@pytest.mark.parametrize(("kind", "bits"), [("F8_E4M3", b"\x38\xc0"), ("F8_E5M2", b"\x3c\xc0")])
def test_f8_keeps_its_bits(file, kind, bits):
    stored = open_checkpoint(file(one(kind, bits, [2]))).arrays["x"]
    assert (stored.dtype, stored.shape) == (DTYPES[kind], (2,))
    np.testing.assert_array_equal(widen(stored, np.dtype("f4")), np.array([1, -2], "f4"))


def test_a_header_of_odd_length(file):
    # The numbers then begin at an address that no number of that size should have.
    x = np.array([1.5, -2.5])
    content = safetensors_bytes({"x": x, "long": np.zeros(0, "f4")})
    head = len(content) - x.nbytes - 8
    for pad in range(8):
        padded = (head + pad).to_bytes(8, "little") + content[8 : 8 + head] + b" " * pad
        stored = open_checkpoint(file(padded + content[8 + head :])).arrays["x"]
        np.testing.assert_array_equal(stored, x, strict=True)


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1, 1, 2)])
def test_shapes_without_numbers_or_without_axes(file, shape):
    x = np.ones(shape, "float32")
    np.testing.assert_array_equal(opened(file, x=x, y=x).arrays["x"], x, strict=True)


def test_metadata(file):
    content = safetensors_bytes({"x": np.ones(2)}, {"format": "pt", "config": "{}"})
    checkpoint = open_checkpoint(file(content))
    assert checkpoint.metadata == {"format": "pt", "config": "{}"}
    assert checkpoint.config == {}
    assert list(checkpoint.arrays) == ["x"]


@pytest.mark.parametrize(
    ("said", "config"),
    [('{"n_layer": 2}', {"n_layer": 2}), ("[1]", None), ("{", None), ("[" * 100_000, None)],
    ids=range(4),
)
def test_a_config_among_the_metadata(file, said, config):
    content = safetensors_bytes({"x": np.ones(2)}, {"config": said})
    assert open_checkpoint(file(content)).config == config


def test_numbers_are_mapped_and_read_when_they_are_used(file):
    path = file(safetensors_bytes({"x": np.zeros(2048)}))
    x = open_checkpoint(path).arrays["x"]
    assert memory_of(x) == "mmap"
    assert not x.flags.writeable
    with path.open("r+b") as stream:
        stream.seek(-8, 2)
        stream.write(np.float64(7).tobytes())
    assert x[-1] == 7


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "cannot be read as safetensors"),
        (b"PK\x03\x04 a pickle inside a zip", "cannot be read as safetensors"),
        (LITERAL[:-1], "ends 1 byte behind the end of the file"),
        (LITERAL + b"\0", "1 byte at its end belong to no tensor"),
        (LITERAL[:30], "64 bytes of header follow, and 22 do"),
        (LITERAL.replace(b"F32", b"Q32"), "is stored as Q32, which is not supported"),
        (LITERAL.replace(b"[0,8]", b"[0,4]"), "takes 8 bytes as F32 .* data_offsets give it 4"),
        (LITERAL.replace(b"[2,1]", b"[2,2]"), "takes 16 bytes as F32 .* data_offsets give it 8"),
        (b"\xff" * 7 + b"\x7f" + LITERAL[8:], "cannot be read as safetensors"),
        (
            one("F8_E8M0", b"\0\0", [2]),
            "tensor x of .* is stored as F8_E8M0, which is not supported",
        ),
    ],
    ids=lambda value: value.decode("latin1")[-12:] if isinstance(value, bytes) else "",
)
def test_a_bad_file_is_refused(file, content, why):
    with pytest.raises(ModelError, match=why):
        open_checkpoint(file(content))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"none\.safetensors is not there"):
        open_checkpoint(tmp_path / "none.safetensors")


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ModelError, match="cannot be read: it is a folder, not a file"):
        open_checkpoint(tmp_path)


# Its tensors, handed out


def test_each_tensor_is_taken_by_its_new_name(file):
    x = np.ones((2, 3), "float32")
    tensors = taken(file, lambda name: name.removeprefix("old."), **{"old.x": x})
    assert "x" in tensors
    assert "old.x" not in tensors
    assert tensors.shape("x") == (2, 3)
    np.testing.assert_array_equal(tensors.take("x", 2, 3), x, strict=True)
    tensors.finish()


@pytest.mark.parametrize("asked", ["take", "shape"])
def test_a_missing_tensor_is_named(file, asked):
    with pytest.raises(ModelError, match=r"^model\.safetensors lacks the tensor h\.0\.b$"):
        getattr(taken(file, x=np.ones(2)), asked)("h.0.b")


@pytest.mark.parametrize("shape", [(2, 3), (6,), (3, 2, 1), ()])
def test_another_shape_is_refused_under_the_name_in_the_file(file, shape):
    tensors = taken(file, lambda name: name.removeprefix("old."), **{"old.x": np.ones((3, 2))})
    why = (
        r"tensor old\.x of model\.safetensors has the shape \[3, 2\], and the config asks for "
        rf"\[{', '.join(map(str, shape))}\]"
    )
    with pytest.raises(ModelError, match=why):
        tensors.take("x", *shape)


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_integers_where_floats_belong_are_refused(file, dtype):
    with pytest.raises(ModelError, match=r"tensor x of model\.safetensors holds integers"):
        taken(file, x=np.ones(2, dtype)).take("x", 2)


def test_bf16_is_no_integer(file):
    checkpoint = open_checkpoint(file(one("BF16", b"\x80\x3f\x00\xc0", [2])))
    assert Tensors(checkpoint, str, FLOAT32).take("x", 2).shape == (2,)


@pytest.mark.parametrize(("count", "told"), [(1, "a$"), (3, "a, b, c$"), (5, "a, b, c and 2 more")])
def test_tensors_that_nobody_asked_for_are_named(file, count, told):
    tensors = taken(file, **{name: np.ones(1) for name in "abcde"[:count]})
    with pytest.raises(ModelError, match=f"holds tensors that .* does not have: {told}"):
        tensors.finish()


def test_ignored_tensors_are_not_left_over(file):
    tensors = taken(file, mask=np.ones(3, "uint8"), other=np.ones(2))
    tensors.ignore(["mask", "not.there"])
    with pytest.raises(ModelError, match=r"does not have: other$"):
        tensors.finish()


def test_two_names_for_one_tensor_are_refused(file):
    pair = {"a.x": np.ones(2), "b.x": np.zeros(2)}
    why = r"model\.safetensors holds one tensor under two names: a\.x and b\.x"
    with pytest.raises(ModelError, match=why):
        taken(file, lambda name: name[2:], **pair)


def test_numbers_survive_as_they_are(file):
    x = np.array([math.pi, -0.0, 5e-324, 1e308])
    assert taken(file, x=x).take("x", 4).tobytes() == x.tobytes()
