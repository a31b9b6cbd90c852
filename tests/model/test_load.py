import json
import shutil

import numpy as np
import pytest

import gptscope
from gptscope.errors import ModelError, UsageError
from gptscope.model.dtypes import widen
from gptscope.model.shipped import EXAMPLES, shipped_folders
from gptscope.model.weights import tables
from tests.helpers.folders import (
    CASES,
    GOLDEN,
    bf16_bits,
    changed_copy,
    config_of,
    ids_of,
    tensors_of,
    write_model,
)

IDS = ids_of("gpt2")


def logits(path, dtype="float32"):
    return gptscope.trace(gptscope.load(path, dtype), IDS).logits


def assert_same(one, two, dtype="float32"):
    # To rounding: where the numbers lie in memory may change how they are added up.
    atol = 1e-5 if dtype == "float32" else 1e-12
    np.testing.assert_allclose(logits(one, dtype), logits(two, dtype), atol=atol, strict=True)


def is_mapped(array):
    while array is not None and type(array).__name__ != "mmap":
        array = getattr(array, "base", None)
    return array is not None


def numbers_of(path, dtype):
    model = gptscope.load(path, dtype)
    return [widen(x, np.dtype(dtype)) for x in tables((*model.blocks, model.ln_final))]


# Where a model is found


def test_every_shipped_model_is_there():
    assert tuple(shipped_folders()) == tuple(EXAMPLES)
    assert "tiny" in EXAMPLES


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_shipped_model_by_its_name(name):
    assert gptscope.load(name).name == name


@pytest.mark.parametrize("as_type", [str, lambda path: path])
def test_a_folder_or_its_file(as_type):
    folder = GOLDEN / "gpt2"
    by_folder = gptscope.load(as_type(folder))
    by_file = gptscope.load(as_type(folder / "model.safetensors"))
    assert by_folder.name == by_file.name == "gpt2"
    assert by_folder.spec == by_file.spec
    assert by_folder.n_params == by_file.n_params > 0


def test_a_folder_from_within(monkeypatch):
    monkeypatch.chdir(GOLDEN)
    assert gptscope.load("mingpt").name == "mingpt"
    monkeypatch.chdir("mingpt")
    assert gptscope.load(".").name == gptscope.load("model.safetensors").name == "mingpt"


def test_a_file_of_another_name(tmp_path):
    write_model(tmp_path, tensors_of("gpt2"), config_of("gpt2"))
    (tmp_path / "model.safetensors").rename(tmp_path / "step-100.safetensors")
    assert_same(tmp_path / "step-100.safetensors", GOLDEN / "gpt2")


def test_a_file_of_another_name_names_the_model(tmp_path):
    write_model(tmp_path, tensors_of("gpt2"), config_of("gpt2"))
    (tmp_path / "model.safetensors").rename(tmp_path / "step-100.safetensors")
    assert gptscope.load(tmp_path / "step-100.safetensors").name == "step-100"


def test_a_link_to_the_weights_leaves_the_name_to_its_folder(tmp_path):
    # So lie the snapshots in the cache of Hugging Face.
    write_model(tmp_path / "gpt2", tensors_of("gpt2"), config_of("gpt2"))
    file = tmp_path / "gpt2" / "model.safetensors"
    blob = tmp_path / "blobs" / "0123abcd"
    blob.parent.mkdir()
    file.rename(blob)
    file.symlink_to(blob)
    assert gptscope.load(tmp_path / "gpt2").name == "gpt2"


def test_an_empty_folder(tmp_path):
    with pytest.raises(ModelError, match=f"{tmp_path} holds no weights") as fault:
        gptscope.load(tmp_path)
    assert "model.safetensors" in fault.value.hint


@pytest.mark.parametrize("name", ["no-such-model", "model.safetensors"])
def test_a_model_that_is_not_there(tmp_path, name):
    with pytest.raises(ModelError, match=f"there is no model at .*{name}") as fault:
        gptscope.load(tmp_path / name)
    assert "tiny" in fault.value.hint


@pytest.mark.parametrize("name", ["pytorch_model.bin", "ckpt.pt", "a.pth", "a.ckpt", "a.pkl"])
@pytest.mark.parametrize("is_there", [True, False])
def test_files_that_may_run_code_are_not_opened(tmp_path, name, is_there):
    if is_there:
        (tmp_path / name).write_bytes(b"\x80\x04.")
    with pytest.raises(ModelError, match=f"{name} may run code when it is opened") as fault:
        gptscope.load(tmp_path / name)
    assert "save_file(" in fault.value.hint
    assert "save_pretrained(" in fault.value.hint


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "int8", "double", ""])
def test_a_dtype_that_nothing_is_computed_in(dtype):
    with pytest.raises(UsageError, match=rf"dtype '{dtype}' is not one of float32, float64"):
        gptscope.load("tiny", dtype=dtype)


# What is there, and what is made of it


def test_every_golden_model_is_opened_without_reading_it(golden_folder):
    model = gptscope.load(golden_folder)
    table = model.position_table if model.spec.positions == "learned" else None  # not computed
    found = list(tables((model.token_table, table, model.output_table, model.ln_final)))
    assert len(found) >= 2 + (table is not None) + (model.ln_final is not None)
    found += tables(tuple(model.blocks))
    assert len(found) >= 8 * model.spec.n_layers
    assert all(map(is_mapped, found))
    assert not any(array.flags.writeable for array in found)


@pytest.mark.parametrize("kind", ["float16", "BF16", "float64"])
def test_narrow_tables_stay_as_they_lie_in_the_file(folder, kind):
    model = gptscope.load(folder(**converted(kind)))
    assert model.token_table.itemsize == {"float16": 2, "BF16": 2, "float64": 8}[kind]
    assert is_mapped(model.token_table)
    assert is_mapped(model.output_table)


def converted(kind):
    # The golden GPT-2 with every number stored in another format.
    tensors = tensors_of("gpt2")
    if kind == "BF16":
        kinds = dict.fromkeys(tensors, "BF16")
        return {"tensors": {name: bf16_bits(x) for name, x in tensors.items()}, "kinds": kinds}
    return {"tensors": {name: x.astype(kind) for name, x in tensors.items()}}


def rounded(kind):
    # The same numbers, rounded as that format rounds them, but stored in float32.
    tensors = tensors_of("gpt2")
    if kind == "BF16":
        wide = {name: bf16_bits(x).astype(np.uint32) << 16 for name, x in tensors.items()}
        return {name: bits.view(np.float32) for name, bits in wide.items()}
    return {name: x.astype(kind).astype(np.float32) for name, x in tensors.items()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["float16", "BF16"])
def test_narrow_weights_are_widened_exactly(tmp_path, kind, dtype):
    narrow = changed_copy(tmp_path / "narrow", **converted(kind))
    wide = changed_copy(tmp_path / "wide", tensors=rounded(kind))
    assert narrow.joinpath("model.safetensors").stat().st_size < (
        0.75 * wide.joinpath("model.safetensors").stat().st_size
    )
    assert_same(narrow, wide, dtype)
    for one, two in zip(*(numbers_of(path, dtype) for path in (narrow, wide)), strict=True):
        np.testing.assert_array_equal(one, two, strict=True)
    assert np.abs(logits(narrow) - logits(GOLDEN / "gpt2")).max() > 1e-4


def test_float64_weights_are_computed_in_float64(folder):
    path = folder(**converted("float64"))
    trace = gptscope.trace(gptscope.load(path), IDS)
    assert {trace[name].dtype for name in trace.names()} == {np.dtype("float64")}
    expected = logits(GOLDEN / "gpt2", "float64")
    np.testing.assert_allclose(trace.logits, expected, atol=1e-12, strict=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_everything_is_computed_in_the_dtype_that_was_asked_for(golden_folder, dtype):
    model = gptscope.load(golden_folder, dtype)
    trace = gptscope.trace(model, [0, 1])
    assert model.dtype == dtype
    assert {trace[name].dtype for name in trace.names()} == {np.dtype(dtype)}


def test_a_model_without_a_tokenizer():
    assert gptscope.load(GOLDEN / "gpt2").tokenizer is None


def test_the_tokenizer_lies_beside_the_weights(folder, tiny):
    path = folder()
    shutil.copy(shipped_folders()["tiny"] / "tokenizer.json", path)
    assert gptscope.load(path).tokenizer.encode("Lily") == tiny.tokenizer.encode("Lily")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"model": {"type": "Magic"}}'])
def test_a_malformed_tokenizer_is_refused(folder, text):
    path = folder()
    (path / "tokenizer.json").write_text(text, "utf-8")
    with pytest.raises(ModelError, match=r"tokenizer\.json is not a tokenizer that can be read"):
        gptscope.load(path)


@pytest.mark.parametrize(
    ("bos", "eos", "expected"),
    [(3, 5, (3, (5,))), ([3, 4], [5, 6], (3, (5, 6))), (None, None, (None, ())), (0, 0, (0, (0,)))],
)
def test_special_tokens(folder, bos, eos, expected):
    model = gptscope.load(folder(config={"bos_token_id": bos, "eos_token_id": eos}))
    assert (model.bos_id, model.end_ids) == expected


@pytest.mark.parametrize("key", ["bos_token_id", "eos_token_id"])
def test_a_special_token_that_is_no_id(folder, key):
    with pytest.raises(ModelError, match=f"{key} is 'end', not a token id"):
        gptscope.load(folder(config={key: "end"}))


# The config


def test_a_missing_config_is_refused(tmp_path):
    write_model(tmp_path, tensors_of("gpt2"))
    why = r"config\.json is missing, and the weights carry no config of their own"
    with pytest.raises(ModelError, match=why):
        gptscope.load(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[]", "3"])
def test_a_config_in_the_metadata_that_is_malformed_is_as_good_as_none(tmp_path, text):
    write_model(tmp_path, tensors_of("gpt2"), metadata={"config": text})
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        gptscope.load(tmp_path)


def test_a_config_in_the_metadata_that_is_too_deep(tmp_path):
    write_model(tmp_path, tensors_of("gpt2"), metadata={"config": "[" * 100_000})
    with pytest.raises(ModelError, match=r"config\.json is missing"):
        gptscope.load(tmp_path)


def test_a_config_in_the_metadata_is_read_where_there_is_no_file(tmp_path):
    metadata = {"config": json.dumps(config_of("gpt2"))}
    write_model(tmp_path, tensors_of("gpt2"), metadata=metadata)
    assert_same(tmp_path, GOLDEN / "gpt2")


def test_the_file_counts_more_than_the_metadata(folder):
    metadata = {"config": json.dumps(config_of("gpt2") | {"n_head": 2})}
    assert gptscope.load(folder(metadata=metadata)).spec.n_heads == 4


def test_a_malformed_config_is_refused(folder):
    path = folder()
    (path / "config.json").write_text("{", "utf-8")
    with pytest.raises(ModelError, match=r"config\.json is not JSON"):
        gptscope.load(path)


@pytest.mark.parametrize("kind", ["t5", "GPT2", "bert", ""])
def test_an_unknown_family_is_refused(folder, kind):
    why = f"the model type is {kind}, and the families understood are: .*gpt2, .*llama"
    with pytest.raises(ModelError, match=why):
        gptscope.load(folder(config={"model_type": kind}))


def test_a_family_that_nothing_tells_is_refused(tmp_path):
    write_model(tmp_path, {"x": np.ones(2)}, {"n_embd": 2})
    with pytest.raises(ModelError, match="the model type is not named, and the families"):
        gptscope.load(tmp_path)


def test_a_family_that_is_no_word_is_refused(folder):
    with pytest.raises(ModelError, match="model_type is 2, not a word"):
        gptscope.load(folder(config={"model_type": 2}))


@pytest.mark.parametrize(
    ("key", "value"), [("rotary_dim", 4), ("sliding_window", 8), ("clip_qkv", {"a": 1})]
)
def test_a_key_that_is_not_understood_is_refused(folder, key, value):
    with pytest.raises(ModelError, match=rf"config\.json: {key} = .* is not understood"):
        gptscope.load(folder(config={key: value}))


# The weights


def test_a_truncated_file_is_refused(folder):
    path = folder()
    file = path / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-4])
    with pytest.raises(ModelError, match=r"model\.safetensors .* ends 4 bytes behind the end of"):
        gptscope.load(path)


def test_a_dtype_that_is_not_known_is_refused(folder):
    name = "transformer.wte.weight"
    packed = np.zeros((61, 16), "uint8")
    path = folder(tensors={name: packed}, kinds={name: "F4_E2M1"})
    with pytest.raises(
        ModelError, match=f"{name} of .* is stored as F4_E2M1, which is not supported"
    ):
        gptscope.load(path)


@pytest.mark.parametrize("case", CASES)
def test_a_damaged_file_of_every_kind_is_refused(tmp_path, case):
    for source in (GOLDEN / case).iterdir():
        shutil.copy(source, tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"version https://git-lfs.github.com/spec/v1\n")
    with pytest.raises(ModelError, match=r"model\.safetensors is a Git-LFS pointer of 43 bytes"):
        gptscope.load(tmp_path)
