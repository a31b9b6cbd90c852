# Model folders that are broken or odd: each is refused in a sentence that names file and cause.

import json
import os
import re
import resource
import shutil
import subprocess
import sys

import numpy as np
import pytest

import gptscope
from gptscope.errors import GptscopeError, ModelError, NotFiniteWarning
from gptscope.model.shipped import shipped_folders
from tests.helpers.cli import needs, on_text, refused, run_cli, text_commands
from tests.helpers.folders import (
    bf16_bits,
    changed_copy,
    config_of,
    tensors_of,
    write_model,
    write_shards,
)

LFS = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)
ENTRY = {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}
DEEP = b'{"a":' + b"[" * 100_000


def header(**entries):
    return json.dumps(entries).encode()


def file_of(head, size=24):
    return len(head).to_bytes(8, "little") + head + bytes(size)


def with_entry(size=24, **changes):
    return file_of(header(x=ENTRY | changes), size)


def two(first, second, size):
    places = {"x": first, "y": second}
    entries = {
        name: {"dtype": "U8", "shape": [end - begin], "data_offsets": [begin, end]}
        for name, (begin, end) in places.items()
    }
    return file_of(header(**entries), size)


# What lies in place of good weights -> the cause that is told.
WEIGHTS = {
    "a Git-LFS pointer": (LFS, r"is a Git-LFS pointer of \d+ bytes, not the file itself"),
    "nothing": (b"", "it has 0 bytes, and the length of the header takes 8"),
    "a few bytes": (b"abc", "it has 3 bytes, and the length of the header takes 8"),
    "a pickle": (b"\x80\x04\x95" + bytes(40), "begins like a PyTorch file, which may run code"),
    "a zip of pickles": (b"PK\x03\x04" + bytes(40), "begins like a PyTorch file"),
    "a page of a site": (
        b"<!DOCTYPE html>" * 9,
        r"say that [\d,]+ bytes of header follow, and 127",
    ),
    "header length 2^63": ((1 << 63).to_bytes(8, "little") + bytes(9), "9,223,372,036,854,775,808"),
    "header length 2^64-1": (b"\xff" * 20, "18,446,744,073,709,551,615 bytes of header follow"),
    "a header cut short": (with_entry()[:40], r"bytes of header follow, and 32 do"),
    "not UTF-8": (file_of(b'{"\xff": 1}'), "its header is not JSON: 'utf-8' codec"),
    "not JSON": (file_of(b'{"x": }'), "its header is not JSON: Expecting value"),
    "NaN in JSON": (file_of(b'{"x": NaN}'), "its header is not JSON: NaN is no number"),
    "half a character": (file_of(b'{"\\ud800": {}}'), "its header is not JSON: 'utf-8' codec"),
    "a number of many digits": (file_of(b'{"x": ' + b"9" * 5000 + b"}"), "its header is not JSON"),
    "nothing as header": (file_of(b""), "its header is not JSON"),
    "an array": (file_of(b"[1]"), "its header is not a JSON object"),
    "a word": (file_of(b'"x"'), "its header is not a JSON object"),
    "a header too deep": (file_of(DEEP), "its header is not JSON: maximum recursion depth"),
    "metadata that are numbers": (
        file_of(header(__metadata__={"a": 1}), 0),
        "its metadata must be strings",
    ),
    "metadata that are a list": (
        file_of(header(__metadata__=["a"]), 0),
        "metadata must be strings",
    ),
    "a name twice": (
        file_of(b'{"x": %b, "x": %b}' % ((json.dumps(ENTRY).encode(),) * 2)),
        "its header has x twice",
    ),
    "a key twice": (
        file_of(b'{"x": {"dtype": "F32", "dtype": "F16"}}'),
        "its header has dtype twice",
    ),
    "no entry": (file_of(header(x=3)), "tensor x of .* has no dtype, shape and data_offsets"),
    "no dtype": (
        with_entry(dtype=None),
        "tensor x of .* is stored as None, which is not supported",
    ),
    "an unknown dtype": (
        with_entry(dtype="Q5"),
        "tensor x of .* is stored as Q5, which is not supp",
    ),
    "F8 of scales": (
        with_entry(dtype="F8_E8M0"),
        "tensor x of .* is stored as F8_E8M0, which is not supported",
    ),
    "no shape": (with_entry(shape=None), "tensor x of .* has the shape None, which is not a list"),
    "a negative size": (
        with_entry(shape=[-2, -3]),
        r"has the shape \[-2, -3\], which is not a list",
    ),
    "a size with a fraction": (with_entry(shape=[2.0, 3]), r"has the shape \[2.0, 3\], which is"),
    "true as a size": (
        with_entry(shape=[True, 6]),
        r"has the shape \[True, 6\], which is not a list",
    ),
    "a size of 2^62": (
        with_entry(shape=[1 << 62]),
        r"has the shape \[46116860.*\], which is not a list",
    ),
    "65 axes": (with_entry(shape=[1] * 65), r"has the shape \[1, 1, .*\.\.\., which is not a list"),
    "no offsets": (with_entry(data_offsets=None), "has the data_offsets None, which are not begin"),
    "one offset": (
        with_entry(data_offsets=[0]),
        r"has the data_offsets \[0\], which are not begin",
    ),
    "offsets turned": (
        with_entry(data_offsets=[24, 0]),
        r"data_offsets \[24, 0\], which are not begin",
    ),
    "a negative offset": (
        with_entry(data_offsets=[-24, 0]),
        r"offsets \[-24, 0\], which are not begin",
    ),
    "a fraction as offset": (
        with_entry(data_offsets=[0, 24.0]),
        r"\[0, 24.0\], which are not begin",
    ),
    "true as an offset": (
        with_entry(data_offsets=[False, 24]),
        r"\[False, 24\], which are not begin",
    ),
    "sizes that do not fit": (
        with_entry(shape=[2, 4]),
        r"tensor x of .* takes 32 bytes as F32 \[2, 4\], and its data_offsets give it 24",
    ),
    "a type that does not fit": (with_entry(dtype="F64"), "takes 48 bytes as F64"),
    "sizes whose product is huge": (
        with_entry(shape=[1 << 40] * 9),
        "takes too many bytes for any file as F32",
    ),
    "one byte short": (with_entry(23), "x ends 1 byte behind the end of the file, which may have"),
    "offsets out of range": (
        with_entry(data_offsets=[1 << 40, (1 << 40) + 24]),
        "1,099,511,627,776 bytes before the tensor x belong to no tensor",
    ),
    "one byte too many": (with_entry(25), "1 byte at its end belong to no tensor"),
    "overlapping": (two((0, 16), (8, 24), 24), "the tensors x and y overlap"),
    "one inside the other": (two((0, 24), (8, 16), 24), "the tensors x and y overlap"),
    "a gap": (two((0, 8), (16, 24), 24), "8 bytes before the tensor y belong to no tensor"),
    "nothing in it": (file_of(b"{}", 0), r"model\.safetensors lacks the tensor"),
    "a tensor without numbers": (
        file_of(
            header(**{"h.0.attn.c_attn.weight": ENTRY | {"shape": [0], "data_offsets": [0, 0]}}), 0
        ),
        r"model\.safetensors lacks the tensor wpe\.weight|has the shape \[0\]",
    ),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_broken_weights_have_their_own_sentence(tmp_path, name):
    content, why = WEIGHTS[name]
    write_model(tmp_path, {}, config_of("gpt2"))
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ModelError, match=why) as fault:
        gptscope.load(tmp_path)
    assert "model.safetensors" in fault.value.message
    assert refused(run_cli(["next", "--ids", "1", "-m", str(tmp_path)]), 1)[0]


def test_no_two_causes_share_a_pattern_by_accident():
    assert len({why for _, why in WEIGHTS.values()}) > len(WEIGHTS) - 6


@pytest.mark.parametrize("cut", [1, 2, 1000])
def test_a_file_cut_short(folder, cut):
    path = folder()
    file = path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-cut])
    with pytest.raises(ModelError, match=rf"ends {cut:,} bytes? behind the end of the file"):
        gptscope.load(path)


def test_a_pointer_says_how_to_get_the_weights(tmp_path):
    (tmp_path / "model.safetensors").write_bytes(LFS)
    said, hint = refused(run_cli(["next", "x", "-m", str(tmp_path)]), 1)
    assert said.endswith("is a Git-LFS pointer of 130 bytes, not the file itself")
    assert hint == "git lfs pull puts it in its place"


def test_a_header_that_is_too_long_is_not_read(tmp_path):
    head = b"{" + b" " * 10_000_001 + b"}"
    (tmp_path / "model.safetensors").write_bytes(file_of(head, 0))
    with pytest.raises(ModelError, match="its header is longer than 10,000,000 bytes"):
        gptscope.load(tmp_path)


@pytest.mark.parametrize(
    "head",
    [
        b"{" + b",".join(b'"%d":{}' % i for i in range(600_000)) + b',"7":{}}',
        b'{"a":[' + b"[]," * 3_000_000 + b"1]}",
        b'{"a":"' + b"\\u00e9" * 1_600_000 + b'"}',
    ],
    ids=["many names and one twice", "many lists", "a long word"],
)
def test_the_longest_headers_are_refused(tmp_path, head):
    (tmp_path / "model.safetensors").write_bytes(file_of(head, 0))
    with pytest.raises(ModelError, match=r"has 7 twice|has no dtype, shape and data_offsets"):
        gptscope.load(tmp_path)


def test_a_large_lie_takes_no_memory(tmp_path):
    # A file of many gigabytes, none of them written, whose header claims all of them.
    file = tmp_path / "model.safetensors"
    with file.open("wb") as stream:
        stream.write((40 << 30).to_bytes(8, "little"))
        stream.truncate(50 << 30)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelError, match="its header is longer than"):
        gptscope.load(tmp_path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000  # KiB


# Files that are none


def test_weights_that_are_a_folder(tmp_path):
    (tmp_path / "model.safetensors").mkdir()
    with pytest.raises(ModelError, match=r"model\.safetensors cannot be read: it is a folder"):
        gptscope.load(tmp_path)


NAMES = ["model.safetensors", "config.json", "tokenizer.json", "text.json"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["pipe", "endless device", "loop", "dangling"])
def test_what_is_no_plain_file_is_never_waited_for(folder, name, kind):
    path = folder()
    file = path / name
    shutil.copy(shipped_folders()["tiny"] / "tokenizer.json", path)
    file.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(file)
    else:
        targets = {"endless device": "/dev/zero", "loop": file, "dangling": path / "nothing"}
        file.symlink_to(targets[kind])
    said, _ = refused(run_cli(["next", "Lily", "-m", str(path)]), 1)
    assert name in said
    causes = ["it is a pipe", "a device", "not a file", "symbolic links", "not there"]
    assert any(cause in said for cause in causes)


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/null", "loop"])
def test_a_model_that_is_a_device_or_a_loop(tmp_path, target):
    file = tmp_path / "a.safetensors"
    file.symlink_to(file if target == "loop" else target)
    with pytest.raises(ModelError, match=r"a\.safetensors cannot be (read|opened): "):
        gptscope.load(file)


@pytest.mark.parametrize("name", ["x" * 5000, "a\0b", "\x1b[31m", "\u202e"], ids=ascii)
def test_odd_names_of_models(name):
    if "\0" in name:
        with pytest.raises(ModelError, match="cannot be opened"):
            gptscope.load(name)
        return
    said, _ = refused(run_cli(["tokens", "x", "-m", name]), 1)
    assert len(said) < 200


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("name", ["model.safetensors", "config.json", "tokenizer.json", "."])
def test_what_may_not_be_read(folder, name):
    path = folder()
    shutil.copy(shipped_folders()["tiny"] / "tokenizer.json", path)
    (path / name).chmod(0)
    try:
        with pytest.raises(ModelError, match="Permission denied"):
            gptscope.load(path)
    finally:
        (path / name).chmod(0o700)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_what_the_system_will_not_open(folder, monkeypatch, name):
    path, usual = folder(), type(folder()).open

    def denied(self, *args, **kwargs):
        if self.name == name:
            raise PermissionError(13, "Permission denied", str(self))
        return usual(self, *args, **kwargs)

    monkeypatch.setattr(type(path), "open", denied)
    with pytest.raises(ModelError, match=f"{name} cannot be read.*Permission denied"):
        gptscope.load(path)


# The config


CONFIGS = {
    "missing": (None, r"config\.json is missing, and the weights carry no config"),
    "malformed": (b"{", r"config\.json is not JSON"),
    "not UTF-8": (b'{"\xff": 1}', r"config\.json is not UTF-8"),
    "too deep": (b'{"a":' * 100_000, r"config\.json is nested too deeply"),
    "an array": (b"[]", r"config\.json is not a JSON object"),
    "too long": (
        b" " * 10_000_001,
        r"config\.json is longer than 10,000,000 bytes, and is not read",
    ),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_broken_config_has_its_own_sentence(folder, name):
    content, why = CONFIGS[name]
    path = folder()
    if content is None:
        (path / "config.json").unlink()
    else:
        (path / "config.json").write_bytes(content)
    with pytest.raises(ModelError, match=why):
        gptscope.load(path)


LIES = [
    ("n_layer", 10**12, "n_layer is 1000000000000, not below 2,147,483,648"),
    ("n_layer", (1 << 31) - 1, r"n_layer is 2147483647, not at most 10,000"),
    ("n_layer", 9_999, r"lacks the tensor h\.2\."),
    ("n_layer", 1, "holds tensors that this kind of model does not have"),
    ("n_embd", 0, "n_embd is 0, not a whole number above 0"),
    ("n_embd", -16, "n_embd is -16, not a whole number above 0"),
    ("n_embd", 16.0, r"n_embd is 16\.0, not a whole number above 0"),
    ("n_embd", "16", "n_embd is '16', not a whole number above 0"),
    ("n_embd", True, "n_embd is True, not a whole number above 0"),
    ("n_embd", [16], r"n_embd is \[16\], not a whole number above 0"),
    ("n_embd", 32, r"has the shape \[24, 16\], and the config asks for \[24, 32\]"),
    ("n_embd", 10**4000, "n_embd is 1000000.*, not below"),
    ("n_head", 3, "3 heads do not divide the width 16"),
    ("n_head", 32, "32 heads do not divide the width 16"),
    ("vocab_size", 10**9, r"has the shape \[61, 16\], and the config asks for \[1000000000, 16\]"),
    ("n_positions", 10**9, r"has the shape \[24, 16\], and the config asks for \[1000000000, 16\]"),
    ("n_inner", 10**9, r"and the config asks for \[16, 1000000000\]"),
    ("layer_norm_epsilon", float("nan"), "layer_norm_epsilon is nan, not a positive number"),
    ("layer_norm_epsilon", 10**400, "layer_norm_epsilon is 1000.*, not a positive number"),
    ("eos_token_id", 10**30, "eos_token_id is 1000.*, not a token id"),
    ("activation_function", "x" * 9999, "activation_function is 'xxx.*, not a word"),
    ("model_type", "\x1b[31m", "the model type is "),
    ("x" * 9999, 1, r"xxx\.\.\. = 1 is not understood"),
]


@pytest.mark.parametrize(("key", "value", "why"), LIES, ids=lambda x: str(x)[:20])
def test_a_config_that_lies(folder, key, value, why):
    path = folder(config={key: value})
    with pytest.raises(ModelError, match=why) as fault:
        gptscope.load(path)
    assert len(fault.value.message) < 300


@pytest.mark.parametrize(
    "changes",
    [
        {"n_positions": 10**9},
        {"n_positions": (1 << 31) - 1, "positions": "rotary"},
        {"n_positions": (1 << 31) - 1, "positions": "none"},
        {"n_embd": 1 << 30, "n_head": 1},
        {"rope_theta": 5e-324, "positions": "rotary"},
    ],
    ids=str,
)
def test_a_toy_whose_positions_would_fill_the_memory(folder, changes):
    case = "toy-rotary" if "positions" in changes else "toy"
    with pytest.raises(ModelError, match=r"are more than are computed|not a positive number"):
        gptscope.load(folder(case, config=changes))


# The tokenizer


def test_without_a_tokenizer_ids_work(folder):
    path = str(folder())
    assert run_cli(["next", "--ids", "1,2", "-m", path]).status == 0
    said, hint = refused(run_cli(["next", "Lily", "-m", path]), 2)
    assert said == "this model has no tokenizer.json, so it cannot read a text"
    assert hint.startswith("give token ids")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"{}", b'{"model": 3}', b"[" * 10**5])
def test_a_malformed_tokenizer(folder, content):
    path = folder()
    (path / "tokenizer.json").write_bytes(content)
    said, hint = refused(run_cli(["next", "Lily", "-m", str(path)]), 1)
    assert "tokenizer.json is not a tokenizer that can be read: " in said
    assert "without that file, the model can be given token ids" in hint


def test_a_tokenizer_that_is_too_long(folder):
    path = folder()
    with (path / "tokenizer.json").open("wb") as stream:
        stream.truncate(100_000_001)
    with pytest.raises(ModelError, match=r"tokenizer\.json is longer than 100,000,000 bytes"):
        gptscope.load(path)


@pytest.mark.parametrize("command", text_commands())
def test_a_tokenizer_of_another_vocabulary(folder, command):
    path = folder()
    shutil.copy(shipped_folders()["tiny"] / "tokenizer.json", path)
    name, *rest = on_text(command, "Lily")
    said, hint = refused(run_cli([name, "-m", str(path), *rest]), 2)
    assert said == "tokenizer.json makes the token id 643 of 'Lily', and this model has ids 0 to 60"
    assert hint == "the tokenizer may be that of another model"


def test_a_tokenizer_with_too_many_tokens_is_warned_about(folder):
    path = folder()
    shutil.copy(shipped_folders()["tiny"] / "tokenizer.json", path)
    result = run_cli(["tokens", "!", "-m", str(path)])
    said = "warning: tokenizer.json has 4,096 tokens, and this model 61: "
    assert (result.status, result.err) == (0, f"{said}it may be that of another model\n")


# Files that could run code


@pytest.mark.parametrize("name", ["pytorch_model.bin", "a.pt", "a.PTH", "a.ckpt", "a.pkl"])
def test_a_folder_with_a_pickle_alone(tmp_path, name):
    (tmp_path / "config.json").write_text(json.dumps(config_of("gpt2")), "utf-8")
    (tmp_path / name).write_bytes(b"cos\nsystem\n(S'touch run'\ntR.")
    said, hint = refused(run_cli(["next", "x", "-m", str(tmp_path)]), 1)
    why = f"{name} may run code when it is opened, so it is not opened"
    assert said == f"{tmp_path} has no model.safetensors, and {why}"
    assert "save_file(" in hint
    assert "save_pretrained(" in hint
    assert not (tmp_path / "run").exists()


def test_a_pickle_beside_the_weights_is_not_looked_at(folder):
    path = folder()
    (path / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'false'\ntR.")
    assert gptscope.load(path).spec.n_layers == 2


def test_the_way_to_convert_works(tmp_path):
    torch = pytest.importorskip("torch")
    save_file = pytest.importorskip("safetensors.torch").save_file
    weights = {name: torch.from_numpy(x) for name, x in tensors_of("gpt2").items()}
    torch.save(weights, tmp_path / "pytorch_model.bin")
    with pytest.raises(ModelError) as fault:
        gptscope.load(tmp_path)
    words = fault.value.hint.partition("; ")[2].partition("; ")[0]
    assert words.startswith("save_file(")
    code = words.replace("FILE", "file").replace("'model.safetensors'", "out")
    known = {"file": tmp_path / "pytorch_model.bin", "out": tmp_path / "model.safetensors"}
    exec(code, {"torch": torch, "save_file": save_file, **known})  # noqa: S102
    (tmp_path / "config.json").write_text(json.dumps(config_of("gpt2")), "utf-8")
    assert gptscope.load(tmp_path).spec.n_layers == 2


def test_code_in_the_folder_is_never_run(folder):
    path = folder(config={"auto_map": {"AutoModel": "modeling.Mine"}, "architectures": ["Mine"]})
    for name in ("modeling.py", "__init__.py", "sitecustomize.py", "numpy.py", "conftest.py"):
        (path / name).write_text("raise SystemExit(9)\n", "utf-8")
    done = subprocess.run(
        [sys.executable, "-P", "-m", "gptscope", "next", "--ids", "1", "-m", "."],
        cwd=path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in (os.getcwd(), *sys.path) if p)},  # noqa: PTH109
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


# Weights in several files


def index(folder, **names):
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {}, "weight_map": names}), "utf-8")
    return path


def test_an_index_that_names_an_absent_shard(tmp_path):
    shutil.copytree(shipped_folders()["toy"], tmp_path, dirs_exist_ok=True)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-1-of-2.safetensors")
    index(tmp_path, a="model-1-of-2.safetensors", b="model-2-of-2.safetensors")
    with pytest.raises(
        ModelError, match=r"index\.json names model-2-of-2\.safetensors, which is no"
    ):
        gptscope.load(tmp_path)


@pytest.mark.parametrize("named", ["folder", "index", "shard"])
@pytest.mark.parametrize("has_index", [True, False])
def test_weights_in_several_files(tmp_path, named, has_index):
    stored, config = tensors_of("gpt2"), config_of("gpt2")
    whole = gptscope.load(write_model(tmp_path / "whole", stored, config))
    path = write_shards(tmp_path / "parts", stored, config, 3, index=has_index)
    inside = {"index": "model.safetensors.index.json", "shard": "model-00002-of-00003.safetensors"}
    if named == "index" and not has_index:
        return
    parts = gptscope.load(path / inside.get(named, "."))
    expected = gptscope.trace(whole, [1, 2, 3]).logits
    np.testing.assert_array_equal(gptscope.trace(parts, [1, 2, 3]).logits, expected, strict=True)


@pytest.mark.parametrize("name", ["../a.safetensors", "/etc/passwd", "a/b.safetensors"])
def test_an_index_does_not_lead_out_of_its_folder(tmp_path, name):
    index(tmp_path, x=name)
    with pytest.raises(ModelError, match=f"names {name}, which lies in another folder"):
        gptscope.load(tmp_path)


@pytest.mark.parametrize("content", ["{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}'])
def test_an_index_without_a_map(tmp_path, content):
    (tmp_path / "model.safetensors.index.json").write_text(content, "utf-8")
    with pytest.raises(ModelError, match="has no weight_map that names a file for each tensor"):
        gptscope.load(tmp_path)


def test_weights_of_another_name_are_named(tmp_path):
    write_model(tmp_path, tensors_of("gpt2"), config_of("gpt2"))
    (tmp_path / "model.safetensors").rename(tmp_path / "step.safetensors")
    with pytest.raises(
        ModelError, match=r"has no model\.safetensors, but step\.safetensors"
    ) as fault:
        gptscope.load(tmp_path)
    assert fault.value.hint == f"name the file: {tmp_path / 'step.safetensors'}"


# Weights that are not finite


def not_finite(folder, value, name="transformer.h.1.mlp.c_fc.weight", kind="float32"):
    stored = tensors_of("gpt2")
    changed = stored[name].copy()
    changed.flat[-1] = value
    if kind == "BF16":
        tensors = {key: bf16_bits(x) for key, x in (stored | {name: changed}).items()}
        return folder(tensors=tensors, kinds=dict.fromkeys(tensors, "BF16"))
    return folder(tensors={name: changed.astype(kind)})


@pytest.mark.parametrize("kind", ["float32", "float16", "float64", "BF16"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_weights_that_are_not_finite_are_told_once_by_the_first_pass(folder, value, kind):
    model = gptscope.load(not_finite(folder, value, kind=kind))
    why = (
        r"tensor transformer\.h\.1\.mlp\.c_fc\.weight of .*model\.safetensors holds NaN or infinite"
    )
    with np.errstate(all="ignore"):
        with pytest.warns(NotFiniteWarning, match=why):
            trace = gptscope.trace(model, [1, 2])
        gptscope.trace(model, [1, 2])  # pytest makes a warning an error
    assert not np.isfinite(trace.logits).all()


@pytest.mark.parametrize("kind", ["float16", "BF16"])
def test_the_largest_finite_numbers_are_no_fault(folder, kind):
    model = gptscope.load(not_finite(folder, {"float16": 65504, "BF16": 3e38}[kind], kind=kind))
    with np.errstate(all="ignore"):
        gptscope.trace(model, [1, 2])


def test_opening_reads_no_number(folder):
    gptscope.load(not_finite(folder, np.nan))


COMMANDS = [name for name in text_commands() if name not in ("tokens", "generate")]
EARLIER = ("embeddings", "attention", "mlp", "experiment order")  # they end before that block


@pytest.mark.parametrize("fmt", ["table", "json"])
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_warns_in_one_line_and_ends_well(folder, command, fmt):
    path = not_finite(folder, np.nan)
    result = run_cli([command, *needs(command), "--ids", "1,2", "-m", str(path), "-f", fmt])
    if command in EARLIER:
        assert (result.status, result.err) == (0, "")
        return
    first, *others = result.err.splitlines()
    assert first == (
        f"warning: tensor transformer.h.1.mlp.c_fc.weight of {path}/model.safetensors "
        "holds NaN or infinite numbers"
    )
    assert result.status == (1 if others else 0)
    assert all(re.match(r"error: the logits .*hold NaN|hint: ", line) for line in others)


def test_a_command_that_reads_no_weights_does_not_warn(folder):
    path = not_finite(folder, np.nan)
    assert run_cli(["tokens", "--ids", "1", "-m", str(path)]).err == ""


# All of them


def test_every_fault_is_the_programs_own(tmp_path):
    assert issubclass(ModelError, GptscopeError)
    for content, _ in WEIGHTS.values():
        (tmp_path / "model.safetensors").write_bytes(content)
        with pytest.raises(GptscopeError):
            gptscope.load(tmp_path / "model.safetensors")


def test_a_changed_copy_without_changes_opens(tmp_path):
    assert gptscope.load(changed_copy(tmp_path)).spec.n_layers == 2


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_pointer_in_place_of_any_file_is_known(folder, name):
    path = folder()
    (path / name).write_bytes(LFS)
    said, hint = refused(run_cli(["tokens", "--ids", "1", "--model", str(path)]), 1)
    assert said == f"{path / name} is a Git-LFS pointer of {len(LFS)} bytes, not the file itself"
    assert hint == "git lfs pull puts it in its place"
