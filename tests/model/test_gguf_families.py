# Every architecture of GGUF against what transformers computes of the same model.
#
# The files are written here as llama.cpp's converter writes them (conversion/*.py there), with the
# names of its own package, and nothing of gptscope: what the golden values then say is whether
# names, the order of rotary pairs, merged matrices, gains and scales came back.

import json
import math

import numpy as np
import pytest

import gptscope
from gptscope.errors import ModelError
from gptscope.model.formats.gguf_dialects import DIALECTS
from tests.golden.transformers.weights import HERE, golden, rows, weights, write_folder
from tests.helpers.close import assert_close

gguf = pytest.importorskip("gguf")
LLAMAS = ("llama", "granite", "smollm3")  # whose queries and keys are permuted
CASES = {  # micro model -> architecture
    "llama": "llama",
    "llama-heads": "llama",
    "llama-grouped": "llama",
    "llama-linear": "llama",
    "llama-yarn": "llama",
    "llama-llama3": "llama",
    "mistral-whole": "llama",
    "granite": "granite",
    "granite-bias": "granite",
    "qwen2-no-window": "qwen2",
    "qwen3": "qwen3",
    "olmo2": "olmo2",
    "phi3": "phi3",
    "phi3-short": "phi3",
    "phi3-long": "phi3",
    "phi3-partial": "phi3",
    "stablelm": "stablelm",
    "stablelm-bias": "stablelm",
    "stablelm-parallel": "stablelm",
    "stablelm-qk-norm": "stablelm",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3",
    "gemma3-linear": "gemma3",
    "phi": "phi2",
    "starcoder2": "starcoder2",
    "gpt_neox": "gptneox",
    "bloom": "bloom",
    "bloom-6-heads": "bloom",
    "gpt2": "gpt2",
}
YARN = {"attention_factor": "attn_factor", "beta_fast": "beta_fast", "beta_slow": "beta_slow"}
CAPS = {"attn_logit_softcapping": 3.0, "final_logit_softcapping": 5.0}
# What a GGUF can say, and no golden case does: the same change in a folder of Hugging Face.
CHANGED = {
    "smollm3": ("smollm3", {"no_rope_layers": [1, 1, 1]}),
    "smollm3-interval": ("smollm3", {"no_rope_layer_interval": 4, "no_rope_layers": None}),
    "gpt_neox-sequential": ("gptneox", {"hidden_act": "gelu"}),
    "llama-yarn-attention": ("llama", {"rope_parameters": {"truncate": True}}),
    "gemma2-uncapped": ("gemma2", {"query_pre_attn_scalar": 10} | CAPS),
    "starcoder2": ("starcoder2", {"sliding_window": None}),
    "phi3": ("phi3", {"sliding_window": None}),
}


def config_of(case, change=None):
    config = json.loads((HERE / case / "config.json").read_text())
    change = change or {}
    rope = config.get("rope_parameters", {}) | change.get("rope_parameters", {})
    return config | change | ({"rope_parameters": rope} if rope else {})


def write_gguf(case, arch, folder, change=None, **said):
    """The case as llama.cpp's converter leaves it, every number in float32."""
    config, path = config_of(case, change), folder / "model.gguf"
    writer = gguf.GGUFWriter(path, arch)
    sizes(writer, arch, config)
    scaling(writer, arch, config)
    OTHERS.get(arch, lambda *_: None)(writer, config)
    for key, value in said.items():
        getattr(writer, f"add_{key}")(value)
    n_layers = first(config, "num_hidden_layers", "n_layer")
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], n_layers)
    for name, x in tensors(case, arch, config):
        stored = names.get_name(name, try_suffixes=(".weight", ".bias"))
        writer.add_tensor(stored, np.ascontiguousarray(x))
    for name, x in factors(config):
        writer.add_tensor(name, np.array(x, "f4"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def first(config, *keys, default=None):
    return next((config[key] for key in keys if config.get(key) is not None), default)


def width_of_head(config):
    d, heads = (
        first(config, "hidden_size", "n_embd"),
        first(config, "num_attention_heads", "n_head"),
    )
    return first(config, "head_dim", default=d // heads)


def rope_of(config):
    rope = config.get("rope_parameters", {})
    return rope.get("full_attention", rope)


def sizes(writer, arch, config):
    heads = first(config, "num_attention_heads", "n_head")
    d = first(config, "hidden_size", "n_embd")
    writer.add_block_count(first(config, "num_hidden_layers", "n_layer"))
    writer.add_context_length(first(config, "max_position_embeddings", "n_positions", default=d))
    writer.add_embedding_length(d)
    writer.add_feed_forward_length(first(config, "intermediate_size", "n_inner", default=4 * d))
    writer.add_head_count(heads)
    if arch not in ("gpt2", "gptneox"):
        writer.add_head_count_kv(first(config, "num_key_value_heads", default=heads))
    if config.get("head_dim") is not None and arch != "granite":
        writer.add_key_length(config["head_dim"])
        writer.add_value_length(config["head_dim"])
    if "rms_norm_eps" in config:
        writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    else:
        writer.add_layer_norm_eps(
            first(config, "layer_norm_eps", "layer_norm_epsilon", "norm_epsilon")
        )
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def scaling(writer, arch, config):
    rope = rope_of(config)
    if rope:
        writer.add_rope_freq_base(rope["rope_theta"])
    if rope.get("rope_type") in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType[rope["rope_type"].upper()])
        writer.add_rope_scaling_factor(rope["factor"])
    if rope.get("rope_type") == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        for key, added in YARN.items():
            if rope.get(key) is not None:
                getattr(writer, f"add_rope_scaling_yarn_{added}")(rope[key])
    if arch in LLAMAS:
        writer.add_vocab_size(config["vocab_size"])
        writer.add_rope_dimension_count(width_of_head(config))


def turned_in_part(writer, config):
    writer.add_rope_dimension_count(
        int(rope_of(config)["partial_rotary_factor"] * width_of_head(config))
    )


def parallel_in_part(writer, config):
    turned_in_part(writer, config)
    writer.add_parallel_residual(config["use_parallel_residual"])


def granite(writer, config):
    writer.add_attention_scale(config["attention_multiplier"])
    writer.add_embedding_scale(config["embedding_multiplier"])
    writer.add_residual_scale(config["residual_multiplier"])
    writer.add_logit_scale(config["logits_scaling"])


def gemma2(writer, config):
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        if config.get(key):
            getattr(writer, f"add_{key}")(config[key])
    writer.add_sliding_window(config["sliding_window"])


def gemma3(writer, config):
    gemma2(writer, config)
    writer.add_rope_freq_base_swa(config["rope_parameters"]["sliding_attention"]["rope_theta"])
    writer.add_sliding_window_pattern(config["layer_types"].index("full_attention") + 1)


def phi3(writer, config):
    rope, places = rope_of(config), config["max_position_embeddings"]
    known = first(config, "original_max_position_embeddings", default=places)
    writer.add_rope_scaling_orig_ctx_len(known)
    share = rope.get("partial_rotary_factor", 1.0)
    writer.add_rope_dimension_count(int(share * width_of_head(config)))
    writer.add_sliding_window(config["sliding_window"] or 0)
    if "long_factor" in rope:
        longer = math.log(places / known) / math.log(known)
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + longer))


def starcoder2(writer, config):
    if config["sliding_window"]:  # the converter leaves it out; the files of others may have it
        writer.add_sliding_window(config["sliding_window"])


OTHERS = {
    "granite": granite,
    "gemma2": gemma2,
    "gemma3": gemma3,
    "phi3": phi3,
    "phi2": turned_in_part,
    "stablelm": parallel_in_part,
    "gptneox": parallel_in_part,
    "starcoder2": starcoder2,
}


def tensors(case, arch, config):
    """Name at Hugging Face and numbers, as the converter changes both."""
    stored = weights(case)
    if arch == "stablelm":
        stored = with_stacked_norms(stored)
    for name, x in stored.items():
        if arch == "bloom":
            name = name.removeprefix("transformer.")  # noqa: PLW2901
        yield name, changed(arch, config, name, x)


def changed(arch, config, name, x):
    part = ".".join(name.split(".")[-2:])
    if arch in LLAMAS and part.startswith(("q_proj", "k_proj")):
        own = part.startswith("q_proj")
        return permuted(x, config["num_attention_heads" if own else "num_key_value_heads"])
    if arch.startswith("gemma") and name.endswith("norm.weight"):
        x = x + np.float32(1)
    if arch.startswith("gemma") and part == ASKED.get(arch):
        # What llama.cpp divides by is d_h, except in the largest; the case has another number.
        x = x * np.float32(math.sqrt(width_of_head(config) / config["query_pre_attn_scalar"]))
    if part.startswith("query_key_value"):
        heads = first(config, "num_attention_heads", "n_head")
        return x.reshape(heads, 3, -1, *x.shape[1:]).swapaxes(0, 1).reshape(x.shape)
    turned = arch == "gpt2" and part in {"c_attn.weight", "c_proj.weight", "c_fc.weight"}
    return x.T if turned else x


ASKED = {"gemma2": "q_proj.weight", "gemma3": "q_norm.weight"}


def permuted(x, heads):
    """Halves (i, i + P) as pairs side by side."""
    return x.reshape(heads, 2, -1, *x.shape[1:]).swapaxes(1, 2).reshape(x.shape)


def with_stacked_norms(stored):
    """The norms of all heads as one tensor [H, d_h]."""
    found = {name: x for name, x in stored.items() if ".norms." not in name}
    for name in stored:
        start, several, rest = name.partition(".norms.")
        if several and rest == "0.weight":
            heads = sum(other.startswith(f"{start}.norms.") for other in stored)
            every = [stored[f"{start}.norms.{i}.weight"] for i in range(heads)]
            found[f"{start}.weight"] = np.stack(every)
    return found


def factors(config):
    """The lists that are tensors in a GGUF."""
    rope = rope_of(config)
    for kind in ("long", "short"):
        if f"{kind}_factor" in rope:
            yield f"rope_factors_{kind}.weight", rope[f"{kind}_factor"]
    if rope.get("rope_type") == "llama3":
        yield "rope_freqs.weight", [slower(rope, i, width_of_head(config)) for i in pairs(config)]


def pairs(config):
    return range(width_of_head(config) // 2)


def slower(rope, i, width):
    """By how much Llama 3.1 slows a pair down."""
    wave = 2 * math.pi * rope["rope_theta"] ** (2 * i / width)
    turns = rope["original_max_position_embeddings"] / wave
    low, high = rope["low_freq_factor"], rope["high_freq_factor"]
    share = min(max((turns - low) / (high - low), 0), 1)
    return 1 / ((1 - share) / rope["factor"] + share)


def test_every_architecture_has_a_case():
    assert set(CASES.values()) | {arch for arch, _ in CHANGED.values()} == set(DIALECTS)


@pytest.mark.parametrize("case", CASES)
def test_logits_are_those_of_transformers(case, tmp_path):
    ids, expected = golden(case)
    model = gptscope.load(write_gguf(case, CASES[case], tmp_path))
    trace = gptscope.trace(model, ids)
    assert_close("logits", trace["logits"][rows("logits")], expected["logits"])


@pytest.mark.parametrize("case", CHANGED)
def test_logits_are_those_of_the_same_folder(case, tmp_path):
    arch, change = CHANGED[case]
    folder = write_folder(case, tmp_path / "folder")
    (folder / "config.json").write_text(json.dumps(config_of(case, change)))
    ids, before = golden(case)
    expected = gptscope.trace(gptscope.load(folder, dtype="float64"), ids)["logits"]
    model = gptscope.load(write_gguf(case, arch, tmp_path, change))
    assert_close("logits", gptscope.trace(model, ids)["logits"], expected)
    assert np.abs(expected[rows("logits")] - before["logits"]).max() > 1e-4, "changes nothing"


def test_two_norms_tell_that_the_parts_follow_each_other(tmp_path):
    # Where a config of StableLM says neither, older converters wrote that they stand in parallel.
    ids, expected = golden("stablelm")
    model = gptscope.load(write_gguf("stablelm", "stablelm", tmp_path, parallel_residual=True))
    trace = gptscope.trace(model, ids)
    assert_close("logits", trace["logits"][rows("logits")], expected["logits"])


@pytest.mark.parametrize(
    ("case", "arch", "said", "why"),
    [
        ("olmo2", "olmo2", {"sliding_window": 16}, "sliding_window = 16 is not understood"),
        ("llama", "llama", {"rope_scaling_yarn_ext_factor": 0.5}, "yarn_ext_factor is not underst"),
    ],
)
def test_what_is_not_read_is_refused(case, arch, said, why, tmp_path):
    with pytest.raises(ModelError, match=why):
        gptscope.load(write_gguf(case, arch, tmp_path, **said))
