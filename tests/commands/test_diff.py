import json
import shutil

import numpy as np
import pytest

from gptscope.model.shipped import shipped_folders
from tests.helpers.cli import column, refused, run_cli
from tests.helpers.folders import (
    GOLDEN,
    bf16_bits,
    changed_copy,
    config_of,
    tensors_of,
    write_model,
)

GPT2 = GOLDEN / "gpt2"
FIRST = "transformer.h.1.mlp.c_fc.weight"


def diffed(*args, status=1):
    result = run_cli(["diff", *map(str, args), "--format", "json"])
    assert (result.status, result.err) == (status, "")
    return json.loads(result.out)["parts"]


def facts(parts):
    return parts[0]["facts"]


def titled(parts, start):
    return next((part for part in parts if part.get("title", "").startswith(start)), None)


@pytest.fixture
def changed(tmp_path):
    def write(**changes):
        return changed_copy(tmp_path / "changed", "gpt2", **changes)

    return write


def test_a_model_is_the_same_as_itself():
    parts = diffed(GPT2, GPT2, status=0)
    assert parts[1]["text"] == f"{GPT2} and {GPT2} are the same in every number."
    assert len(parts) == 2
    numbers = facts(parts)
    assert numbers["tensors in both"] == numbers["the same in every number"] == 28
    assert numbers["numbers that differ"] == 0


def test_the_prefix_of_the_wrapper_changes_nothing(tmp_path):
    plain = {name.removeprefix("transformer."): x for name, x in tensors_of("gpt2").items()}
    assert plain.keys() != tensors_of("gpt2").keys()
    folder = write_model(tmp_path / "plain", plain, config_of("gpt2"))
    diffed(GPT2, folder, status=0)
    bare = write_model(tmp_path / "bare", plain)  # without a config it is named as the other
    parts = diffed(GPT2, bare)
    assert facts(parts)["the same in every number"] == 28


def test_how_far_a_tensor_is(changed):
    x = tensors_of("gpt2")[FIRST]
    y = x.copy()
    y[2, 3] += 0.5
    y[0, 0] -= 0.25
    parts = diffed(GPT2, changed(tensors={FIRST: y}))
    (row,) = titled(parts, "Tensors that differ")["rows"]
    assert row["tensor"] == FIRST.removeprefix("transformer.")
    d = (y - x).astype(float)
    rms = np.sqrt((d**2).mean())
    expected = {
        "relative": rms / np.sqrt((x.astype(float) ** 2).mean()),
        "rms": rms,
        "largest": 0.5,
        "cosine": np.vdot(x, y) / np.linalg.norm(x) / np.linalg.norm(y),
        "changed": 2 / x.size,
    }
    for name, value in expected.items():
        assert row[name] == pytest.approx(value, rel=6e-3 if name != "cosine" else 1e-5)


def test_the_farthest_come_first_and_top_says_how_many(changed):
    stored = tensors_of("gpt2")
    moved = {n: x + np.float32(i / 100) for i, (n, x) in enumerate(stored.items()) if i}
    parts = diffed(GPT2, changed(tensors=moved), "--top", "4")
    relative = column(titled(parts, "Tensors that differ"), "relative")
    assert len(relative) == 4
    assert relative == sorted(relative, reverse=True)
    assert parts[-1]["text"] == "23 more: --top 27 shows all"


def test_numbers_of_another_format_are_widened_exactly(changed):
    x = tensors_of("gpt2")[FIRST]
    bits = bf16_bits(x)
    exact = (bits.astype(np.uint32) << 16).view(np.float32)
    a = changed(tensors={FIRST: bits}, kinds={FIRST: "BF16"})
    b = shutil.copytree(a, a.parent / "b")
    write_model(b, tensors_of("gpt2") | {FIRST: exact}, config_of("gpt2"))
    parts = diffed(a, b, status=0)
    (row,) = titled(parts, "Tensors stored in different formats")["rows"]
    assert row == {"tensor": "h.1.mlp.c_fc.weight", "first": "BF16", "second": "F32"}
    (far,) = titled(diffed(GPT2, a), "Tensors that differ")["rows"]
    assert 0 < far["relative"] < 2**-7


def test_what_one_alone_has_and_other_shapes(changed):
    more = changed(
        tensors={"mine": np.ones((2, 3), "float32"), FIRST: np.ones((3, 4), "float32")},
        without=["transformer.h.0.ln_1.bias"],
    )
    parts = diffed(GPT2, more)
    alone = titled(parts, "Tensors that one alone has")["rows"]
    assert [(row["tensor"], row["shape"]) for row in alone] == [
        ("h.0.ln_1.bias", "16"),
        ("mine", "2 x 3"),
    ]
    (misfit,) = titled(parts, "Tensors of different shapes")["rows"]
    assert (misfit["first"], misfit["second"]) == ("16 x 64", "3 x 4")


def test_settings_that_may_matter_are_compared(changed):
    folder = changed(config={"n_head": 2, "resid_pdrop": 0.7, "transformers_version": "9"})
    parts = diffed(GPT2, folder)
    (row,) = titled(parts, "Settings")["rows"]
    assert row == {"setting": "n_head", "first": "4", "second": "2"}
    said = [part["text"] for part in parts if part["kind"] == "note"]
    assert said == [f"{GPT2} and {folder} are the same in every number; settings differ."]


def test_settings_are_written_as_json(changed):
    folder = changed(config={"scale_attn_weights": False, "rope_scaling": {"type": "x"}})
    rows = titled(diffed(GPT2, folder), "Settings")["rows"]
    shown = {row["setting"]: row["second"] for row in rows}
    assert shown == {"scale_attn_weights": "false", "rope_scaling": '{"type": "x"}'}


def test_models_of_other_sizes_are_compared_by_name():
    parts = diffed("toy", "tiny")
    numbers = facts(parts)
    assert numbers["of different shapes"] == 27
    assert numbers["in one alone"] == 25
    assert numbers["numbers compared"] == 0


def test_nan_is_the_same_as_nan_and_far_from_a_number(changed):
    y = tensors_of("gpt2")[FIRST].copy()
    y[0, 0] = np.nan
    folder = changed(tensors={FIRST: y})
    diffed(folder, folder, status=0)
    (row,) = titled(diffed(GPT2, folder), "Tensors that differ")["rows"]
    assert row["largest"] == "Infinity"


# Passes


def test_where_the_passes_part(changed):
    y = tensors_of("gpt2")[FIRST].copy()
    y[0, 0] += 1
    parts = diffed(GPT2, changed(tensors={FIRST: y}), "--ids", "3,1,4", "--top", "3")
    said = next(part["text"] for part in parts if part["kind"] == "note")
    assert said.startswith("The passes part at layers.1.mlp_hidden: ")
    values = titled(parts, "Values of the passes")
    assert values["title"].endswith("from layers.1.mlp_hidden on")
    assert values["rows"][0]["agrees"] == "no"
    assert len(values["rows"]) == 3


def test_the_next_token_side_by_side(changed):
    y = tensors_of("gpt2")[FIRST] * 3
    parts = diffed(GPT2, changed(tensors={FIRST: y}), "--ids", "3,1,4")
    rows = titled(parts, "The next token")["rows"]
    p, q = (np.array([row[name] for row in rows]) for name in ("first", "second"))
    assert 5 <= len(rows) <= 10
    assert not np.allclose(p, q)
    divergence = next(p["facts"] for p in parts if p["kind"] == "facts" and p is not parts[0])
    assert all(value > 0 for value in divergence.values())


def test_passes_of_the_same_model_agree():
    parts = diffed("toy", "toy", "--text", "the cat eats the", status=0)
    said = [part["text"] for part in parts if part["kind"] == "note"][1]
    assert said == "The passes of toy and toy agree in all of 68 values, but for rounding."


def test_another_setting_alone_is_a_difference(changed):
    folder = changed(config={"activation_function": "gelu"})
    parts = diffed(GPT2, folder, "--ids", "3,1,4")
    assert any("The passes part at layers.0.mlp_act" in p.get("text", "") for p in parts)


def test_passes_of_other_sizes():
    parts = diffed("toy", GOLDEN / "toy-rotary", "--ids", "1,2,3")
    values = titled(parts, "Values")
    assert any(row["agrees"] == "shapes [3, 20] and [3, 8]" for row in values["rows"])
    assert titled(parts, "The next token") is None


def test_a_text_that_the_two_read_differently_is_refused(tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(shipped_folders()["tiny"], folder)
    path = folder / "tokenizer.json"
    values = json.loads(path.read_text("utf-8"))
    values["model"]["merges"] = values["model"]["merges"][:5]
    path.write_text(json.dumps(values), "utf-8")
    said, hint = refused(run_cli(["diff", "tiny", str(folder), "--text", "Lily ran"]), 2)
    assert said == "the tokenizers of the two models make different ids of this text"
    assert hint.startswith("give ids")


def test_bad_requests():
    refused(run_cli(["diff", "toy", "toy", "--text", "the", "--ids", "1"]), 2)
    refused(run_cli(["diff", "toy"]), 2)
    refused(run_cli(["diff", "toy", "nowhere"]), 1)
    refused(run_cli(["diff", "toy", "toy", "--ids", "99"]), 2)


def test_hostile_names_are_shown_and_not_sent(tmp_path):
    name = "h.\x1b]0;t\x07[/b]\u202e"
    a = write_model(tmp_path / "a\x1b[31m", tensors_of("gpt2") | {name: np.ones(3, "float32")})
    result = run_cli(["diff", str(a), "toy"], env={"COLUMNS": "40"})
    assert result.status == 1
    for char in "\x1b\x07\u202e":
        assert char not in result.text
    assert max(map(len, result.lines)) <= 40
