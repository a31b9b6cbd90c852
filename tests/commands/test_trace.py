import io
import json

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load, load_file, save

import gptscope
from gptscope import __version__
from tests.helpers.cli import SENTENCE, asked, column, parts, refused, run_cli, spawn
from tests.helpers.folders import GOLDEN

ROTARY = ["--model", str(GOLDEN / "toy-rotary"), "--ids", "3,1,4"]


def saved(path, *args):
    result = run_cli(["trace", "--output", str(path), *args])
    assert (result.status, result.out) == (0, b"")
    return read(path), result.err


def read(path):
    if path.suffix == ".safetensors":
        return load_file(path)
    with np.load(path, allow_pickle=False) as arrays:
        return dict(arrays)


def same(found, expected):
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


@pytest.fixture(params=["trace.safetensors", "trace.npz"])
def path(tmp_path, request):
    return tmp_path / request.param


def test_every_value_comes_back_bit_for_bit(path, trace):
    arrays, err = saved(path, SENTENCE)
    assert set(arrays) - {"ids", "tokens", "text", "model"} == set(trace.names())
    for name in trace.names():
        same(arrays[name], trace[name])
    same(arrays["ids"], np.array(trace.ids, np.int64))
    size = sum(trace[name].nbytes for name in trace.names())
    assert err == f"{len(trace.names())} values, {size:,} bytes of numbers -> {path}\n"


@pytest.mark.parametrize(
    ("keep", "names"),
    [
        (["logits"], ["logits"]),
        (["layers.0.heads.1.q"], ["layers.0.heads.1.q"]),
        (["layers.*.heads.1.q"], [f"layers.{n}.heads.1.q" for n in range(4)]),
        (["layers.2.heads.*.q"], [f"layers.2.heads.{n}.q" for n in range(4)]),
        (["blocks.0.hook_resid_pre"], ["layers.0.input"]),
        (["blocks.1.attn.hook_z"], [f"layers.1.heads.{n}.out" for n in range(4)]),
        (["attn_out", "logits"], [*(f"layers.{n}.attn_out" for n in range(4)), "logits"]),
        (
            ["layers.0.heads.1.q", "layers.0.heads.2.q"],
            ["layers.0.heads.1.q", "layers.0.heads.2.q"],
        ),
    ],
    ids=str,
)
def test_keep_names_what_is_saved(tmp_path, keep, names):
    options = [word for name in keep for word in ("--keep", name)]
    arrays, _ = saved(tmp_path / "a.safetensors", SENTENCE, *options)
    assert sorted(arrays) == sorted([*names, "ids"])
    assert column(parts("trace", SENTENCE, *options)[0], "name") == names


def test_in_float64(path):
    arrays, _ = saved(path, SENTENCE, "--dtype", "float64", "--keep", "logits")
    expected = gptscope.trace(gptscope.load("tiny", "float64"), arrays["ids"].tolist()).logits
    same(arrays["logits"], expected)


def test_heads_of_a_rotary_model(path):
    arrays, _ = saved(path, *ROTARY)
    assert "layers.0.heads.1.q_before_rope" in arrays
    assert "position_embeddings" not in arrays


def test_what_was_fed_stands_in_the_metadata(tmp_path):
    path = tmp_path / "a.safetensors"
    saved(path, SENTENCE, "--keep", "logits")
    with safe_open(path, "np") as file:
        told = file.metadata()
    assert json.loads(told.pop("tokens")) == ["Lily", " wanted", " to", " play", " with", " her"]
    assert told == {
        "schema": "gptscope/trace/1",
        "gptscope": __version__,
        "model": "tiny",
        "ids": "643,414,266,337,331,322",
        "text": SENTENCE,
    }


def test_what_was_fed_stands_in_an_npz(tmp_path):
    arrays, _ = saved(tmp_path / "a.npz", SENTENCE, "--keep", "logits")
    assert list(arrays) == ["logits", "ids", "tokens", "model", "text"]
    assert arrays["tokens"].tolist()[:2] == ["Lily", " wanted"]
    assert (arrays["model"].item(), arrays["text"].item()) == ("tiny", SENTENCE)


def test_without_a_text_there_is_none(path):
    arrays, _ = saved(path, "--ids", "643,414")
    assert "text" not in arrays
    assert arrays["ids"].tolist() == [643, 414]


def test_the_text_may_be_anything(path):
    arrays, _ = saved(path, "--keep", "logits", "--", '"\u6f22\n\x1b\\')
    assert arrays["ids"].size > 3
    if path.suffix == ".safetensors":
        with safe_open(path, "np") as file:
            assert file.metadata()["text"] == '"\u6f22\n\x1b\\'


@pytest.mark.parametrize("fmt", ["safetensors", "npz"])
def test_same_input_same_bytes_in_a_pipe_and_in_a_file(tmp_path, fmt):
    call = ["trace", SENTENCE, "--keep", "weights", "--format", fmt]
    piped = run_cli(call)
    assert (piped.status, piped.err) == (0, "")
    assert run_cli([*call, "-o", str(tmp_path / "a.bin")]).status == 0
    assert (tmp_path / "a.bin").read_bytes() == piped.out
    assert spawn(call).out == piped.out


def test_the_file_is_as_the_library_would_write_it():
    out = run_cli(["trace", SENTENCE, "--keep", "logits", "--format", "safetensors"]).out
    arrays = load(out)
    size = int.from_bytes(out[:8], "little")
    assert size % 8 == 0
    again = save(arrays)
    assert again[-arrays["logits"].nbytes :] == out[-arrays["logits"].nbytes :]


@pytest.mark.parametrize("fmt", ["safetensors", "npz"])
def test_bytes_are_not_sent_to_a_terminal(fmt):
    said, hint = refused(run_cli(["trace", SENTENCE, "-f", fmt], terminal=True), 2)
    assert said == f"{fmt} is not text, so a terminal cannot show it"
    assert hint == f"--output FILE.{fmt} writes a file"


def test_a_file_is_kept_unless_it_may_be_overwritten(path):
    path.write_bytes(b"precious")
    call = ["trace", SENTENCE, "--keep", "logits", "-o", str(path)]
    said, hint = refused(run_cli(call), 2)
    assert (said, hint) == (f"{path} is there already", "--force overwrites it")
    assert path.read_bytes() == b"precious"
    assert run_cli([*call, "--force"]).status == 0
    assert "logits" in read(path)
    assert list(path.parent.iterdir()) == [path]


def test_a_table_says_what_would_be_saved(trace):
    table, total, note = parts("trace", SENTENCE)
    assert column(table, "name") == list(trace.names())
    row = table["rows"][column(table, "name").index("layers.1.heads.2.scaled_masked")]
    real = trace["layers.1.heads.2.scaled_masked"]
    real = real[np.isfinite(real)]
    assert row == {
        "name": "layers.1.heads.2.scaled_masked",
        "axes": "T S",
        "shape": "6 x 6",
        "dtype": "float32",
        "bytes": 144,
        "min": pytest.approx(real.min()),
        "mean": pytest.approx(real.mean()),
        "max": pytest.approx(real.max()),
        "not finite": 15,
    }
    size = sum(trace[name].nbytes for name in trace.names())
    assert total["facts"] == {"values": len(trace.names()), "bytes": size}
    assert note["text"].startswith("--output FILE.safetensors or FILE.npz saves")


def test_a_value_of_nothing_but_nan_has_no_least_and_no_largest(folder):
    gain = np.full(16, np.nan, "float32")
    model = folder(tensors={"transformer.h.0.ln_1.weight": gain})
    result = run_cli(
        ["trace", "--model", str(model), "--ids", "3", "--keep", "ln1.out", "-f", "json"]
    )
    row = json.loads(result.out)["parts"][0]["rows"][0]
    assert (row["min"], row["mean"], row["max"], row["not finite"]) == (None, None, None, 16)


@pytest.mark.parametrize("ending", ["json", "csv", "md", "html"])
def test_another_ending_is_the_table(tmp_path, ending):
    path = tmp_path / f"a.{ending}"
    result = run_cli(["trace", SENTENCE, "--keep", "logits", "-o", str(path)])
    assert (result.status, result.err) == (0, "")
    assert "logits" in path.read_text("utf-8")


def test_the_table_as_json_is_that_of_the_command():
    assert asked("trace", SENTENCE, "--keep", "logits")["command"] == "trace"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--keep", "nonsense"], "no value is called nonsense"),
        (["--keep", "layers.9.input"], "layer 9 is out of range"),
        (["--keep", "layers.0.heads.7.q"], "head 7 is out of range"),
        (["--keep", "ln1.mean_square"], "this model has no value called ln1.mean_square"),
        (["-o", "a.pdf"], "a.pdf ends in none of: .safetensors, .npz, .txt"),
        (["-f", "pdf"], "format 'pdf' is not one of: table, json, csv, markdown, html, svg, npz"),
    ],
    ids=str,
)
def test_wrong_use(args, message):
    assert refused(run_cli(["trace", SENTENCE, *args]), 2)[0].startswith(message)


def test_npz_of_the_table_is_the_values():
    out = run_cli(["trace", SENTENCE, "--keep", "logits", "-f", "npz"]).out
    with np.load(io.BytesIO(out), allow_pickle=False) as arrays:
        assert arrays["logits"].shape == (6, 4096)


def test_a_value_that_this_model_lacks_is_told_why():
    _, hint = refused(run_cli(["trace", SENTENCE, "--keep", "ln1.mean_square"]), 2)
    assert hint.startswith("this model has layer norms, which take a mean and a variance")
