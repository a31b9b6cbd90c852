import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import gptscope
from gptscope.analysis.check.checks import CHECKS
from gptscope.analysis.check.examine import Plan, examine, n_steps
from gptscope.analysis.check.opening import opening
from gptscope.app import loaded
from gptscope.commands.check_text import chosen
from gptscope.engine import norms
from gptscope.model.shipped import shipped_folders
from tests.golden.transformers.weights import write_folder
from tests.helpers.cli import column, refused, run_cli
from tests.helpers.folders import (
    CASES,
    GOLDEN,
    bf16_bits,
    config_of,
    safetensors_bytes,
    tensors_of,
    write_shards,
)

TINY = shipped_folders()["tiny"]
FAMILIES = ["llama", "llama-longrope", "mistral"]
FIGURES = ["check", "found", "limit", "verdict", "what was looked at"]


def checked(*args):
    result = run_cli(["check", *map(str, args), "--format", "json"])
    assert result.err == ""
    parts = json.loads(result.out)["parts"]
    found = [part for part in parts if part.get("title") == "Found"]
    sentences = [row["finding"] for part in found for row in part["rows"]]
    assert result.status == (1 if sentences else 0)
    return parts, sentences


def verdicts(parts):
    return dict(zip(column(parts[0], "check"), column(parts[0], "verdict"), strict=True))


def titled(parts, title):
    return next(part for part in parts if part.get("title", "").startswith(title))


@pytest.fixture
def tiny(tmp_path):
    """A copy of tiny with changed settings and tensors."""

    def write(config=None, tensors=None, without=(), **more):
        folder = tmp_path / "mine"
        shutil.copytree(TINY, folder)
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | (config or {})), "utf-8")
        stored = load_file(TINY / "model.safetensors")
        changed = stored | {k: f(stored) if callable(f) else f for k, f in (tensors or {}).items()}
        kept = {name: x for name, x in changed.items() if name not in without}
        (folder / "model.safetensors").write_bytes(safetensors_bytes(kept, **more))
        return folder

    return write


@pytest.fixture(scope="session")
def good(tmp_path_factory):
    """A saved trace of tiny."""
    path = tmp_path_factory.mktemp("good") / "tiny.safetensors"
    text = "Lily wanted to play with her"
    assert run_cli(["trace", text, "-o", str(path)]).status == 0
    return path


# Nothing is found where nothing is wrong


@pytest.mark.parametrize("name", ["tiny", "llama-tiny", "toy"])
def test_shipped_models_are_well(name):
    parts, sentences = checked(name)
    assert sentences == []
    assert set(verdicts(parts).values()) == {"ok"}


@pytest.mark.parametrize("case", [case for case in CASES if case != "toy-unmasked"])
def test_golden_models_are_well(case):
    trace = GOLDEN / case / "trace.safetensors"
    path = GOLDEN / case
    model = path if (path / "config.json").exists() else path / "model.safetensors"
    parts, sentences = checked(model, "--against", trace)
    assert sentences == []
    assert verdicts(parts)["against"] == "ok"


@pytest.mark.parametrize("name", FAMILIES)
def test_models_of_other_families_are_well(name, tmp_path):
    _, sentences = checked(write_folder(name, tmp_path / name))
    assert sentences == []


def test_a_model_in_bfloat16_is_well(folder):
    stored = tensors_of("gpt2")
    bits = {name: bf16_bits(x) for name, x in stored.items()}
    _, sentences = checked(folder(tensors=bits, kinds=dict.fromkeys(stored, "BF16")))
    assert sentences == []


# Planted faults that are found without a reference: where, and words of the sentence

C_PROJ = [f"h.{layer}.attn.c_proj.weight" for layer in range(4)]
GAINS = [f"h.{layer}.{name}.weight" for layer in range(4) for name in ("ln_1", "ln_2")]


def names(kind="h."):
    return [name for name in load_file(TINY / "model.safetensors") if kind in name]


def key(name):
    """The name as the file has it."""
    return next(full for full in names("") if full.endswith(name))


def put(name, place, value):
    def change(stored):
        x = stored[key(name)].copy()
        x[place] = value
        return x

    return {key(name): change}


def moved(order):
    """Blocks in another order."""
    return {
        name: lambda stored, name=name, new=new, old=old: stored[name.replace(old, new)]
        for a, b in enumerate(order)
        for old, new in [(f"h.{a}.", f"h.{b}.")]
        for name in names(old)
    }


def thirds_swapped(stored, name):
    q, k, v = np.split(stored[name], 3, axis=-1)
    return np.concatenate([k, q, v], axis=-1)


ATTENTION = [
    key(f"h.{layer}.attn.c_attn.{part}") for layer in range(4) for part in ("weight", "bias")
]
FAULTS = {
    "a NaN in one weight": (
        {"tensors": put("h.2.mlp.c_fc.weight", (3, 4), np.nan)},
        ["h.2.mlp.c_fc.weight holds 1 NaN of 65,536 numbers", "is layers.2.mlp_hidden"],
    ),
    "an infinite gain": (
        {"tensors": put("h.1.ln_1.weight", 5, np.inf)},
        ["h.1.ln_1.weight holds 1 infinite of 128 numbers", "is layers.1.ln1.out"],
    ),
    "a float16 that overflowed": (
        {"tensors": put("h.3.mlp.c_proj.bias", 0, np.float32(float("1e999")))},
        ["h.3.mlp.c_proj.bias holds 1 infinite", "is layers.3.mlp_out"],
    ),
    "a tensor missing": (
        {"without": [key("h.1.ln_2.bias")]},
        ["the tensor h.1.ln_2.bias is missing"],
    ),
    "two tensors missing": (
        {"without": [key("h.1.ln_2.bias"), key("h.3.attn.c_proj.weight")]},
        ["the tensor h.1.ln_2.bias is missing", "the tensor h.3.attn.c_proj.weight is missing"],
    ),
    "a tensor too many": (
        {"tensors": {"h.0.attn.gate.weight": np.ones(3, "float32")}},
        ["the tensor h.0.attn.gate.weight belongs to no part of the model"],
    ),
    "a wrong shape": (
        {"tensors": {key("h.1.mlp.c_fc.weight"): lambda s: s[key("h.1.mlp.c_fc.weight")].T.copy()}},
        ["c_fc.weight", "has the shape [512, 128]", "it is stored turned"],
    ),
    "a wrong width of the hidden units": (
        {"config": {"n_inner": 256}},
        ["has the shape [128, 512], and the config asks for [128, 256]"],
    ),
    "an unknown setting": (
        {"config": {"rope_magic": 3, "moe_top": 2}},
        ["rope_magic = 3 is not understood", "moe_top = 2 is not understood"],
    ),
    "a wrong head count": (
        {"config": {"n_head": 1}},
        ["would fit better with 4 heads"],
    ),
    "unscaled scores": (
        {"config": {"scale_attn_weights": False}},
        ["would fit better with scores scaled otherwise"],
    ),
    "a square matrix turned": (
        {"tensors": {key(n): lambda s, n=n: s[key(n)].T.copy() for n in C_PROJ}},
        ["would fit better with the output matrices of attention transposed"],
    ),
    "gains stored less one": (
        {"tensors": {key(n): lambda s, n=n: s[key(n)] - 1 for n in [*GAINS, "ln_f.weight"]}},
        ["gains of the norms are negative", "fit better with 1 added to every gain of the norms"],
    ),
    "gains stored plus one": (
        {"tensors": {key(n): lambda s, n=n: s[key(n)] + 1 for n in [*GAINS, "ln_f.weight"]}},
        ["fit better with 1 taken from every gain of the norms"],
    ),
    "queries and keys swapped": (
        {"tensors": {n: lambda s, n=n: thirds_swapped(s, n) for n in ATTENTION}},
        ["would fit better with queries and keys swapped"],
    ),
    "the last two blocks swapped": (
        {"tensors": moved([0, 1, 3, 2])},
        ["would fit better with blocks 2 and 3 swapped"],
    ),
    "the first and the last block swapped": (
        {"tensors": moved([3, 1, 2, 0])},
        ["would fit better with blocks 0 and 3 swapped"],
    ),
    "a block twice": (
        {"tensors": moved([0, 1, 1, 3])},
        ["of block 2 hold the same numbers as in block 1"],
    ),
    "another activation": (
        {"config": {"activation_function": "relu"}},
        ["would fit better with the activation gelu"],
    ),
    "a bias blanked": (
        {"tensors": put("h.2.attn.c_attn.bias", slice(None), 0)},
        ["h.2.attn.c_attn.bias is all zeros, and that of other blocks is not"],
    ),
    "one tensor rounded to bfloat16": (
        {
            "tensors": {
                key("h.1.mlp.c_fc.weight"): lambda s: (
                    bf16_bits(s[key("h.1.mlp.c_fc.weight")]).astype(np.uint32) << 16
                ).view(np.float32)
            }
        },
        ["h.1.mlp.c_fc.weight has only the digits of bfloat16"],
    ),
    "a row of the token table blanked": (
        {"tensors": put("wte.weight", 300, 0)},
        ["row 300 of the token table is all zeros"],
    ),
    "positions that are not there": (
        {"tensors": put("wpe.weight", slice(64, None), 0)},
        ["row 64 of the position table is all zeros (64 are)"],
    ),
    "a head in a file that ties": (
        {"tensors": {"lm_head.weight": lambda s: s[key("wte.weight")] + np.float32(0.3)}},
        ["lm_head.weight differs from wte.weight, and the config ties them"],
    ),
    "no head in a file that does not tie": (
        {"config": {"tie_word_embeddings": False}},
        ["the config does not tie the output to the token table, and there is no lm_head"],
    ),
    "another model's output": (
        {
            "config": {"tie_word_embeddings": False},
            "tensors": {"lm_head.weight": lambda s: s[key("wte.weight")][::-1].copy()},
        },
        [
            "nats per token = 2.03 of ln V, and ln 4,096 = 8.32",
            "would fit better with the token table as output",
        ],
    ),
    "a BOS outside the vocabulary": (
        {"config": {"bos_token_id": 50256}},
        ["bos_token_id is 50256, and the vocabulary has the ids 0 to 4095"],
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found_without_a_reference(fault, tiny):
    changes, words = FAULTS[fault]
    _, sentences = checked(tiny(**changes))
    for word in words:
        assert any(word in one for one in sentences), (word, sentences)


def test_every_finding_is_one_sentence(tiny):
    for changes, _ in list(FAULTS.values())[:3]:
        folder = tiny(**changes)
        _, sentences = checked(folder)
        shutil.rmtree(folder)
        assert all("\n" not in one and not one.endswith(".") for one in sentences)


# Files


def test_a_file_that_was_cut_short_is_found(tiny):
    path = tiny() / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1000])
    parts, sentences = checked(path.parent)
    assert "1,000 bytes behind the end of the file, which may have been cut short" in sentences[0]
    assert list(verdicts(parts)) == list(CHECKS)[:-1]
    assert set(verdicts(parts).values()) == {"found", "not possible"}
    assert verdicts(parts)["files"] == "found"
    config = next(row for row in parts[0]["rows"] if row["check"] == "config")
    assert config["what was looked at"] == "config.json is JSON; its settings could not be tried"


def test_a_folder_with_a_pickle_alone_is_answered_with_the_hint(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"PK")
    (tmp_path / "config.json").write_text(json.dumps(config_of("gpt2")), "utf-8")
    parts, sentences = checked(tmp_path)
    assert "may run code" in sentences[0]
    assert "safetensors.torch" in sentences[0]
    assert verdicts(parts)["config"] == "not possible"


def test_two_shards_in_each_others_place_are_found(tmp_path):
    folder = write_shards(tmp_path / "m", tensors_of("gpt2"), config_of("gpt2"))
    assert checked(folder)[1] == []
    one, two = sorted(folder.glob("*.safetensors"))
    first = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(first)
    parts, sentences = checked(folder)
    assert "lies in model-0000" in sentences[0]
    assert "which does not hold it" in sentences[0]
    assert verdicts(parts)["files"] == "found"


def test_what_to_do_is_said_once_for_each_check(tiny):
    folder = tiny(without=[key("h.1.ln_2.bias"), key("h.3.attn.c_proj.weight")])
    parts, _ = checked(folder)
    rows = titled(parts, "What to do")["rows"]
    assert rows == [{"check": "tensors", "what to do": CHECKS["tensors"].advice}]


def test_a_doubtful_loss_is_told_and_is_no_finding(tiny):
    name = key("ln_f.weight")
    folder = tiny(
        tensors={
            name: lambda s: s[name] / 99,
            key("ln_f.bias"): lambda s: s[key("ln_f.bias")] / 99,
        }
    )
    parts, sentences = checked(folder, "--no-conventions")
    assert sentences == []
    assert verdicts(parts)["text"] == "doubtful"
    (row,) = titled(parts, "Doubtful")["rows"]
    assert row["check"] == "text"


def test_the_float32_row_and_table_agree():
    parts, _ = checked("tiny", "--no-conventions")
    row = next(row for row in parts[0]["rows"] if row["check"] == "float32")
    noise = titled(parts, "Float32")["rows"]
    assert row["what was looked at"].partition("nearest its limit: ")[2]
    same = noise[-1]
    assert same["value"] == "nearest its limit"
    assert (same["error"], same["limit"]) == (row["found"], row["limit"])


@pytest.mark.parametrize("conventions", [True, False])
def test_the_bar_is_as_long_as_there_are_steps(conventions):
    found, ticks = opening("toy"), []
    fed = chosen(found.model, "toy", None, None)
    plan = Plan(found.model, fed.ids, is_text=True, conventions=conventions)
    examine(found, plan, lambda: ticks.append(1))
    assert len(ticks) == n_steps(plan)


def test_every_check_is_in_the_help_and_in_the_docs():
    said = " ".join(loaded("check").help.split())
    page = (GOLDEN.parents[1] / "docs" / "models.md").read_text("utf-8")
    for name, about in CHECKS.items():
        assert f"{name}," in said or f"{name}." in said
        assert f"| `{name}` | {about.meaning} | {about.unit} | {about.advice} |" in page


def test_a_broken_header_is_found_and_so_is_a_broken_config(tiny):
    path = tiny() / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[:8] + b"?" + data[9:])
    (path.parent / "config.json").write_text("{", "utf-8")
    _, sentences = checked(path.parent)
    assert len(sentences) == 2
    assert "its header is not JSON" in sentences[0]
    assert "config.json is not JSON" in sentences[1]


def test_every_broken_shard_is_found(tmp_path):
    for i in (1, 2, 3):
        name = f"model-{i:05}-of-00003.safetensors"
        save_file({f"w{i}": np.ones(4, "float32")}, tmp_path / name)
        data = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(data if i == 1 else data[:-4])
    (tmp_path / "config.json").write_text(json.dumps(config_of("gpt2")), "utf-8")
    _, sentences = checked(tmp_path)
    assert sum("cut short" in one for one in sentences) == 2


def test_a_tokenizer_of_another_size_is_found(tiny):
    folder = tiny()
    shutil.copy(shipped_folders()["toy"] / "tokenizer.json", folder)
    (folder / "text.json").unlink()
    _, sentences = checked(folder)
    assert sentences[0] == (
        "tokenizer.json has 12 tokens, and the model 4,096 rows: more than padding explains"
    )


def test_a_tokenizer_that_is_too_large_is_found(tmp_path):
    folder = tmp_path / "toy"
    shutil.copytree(shipped_folders()["toy"], folder)
    shutil.copy(TINY / "tokenizer.json", folder)
    _, sentences = checked(folder)
    assert "tokenizer.json has 4,096 tokens, and the model only 12 rows for them" in sentences


def test_a_tokenizer_that_is_broken_is_found(tmp_path):
    folder = tmp_path / "toy"
    shutil.copytree(shipped_folders()["toy"], folder)
    (folder / "tokenizer.json").write_text("{}", "utf-8")
    parts, sentences = checked(folder)
    assert "is not a tokenizer that can be read" in sentences[0]
    assert verdicts(parts)["cache"] == "ok"  # the rest is looked at all the same


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("activation_function", "gelux", "the activation 'gelux' is not one of: "),
        ("pad_token_id", "x", "config.json: pad_token_id is 'x', not a token id"),
        ("n_head", "x", "config.json: n_head is 'x', not a whole number above 0"),
        ("model_type", "rwkv", "the model type is rwkv, and the families understood are: "),
        ("n_layer", 3, "the tensor h.2.attn.c_attn.weight is missing"),
        ("n_layer", 1, "the tensor transformer.h.1.attn.c_attn.bias belongs to no part"),
    ],
)
def test_a_setting_that_cannot_be_is_found(key, value, words, folder):
    _, sentences = checked(folder(config={key: value}))
    assert sentences[0].startswith(words)


def test_what_is_not_there_is_an_error(tmp_path):
    said, _ = refused(run_cli(["check", str(tmp_path / "nothing")]), 1)
    assert said.startswith("there is no model at ")


# Passes


def test_a_missing_mask_is_found():
    _, sentences = checked("toy-unmasked")
    assert "layers.0.heads.0.out of earlier tokens moves" in sentences[0]
    assert sentences[1].startswith("the config says causal: false")


def test_a_norm_that_cancels_is_a_fault_and_not_noise(monkeypatch):
    def cancelling(x, w, eps, note):
        mean = note("mean", x.mean(-1))
        far = (x + x.dtype.type(1000)).astype(x.dtype)
        variance = note("variance", np.abs((far * far).mean(-1) - far.mean(-1) ** 2))
        y = note("normalized", (x - mean[:, None]) / np.sqrt(variance + eps)[:, None])
        return note("out", y * w.gain + w.shift)

    monkeypatch.setitem(norms.NORMS, "layer_norm", cancelling)
    _, sentences = checked("tiny", "--no-conventions")
    assert any(one.startswith("layers.0.ln1.variance in float32 is off by ") for one in sentences)


# Faults of Llamas, planted in the file

LLAMA_FAULTS = {
    "the gate and the units that it multiplies swapped": {
        "mlp.gate_proj": ("mlp.up_proj", lambda x: x),
        "mlp.up_proj": ("mlp.gate_proj", lambda x: x),
    },
    "the two norms of a block swapped": {
        "input_layernorm": ("post_attention_layernorm", lambda x: x),
        "post_attention_layernorm": ("input_layernorm", lambda x: x),
    },
    "the matrices of queries transposed": {"self_attn.q_proj": ("self_attn.q_proj", np.transpose)},
    "values of the groups in the reverse order": {
        "self_attn.v_proj": ("self_attn.v_proj", lambda x: np.concatenate(np.split(x, 2)[::-1])),
    },
    "keys and values of the groups in the reverse order": {
        f"self_attn.{k}_proj": (
            f"self_attn.{k}_proj",
            lambda x: np.concatenate(np.split(x, 2)[::-1]),
        )
        for k in "kv"
    },
}


def spoilt_llama(folder, config=None, parts=None):
    """A copy of llama-tiny with other settings, and with parts of every block made of others."""
    source = shipped_folders()["llama-tiny"]
    shutil.copytree(source, folder)
    stored = load_file(source / "model.safetensors")
    spoilt = {
        f"model.layers.{i}.{name}.weight": np.ascontiguousarray(
            change(stored[f"model.layers.{i}.{other}.weight"])
        )
        for name, (other, change) in (parts or {}).items()
        for i in range(4)
    }
    values = json.loads((source / "config.json").read_text("utf-8")) | (config or {})
    return write(folder, stored | spoilt, values)


@pytest.mark.parametrize("fault", LLAMA_FAULTS)
def test_a_fault_in_the_file_of_a_llama_is_named(fault, tmp_path):
    _, sentences = checked(spoilt_llama(tmp_path / "m", parts=LLAMA_FAULTS[fault]))
    assert f"the text would fit better with {fault}: " in sentences[-1]


def test_a_wrong_number_of_heads_of_a_llama_is_named(tmp_path):
    wrong = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 16}
    _, sentences = checked(spoilt_llama(tmp_path / "m", wrong))
    assert "the text would fit better with 4 heads: " in sentences[-1]


def test_where_no_convention_mends_none_is_the_cause(tmp_path):
    folder = spoilt_llama(tmp_path / "m")
    stored = load_file(folder / "model.safetensors")
    name = "model.embed_tokens.weight"
    rolled = stored | {name: np.roll(stored[name], 1, axis=0)}
    (folder / "model.safetensors").write_bytes(safetensors_bytes(rolled))
    _, sentences = checked(folder)
    assert sentences[0].startswith("the text costs ")
    assert not any("would fit better" in one for one in sentences)


# Rotary positions, on a text that the model itself has written


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """A rotary model, and 32 tokens that it likes."""
    folder = tmp_path_factory.mktemp("rotary") / "model"
    tensors = tensors_of("toy-rotary")
    tensors["lm_head.weight"] = tensors["lm_head.weight"] * 3  # sure of what it says
    for name in tensors:
        if name.endswith("c_attn.weight"):
            tensors[name] = np.concatenate([tensors[name][:, :40] * 2, tensors[name][:, 40:]], 1)
    write(folder, tensors, config_of("toy-rotary"))
    ids = gptscope.generate(gptscope.load(folder), [1, 2], 30, temperature=1.0, top_k=None)
    return folder, tensors, ",".join(map(str, (1, 2, *ids.ids)))


def write(folder, tensors, config):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.safetensors").write_bytes(safetensors_bytes(tensors))
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    return folder


def test_rotary_pairs_in_the_other_order_fit_better(written, tmp_path):
    _, tensors, ids = written
    order = np.arange(10).reshape(2, 5).T.ravel()  # halves put side by side
    changed = dict(tensors)
    for name in tensors:
        if name.endswith("c_attn.weight"):
            q, k, v = (part.reshape(20, 2, 10) for part in np.split(tensors[name], 3, axis=1))
            parts = (q[..., order], k[..., order], v)
            changed[name] = np.concatenate([part.reshape(20, 20) for part in parts], axis=1)
    folder = write(tmp_path / "other", changed, config_of("toy-rotary"))
    _, sentences = checked(folder, "--ids", ids)
    assert sentences[1].startswith("the text would fit better with rotary pairs side by side")


def test_the_model_as_it_is_fits_best(written):
    folder, _, ids = written
    _, sentences = checked(folder, "--ids", ids)
    assert sentences == []


# Against a saved trace: faults that nothing else tells, and the first value that each spoils

AGAINST = {
    "a wrong epsilon": ({"config": {"layer_norm_epsilon": 1e-3}}, "layers.0.ln1.normalized"),
    "the exact GELU": ({"config": {"activation_function": "gelu"}}, "layers.0.mlp_act"),
    "positions shifted": (
        {"tensors": {key("wpe.weight"): lambda s: np.roll(s[key("wpe.weight")], 1, axis=0)}},
        "position_embeddings",
    ),
    "a tensor in bfloat16": (
        {
            "tensors": {
                key("h.2.mlp.c_proj.weight"): lambda s: bf16_bits(s[key("h.2.mlp.c_proj.weight")])
            },
            "kinds": {key("h.2.mlp.c_proj.weight"): "BF16"},
        },
        "layers.2.mlp_out",
    ),
    "eight heads": ({"config": {"n_head": 8}}, "layers.0.heads.0.q"),
    "two blocks swapped": ({"tensors": moved([0, 2, 1, 3])}, "layers.1.ln1.out"),
    "a scale by layer": (
        {"config": {"scale_attn_by_inverse_layer_idx": True}},
        "layers.1.heads.0.scaled_masked",
    ),
}


@pytest.mark.parametrize("fault", AGAINST)
def test_the_first_value_that_a_fault_spoils_is_named(fault, tiny, good):
    changes, first = AGAINST[fault]
    parts, sentences = checked(tiny(**changes), "--no-conventions", "--against", good)
    assert sentences[-1].startswith(f"{first} ")
    assert verdicts(parts)["against"] == "found"


@pytest.mark.parametrize(
    ("change", "first"),
    [
        ({"rope_theta": 10000}, "layers.0.heads.0.q"),
        ({"norm_type": "layer_norm"}, "layers.0.ln1.normalized"),
        ({"causal": False}, "layers.0.heads.0.scaled_masked"),
    ],
)
def test_a_wrong_setting_of_a_rotary_model_is_named(change, first, tmp_path):
    folder = write(tmp_path / "m", tensors_of("toy-rotary"), config_of("toy-rotary") | change)
    _, sentences = checked(folder, "--against", GOLDEN / "toy-rotary" / "trace.safetensors")
    assert sentences[-1].startswith(f"{first} ")


def test_a_window_that_is_ignored_is_named(tmp_path):
    folder = write_folder("mistral", tmp_path / "good")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    trace, n = tmp_path / "good.safetensors", config["sliding_window"] + 4
    ids = ",".join(str(i % config["vocab_size"]) for i in range(n))
    assert run_cli(["trace", "-m", str(folder), "--ids", ids, "-o", str(trace)]).status == 0
    assert checked(folder, "--against", trace)[1] == []
    (folder / "config.json").write_text(json.dumps(config | {"sliding_window": None}), "utf-8")
    _, sentences = checked(folder, "--against", trace)
    assert sentences[-1].startswith("layers.0.heads.0.scaled_masked ")


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_a_saved_trace_of_another_dtype_is_compared_by_its_own_digits(dtype, good, tmp_path):
    path = tmp_path / "other.safetensors"
    if dtype == "float64":
        done = run_cli(["trace", "Lily ran", "--dtype", "float64", "-o", str(path)])
        assert done.status == 0
    else:
        stored = load_file(good)
        save_file({k: v.astype(dtype) if k != "ids" else v for k, v in stored.items()}, path)
    parts, sentences = checked("tiny", "--no-conventions", "--against", path)
    assert sentences == []
    assert verdicts(parts)["against"] == "ok"


def test_names_of_one_side_are_listed(good, tmp_path):
    path, stored = tmp_path / "few.safetensors", load_file(good)
    kept = {
        "ids": stored["ids"],
        "logits": stored["logits"][None],
        "layers.9.mine": stored["logits"],
    }
    save_file(kept, path)
    parts, sentences = checked("tiny", "--no-conventions", "--against", path)
    assert sentences == []
    assert column(titled(parts, "Against"), "value") == ["logits"]
    said = parts[-1]["text"]
    assert said.startswith(
        "only in the file: layers.9.*; only in the pass: layers.0.*, ..., layers.3.*, token_embedd"
    )


def test_a_saved_trace_that_is_none_is_refused(tmp_path):
    path = tmp_path / "x.safetensors"
    save_file({"ids": np.arange(3)}, path)
    said, _ = refused(run_cli(["check", "tiny", "--against", str(path)]), 1)
    assert said.endswith("holds no values of a pass")


def test_a_saved_trace_without_ids_takes_those_that_are_given(good, tmp_path):
    path, stored = tmp_path / "x.safetensors", load_file(good)
    ids = stored.pop("ids")
    save_file(stored, path)
    said, _ = refused(run_cli(["check", "tiny", "--against", str(path)]), 2)
    assert said == "the saved trace does not say its ids"
    given = ",".join(map(str, ids))
    _, sentences = checked("tiny", "--no-conventions", "--ids", given, "--against", path)
    assert sentences == []


def test_an_archive_of_numpy_is_refused(tmp_path):
    refused(run_cli(["check", "tiny", "--against", str(tmp_path / "x.npz")]), 2)


def test_a_saved_trace_of_another_model_is_refused(good):
    said, _ = refused(run_cli(["check", "toy", "--against", str(good)]), 2)
    assert said == (
        "the saved trace is of another model: token_embeddings is [6, 128] there and [6, 8] here"
    )


def test_ids_of_a_saved_trace_must_be_of_this_model(good, tmp_path):
    path, stored = tmp_path / "x.safetensors", load_file(good)
    save_file({"ids": stored["ids"] + 4096, "logits": stored["logits"]}, path)
    said, _ = refused(run_cli(["check", "tiny", "--against", str(path)]), 2)
    assert said.startswith("the saved trace is of the token id ")
    save_file({"logits": stored["logits"]}, path)
    said, _ = refused(run_cli(["check", "tiny", "--ids", "1,2", "--against", str(path)]), 2)
    assert said.startswith("the saved trace is of another text: logits is [6, 4096] there and [2, ")


def test_values_from_the_first_that_differs_are_shown(tiny, good):
    folder = tiny(config={"layer_norm_epsilon": 1e-3})
    parts, _ = checked(folder, "--no-conventions", "--against", good, "--top", "2")
    table = titled(parts, "Against")
    assert table["title"].endswith("from layers.0.ln1.normalized on")
    assert len(table["rows"]) == 2
    more = parts[parts.index(table) + 1]["text"]
    assert more.endswith(" shows all")


# The command


def test_the_model_is_named_in_either_way():
    assert run_cli(["check", "toy"]).out == run_cli(["check", "--model", "toy"]).out


def test_text_or_ids():
    refused(run_cli(["check", "toy", "--text", "the", "--ids", "1"]), 2)
    parts, _ = checked("tiny", "--text", "Lily wanted to play with her", "--no-conventions")
    assert parts[1]["text"].endswith("1 of which are not possible; the passes read the text")


def test_the_numbers_of_a_check():
    parts, _ = checked("toy")
    assert list(parts[0]["rows"][0]) == FIGURES
    by_name = {row["check"]: row for row in parts[0]["rows"]}
    assert by_name["text"]["limit"] == pytest.approx(np.log(12), abs=0.01)
    assert by_name["cache"]["found"] < by_name["cache"]["limit"]


def test_a_hostile_name_is_shown_and_not_sent(tmp_path):
    folder = tmp_path / "a\x1b[31mb"
    tensors = tensors_of("gpt2") | {"x\x1b]0;t\x07[/b]": np.ones(3, "float32")}
    write(folder, tensors, config_of("gpt2"))
    result = run_cli(["check", str(folder)], env={"COLUMNS": "40"})
    assert result.status == 1
    assert "\x1b" not in result.text
    assert "\x07" not in result.text
    assert max(map(len, result.lines)) <= 40


# The script that asks transformers

SCRIPT = GOLDEN.parents[1] / "docs" / "save_trace.py"


@pytest.mark.parametrize(("case", "dtype"), [("gpt2", "float32"), ("llama", "float64")])
def test_what_the_script_saves_is_what_is_computed(case, dtype, tmp_path):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    folder, path = write_folder(case, tmp_path / "m"), tmp_path / "trace.safetensors"
    asked = [str(folder), str(path), "--ids", "1,2,3,4,5,9", "--dtype", dtype]
    subprocess.run([sys.executable, str(SCRIPT), *asked], check=True, capture_output=True)
    parts, sentences = checked(folder, "--against", path, "--top", "99")
    assert sentences == []
    assert len(titled(parts, "Against")["rows"]) == 23
    config = json.loads((folder / "config.json").read_text("utf-8"))
    key = "layer_norm_epsilon" if case == "gpt2" else "rms_norm_eps"
    (folder / "config.json").write_text(json.dumps(config | {key: 0.1}), "utf-8")
    assert checked(folder, "--against", path)[1][-1].startswith("layers.0.ln1.out is off by ")
