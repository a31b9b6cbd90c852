import json

import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.cells import cell_len

import gptscope
from gptscope.commands.weights_tensors import BARS, DIGITS, bars
from gptscope.model import checkpoint, load
from gptscope.model.checkpoint import open_checkpoint as once
from gptscope.render import BINARY, RENDERERS
from tests.golden.transformers.weights import write_folder
from tests.helpers.cli import asked, column, parts, refused, run_cli
from tests.helpers.folders import GOLDEN, changed_copy, config_of, tensors_of, write_model
from tests.test_contract import CONTROL

STORED, NUMBERS = "How they are stored", "What their numbers are like"
BEGUN = "transformer."
HOSTILE = "[b]x[/b]\x1b[31m\u202e\n,=1"
WITH_NAN = np.array([[np.nan, 1, 0], [np.inf, 3, 0]], "float32")


def by_title(*args):
    return {part.get("title"): part for part in parts("weights", *args)}


def names(*args):
    return [BEGUN + name for name in column(by_title(*args)[NUMBERS], "tensor")]


@pytest.fixture(scope="module")
def golden():
    return str(GOLDEN / "gpt2"), tensors_of("gpt2")


@pytest.fixture
def odd(tmp_path):
    tensors = {"a": WITH_NAN, "b": np.zeros((0, 2), "float32"), "c": np.int64(7).reshape(())}
    return str(write_model(tmp_path / "odd", tensors | {HOSTILE: np.ones(3, "float16")}))


def test_every_tensor_has_its_numbers(golden):
    path, tensors = golden
    found = by_title(path)
    assert found["The tensors of gpt2"]["facts"]["all names begin with"] == BEGUN
    assert [BEGUN + name for name in column(found[STORED], "tensor")] == list(tensors)
    for stored, row in zip(found[STORED]["rows"], found[NUMBERS]["rows"], strict=True):
        x = tensors[BEGUN + row["tensor"]].astype("f8")
        assert (stored["shape"], stored["bytes"]) == (str(list(x.shape)), 4 * x.size)
        expected = [x.mean(), x.std(), np.abs(x).max()]
        scale = np.abs(x).max()
        got = [row[key] for key in ("mean", "std", "largest abs")]
        assert_allclose(got, expected, rtol=1e-5, atol=1e-7 * scale)
        assert stored["zeros"] == pytest.approx((x == 0).mean())
        assert (len(row["histogram"]), max(row["histogram"])) == (9, "█")


def test_a_pattern_chooses_by_the_names_in_the_file(golden):
    path, tensors = golden
    expected = [name for name in tensors if name.endswith("bias")]
    assert names(path, "*bias") == expected
    assert names("--model", path, "*bias") == expected
    assert names(path, expected[0]) == expected[:1]
    assert names(path, expected[0].removeprefix(BEGUN)) == expected[:1]


def test_a_single_pattern_is_of_the_default_model():
    assert names("*h.0.ln_1*") == ["transformer.h.0.ln_1.bias", "transformer.h.0.ln_1.weight"]


def test_a_pattern_that_fits_nothing_is_refused(golden):
    said, hint = refused(run_cli(["weights", golden[0], "*nothing*"]), 2)
    assert said == "no tensor of model.safetensors is called *nothing*"
    assert next(iter(golden[1])) in hint


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("name", None),
        ("size", lambda x: -x.nbytes),
        ("std", lambda x: -x.astype("f8").std()),
        ("max", lambda x: -np.abs(x).max()),
        ("zeros", lambda x: -(x == 0).mean()),
    ],
)
def test_rows_are_sorted_the_largest_first(golden, order, key):
    path, tensors = golden
    expected = sorted(tensors, key=None if key is None else lambda name: key(tensors[name]))
    assert names(path, "--sort", order) == expected
    found = by_title(path, "--sort", order, "--top", "3")
    assert [BEGUN + name for name in column(found[STORED], "tensor")] == expected[:3]
    assert found[None]["text"].startswith(f"3 of {len(tensors)} rows; --top {len(tensors)} shows")


def test_layers_are_taken_together(golden):
    path, tensors = golden
    rows = {row["tensor"]: row for row in by_title(path, "--by", "part")[NUMBERS]["rows"]}
    both = [tensors[f"transformer.h.{i}.mlp.c_fc.weight"] for i in range(2)]
    x = np.stack(both).astype("f8")
    row = rows["h.*.mlp.c_fc.weight"]
    assert_allclose([row["mean"], row["std"]], [x.mean(), x.std()], rtol=1e-5)
    assert len(rows) == len(tensors) - (len(tensors) - 4) // 2


def test_files_of_which_no_model_can_be_made_are_read(odd):
    answer = asked("weights", odd)
    found = {part.get("title"): part for part in answer["parts"]}
    assert answer["model"] is None
    assert column(found[STORED], "not finite") == [2, 0, 0, 0]
    assert column(found[STORED], "zeros") == [pytest.approx(1 / 3), None, 0, 0]
    nan, empty, seven, ones = found[NUMBERS]["rows"]
    assert (nan["mean"], nan["largest abs"]) == (1, 3)
    assert (empty["mean"], empty["std"], empty["histogram"]) == (None, None, "")
    assert (seven["mean"], seven["std"], seven["largest abs"]) == (7, 0, 7)
    assert ones["histogram"] == "....█...."
    assert answer["parts"][-1]["text"] == "NaN or infinite numbers are in a."


@pytest.mark.parametrize(("glyphs", "expected"), [(BARS, ".▁▁▄▅█"), (DIGITS, "011569")])
def test_a_bar_is_as_high_as_its_bin_is_full(glyphs, expected):
    assert bars([0, 1e-9, 1 / 9, 0.5, 0.6, 1], glyphs) == expected


@pytest.mark.parametrize(
    ("options", "encoding", "glyphs"),
    [
        ([], "utf-8", BARS),
        (["--ascii"], "utf-8", DIGITS),
        ([], "ascii", DIGITS),
        ([], "cp1252", DIGITS),
    ],
)
def test_a_place_without_bars_has_digits(options, encoding, glyphs):
    result = run_cli(["weights", "toy", "*ln_f*", *options], encoding=encoding)
    assert result.text.rstrip().endswith(glyphs)


def test_data_have_bars_in_every_place():
    result = run_cli(["weights", "toy", "*ln_f*", "--ascii", "-f", "json"], encoding="ascii")
    table = json.loads(result.out)["parts"][2]
    assert set("".join(column(table, "histogram"))) <= set(BARS)


def test_only_a_file_with_broken_numbers_counts_them(golden):
    assert "not finite" not in by_title(golden[0])[STORED]["rows"][0]


def test_huge_numbers_have_a_spread(tmp_path):
    x = np.array([3e300, -1e300, 1e300])
    path = write_model(tmp_path / "huge", {"x": x})
    (row,) = by_title(str(path))[NUMBERS]["rows"]
    assert_allclose([row["mean"], row["std"]], [1e300, 1e300 * np.std([3, -1, 1])])


def test_the_files_are_opened_once(monkeypatch):
    opened = []
    monkeypatch.setattr(load, "open_checkpoint", lambda path: opened.append(path) or once(path))
    monkeypatch.setattr(checkpoint, "open_checkpoint", load.open_checkpoint)
    parts("weights", "toy")
    assert len(opened) == 1


@pytest.mark.parametrize("fmt", RENDERERS)
def test_hostile_names_are_shown_not_sent(odd, fmt, tmp_path):
    out = tmp_path / "out"
    result = run_cli(["weights", odd, "-f", fmt, "-o", str(out)], env={"COLUMNS": "40"})
    assert (result.status, result.err) == (0, "")
    if fmt not in BINARY:
        assert CONTROL.findall(out.read_text("utf-8")) == []
    shown = run_cli(["weights", odd], env={"COLUMNS": "40"})
    assert [line for line in shown.lines if cell_len(line) > 40] == []


# Heads


@pytest.mark.parametrize("case", ["llama-grouped", "bloom", "phi-qk-norm"])
def test_singular_values_are_those_of_the_products(case, tmp_path):
    path = write_folder(case, tmp_path)
    model, found = gptscope.load(path), by_title(str(path), "--svd")
    s = model.spec
    tables = [part for part in found.values() if part["kind"] == "table"]
    for table, circuit in zip(tables, ("ov", "qk"), strict=True):
        assert len(table["rows"]) == s.n_layers * s.n_heads
        for row in table["rows"]:
            product = circuit_of(model, circuit, row["layer"], row["head"])
            values = np.linalg.svd(product, compute_uv=False)
            assert_allclose([row["largest"], row["second"], row["third"]], values[:3], rtol=1e-4)
            assert row["norm"] == pytest.approx(np.linalg.norm(product), rel=1e-4)
            assert 1 <= row["effective rank"] <= s.d_head


def circuit_of(model, circuit, layer, head):
    a, s = model.blocks[layer].attention, model.spec
    group = head * s.n_kv_heads // s.n_heads
    own, shared = (slice(i * s.d_head, (i + 1) * s.d_head) for i in (head, group))
    if circuit == "ov":
        return a.v.weight[:, shared].astype("f8") @ a.out.weight[own]
    return a.q.weight[:, own].astype("f8") @ a.k.weight[:, shared].T


def test_a_grid_has_the_largest_of_every_head():
    ov, table, *_ = parts("weights", "--svd")
    assert np.shape(ov["values"]) == (4, 4)
    assert np.ravel(ov["values"]).tolist() == column(table, "largest")


def test_one_layer_or_the_largest_heads_alone():
    grid, table, *_ = parts("weights", "--svd", "--layer", "-1", "--top", "2")
    assert (grid["rows"], column(table, "layer")) == (["3"], [3, 3])
    assert column(table, "largest") == sorted(grid["values"][0], reverse=True)[:2]


@pytest.mark.parametrize(("top", "n"), [("2", 1), ("3", 1), ("4", 0), ("9", 0)])
def test_heads_that_are_left_out_are_counted(top, n):
    notes = [part["text"] for part in parts("weights", "toy", "--svd", "--top", top)[4:]]
    expected = f"{top} of 4 heads, those with the largest values; --top 4 shows all."
    assert [text for text in notes if " heads, " in text] == [expected] * n


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("llama-grouped", ["Heads of a group", "before they turn"]),
        ("bloom", []),
        ("qwen3", ["Heads of a group", "before they turn", "Norms of queries and keys"]),
    ],
)
def test_what_is_left_out_is_told(case, words, tmp_path):
    *_, note = parts("weights", str(write_folder(case, tmp_path)), "--svd")
    every = ["Heads of a group", "before they turn", "Norms of queries and keys"]
    assert [word for word in every if word in note["text"]] == words


def test_a_broken_head_is_shown(folder):
    bad = tensors_of("gpt2")["transformer.h.0.attn.c_attn.weight"].copy()
    bad[0, 0] = np.nan
    path = folder(tensors={"transformer.h.0.attn.c_attn.weight": bad})
    result = run_cli(["weights", str(path), "--svd", "-f", "json"])
    assert result.status == 0
    _, _, qk, _, _ = json.loads(result.out)["parts"]
    assert qk["values"][0][0] == "NaN"
    assert "NaN" not in qk["values"][1]


# Tables


def test_the_longest_and_shortest_rows_are_named(tiny):
    facts, longest, shortest = parts("weights", "--table", "tokens", "--top", "3")
    lengths = np.linalg.norm(np.asarray(tiny.token_table, "f8"), axis=1)
    order = np.argsort(lengths)
    assert column(longest, "id") == order[::-1][:3].tolist()
    assert column(shortest, "id") == order[:3].tolist()
    assert column(shortest, "token") == [tiny.tokenizer.text_of(int(i)) for i in order[:3]]
    found = [facts["facts"][key] for key in ("shortest", "mean", "longest", "std")]
    expected = [lengths.min(), lengths.mean(), lengths.max(), lengths.std()]
    assert_allclose(found, expected, rtol=1e-6)


def test_positions_have_no_tokens():
    _, longest, shortest = parts("weights", "tiny", "--table", "positions")
    assert [list(row) for row in longest["rows"]] == [["position", "length"]] * 10
    assert len(shortest["rows"]) == 10


def test_a_model_without_a_table_of_positions_has_none_to_show():
    said, _ = refused(run_cli(["weights", str(GOLDEN / "toy-rotary"), "--table", "positions"]), 2)
    assert said.startswith("toy-rotary has no table of positions: it turns its queries")


def test_rows_that_hold_nan_have_no_length(tmp_path):
    table = tensors_of("gpt2")["transformer.wte.weight"].copy()
    table[3] = np.nan
    path = changed_copy(tmp_path, tensors={"transformer.wte.weight": table})
    answer = parts("weights", str(path), "--table", "tokens", "--top", "99")
    assert 3 not in column(answer[1], "id")
    assert len(answer[1]["rows"]) == config_of("gpt2")["vocab_size"] - 1
    assert answer[-1]["text"] == "1 row holds NaN or infinite numbers, and no length."


# What does not go together


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--svd", "--table", "tokens"], "not both"),
        (["tiny", "*ln*", "--svd"], "no PATTERN"),
        (["--table", "tokens", "--sort", "std"], "no PATTERN"),
        (["--by", "part", "--svd"], "no PATTERN"),
        (["--layer", "1"], "--layer goes with --svd"),
        (["--svd", "--layer", "4"], "layer 4 is out of range"),
        (["--sort", "weight"], "--sort"),
    ],
)
def test_what_does_not_go_together_is_refused(args, words):
    said, _ = refused(run_cli(["weights", *args]), 2)
    assert words in said
