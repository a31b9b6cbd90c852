# What the golden models do not show: families told apart by their tensors, keys and tensors that
# are refused, tied tables, and what a GGUF stores in another way.

import json

import numpy as np
import pytest

import gptscope
from gptscope.errors import ModelError
from gptscope.model.config import Config
from gptscope.model.families import UNNAMED, family
from tests.golden.transformers.weights import HERE, golden, weights
from tests.helpers.folders import bf16_bits, write_model

CASES = (
    "gemma",
    "gemma2",
    "gemma3",
    "granite-bias",
    "llama-grouped",
    "mistral",
    "olmo2-bias",
    "phi3",
    "qwen2-types",
    "qwen3-bias",
    "smollm3-window",
    "starcoder2",
)
HEAD, TABLE = "lm_head.weight", "model.embed_tokens.weight"


def config_of(case):
    return json.loads((HERE / case / "config.json").read_text("utf-8"))


@pytest.fixture
def model(tmp_path):
    def write(case, config=(), tensors=()):
        """A golden model; a config key or a tensor that is None is left out."""
        keys = config_of(case) | dict(config)
        arrays = weights(case) | dict(tensors)
        kept = {name: x for name, x in arrays.items() if x is not None}
        folder = tmp_path / str(len(list(tmp_path.iterdir())))  # what is open stays as it is
        return gptscope.load(write_model(folder, kept, keys))

    return write


def logits(model, case):
    return gptscope.trace(model, golden(case)[0]).logits


def assert_the_same(model, case, expected):
    np.testing.assert_allclose(logits(model, case), logits(expected, case), atol=1e-5, strict=True)


# Families


@pytest.mark.parametrize(
    ("case", "family"),
    [
        ("gemma2", "gemma2"),
        ("gemma3", "gemma3_text"),
        ("llama", "llama"),
        ("olmo2", "olmo2"),
        ("phi3", "phi3"),
        ("qwen2-no-window", "qwen2"),
        ("qwen3", "qwen3"),
        ("qwen3-bias", "qwen3"),
        ("starcoder2", "starcoder2"),
    ],
)
def test_tensors_tell_the_family_where_the_config_does_not(case, family, model):
    made = model(case, {"model_type": None})
    assert made.spec.family == family
    assert_the_same(made, case, model(case))


@pytest.mark.parametrize("case", CASES)
def test_the_tensors_are_those_of_one_family_at_most(case):
    found = [one for one in map(family, UNNAMED) if one.matches(Config({}, ""), names(one, case))]
    assert len(found) <= 1


def names(family, case):
    return {family.rename(name) for name in weights(case)}


def test_biases_of_all_matrices_could_be_those_of_several_families(model):
    with pytest.raises(ModelError, match="the model type is not named"):
        model("llama-grouped", {"model_type": None})


# Configs


def said(case, config, why):
    return pytest.param(case, config, why, id=f"{case}-{next(iter(config))}")


@pytest.mark.parametrize(
    ("case", "config", "why"),
    [
        said("gemma", {"use_bidirectional_attention": True}, "use_bidirectional_attention = True"),
        said("gemma2", {"use_bidirectional_attention": True}, "use_bidirectional_attention = True"),
        said("gemma2", {"sliding_window": None}, "does not say sliding_window"),
        said("gemma3", {"use_bidirectional_attention": True}, "use_bidirectional_attention = True"),
        said("gemma3", {"attn_logit_softcapping": 50.0}, "attn_logit_softcapping = 50.0"),
        said("gemma3", {"layer_types": ["full_attention"] * 2}, "not 3 words"),
        said("llama", {"attention_chunk_size": 8192}, "attention_chunk_size = 8192"),
        said("llama", {"quantization_config": {"bits": 4}}, "quantization_config says that"),
        said("llama", {"partial_rotary_factor": 0.5}, "partial_rotary_factor = 0.5 is not under"),
        said("llama", {"num_attention_heads": 5, "head_dim": None}, "5 heads do not divide the"),
        said("llama", {"num_key_value_heads": 3}, "4 heads cannot share 3 heads of keys"),
        said("llama", {"rope_parameters": {"rope_type": "ntk"}}, "the rope_type 'ntk' is not one"),
        said("llama", {"rope_scaling": {"factor": 2.0}}, "factor = 2.0"),
        said("llama", {"is_causal": False}, "is_causal = false is not supported"),
        said("llama", {"head_dim": 1 << 30}, "1,073,741,824 numbers of a head are to turn"),
        said("mistral", {"layer_types": ["full_attention"] * 2}, "layer_types = "),
        said("olmo2", {"clip_qkv": 8.0}, "clip_qkv = 8.0"),
        said("phi3", {"full_attn_mod": 2}, "full_attn_mod = 2"),
        said("phi3", {"lm_head_bias": True}, "lm_head_bias = True"),
        said("qwen2-types", {"dual_chunk_attention_config": {"a": 1}}, "dual_chunk_attention_"),
        said("qwen2-types", {"layer_types": ["chunked_attention"] * 3}, "'chunked_attention'"),
        said("qwen2-types", {"use_mrope": True}, "use_mrope = True"),
        said("qwen2-types", {"use_sliding_window": False}, "use_sliding_window is false"),
        said("qwen3", {"num_experts": 8}, "num_experts"),
        said("smollm3", {"no_rope_layers": [1, 0]}, "3 times true or false"),
        said("smollm3", {"no_rope_layers": [1, 2, 0]}, "3 times true or false"),
        said("starcoder2", {"mlp_type": "gated"}, "mlp_type = 'gated'"),
        said("starcoder2", {"activation_function": "relu"}, "activation_function = 'relu'"),
        said("starcoder2", {"norm_type": "rms_norm"}, "norm_type = 'rms_norm'"),
    ],
)
def test_a_key_that_changes_the_computation_is_refused_by_name(case, config, why, model):
    with pytest.raises(ModelError, match=why):
        model(case, config)


@pytest.mark.parametrize(
    ("case", "rope"),
    [
        ("llama", {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1.0}),
        ("stablelm", {"rope_type": "dynamic", "factor": 2.0, "partial_rotary_factor": 0.25}),
        (
            "llama",
            {
                "rope_type": "longrope",
                "factor": 2.0,
                "long_factor": [1.0] * 4,
                "original_max_position_embeddings": 1,
                "short_factor": [1.0] * 4,
            },
        ),
    ],
)
def test_numbers_that_make_no_turns_are_told(case, rope, model):
    said = {"rope_parameters": {"rope_theta": 10000.0} | rope}
    with pytest.raises(ModelError, match=f"the rope_type '{rope['rope_type']}' divides by 0"):
        model(case, said)


@pytest.mark.parametrize("case", CASES)
def test_sizes_that_are_not_said_are_told_in_one_sentence(case, model):
    sizes = {"hidden_size": None, "num_hidden_layers": None, "vocab_size": None}
    why = r"config\.json does not say hidden_size, num_hidden_layers, vocab_size"
    with pytest.raises(ModelError, match=why):
        model(case, sizes)


def test_windows_from_the_first_layer_on(model):
    used = {"layer_types": None, "max_window_layers": 0}
    assert [b.attention.window for b in model("qwen2-window", used).blocks] == [16, 16, 16]


# Tensors


@pytest.mark.parametrize("case", CASES)
def test_every_tensor_must_be_there_and_have_its_shape(case, model):
    for name, x in weights(case).items():
        with pytest.raises(ModelError, match=f"lacks the tensor {name.removeprefix('model.')}"):
            model(case, tensors={name: None})
        with pytest.raises(ModelError, match=rf"tensor {name} .* has the shape"):
            model(case, tensors={name: np.concatenate([x, x[:1]])})


@pytest.mark.parametrize("case", CASES)
def test_a_tensor_that_nobody_asks_for_is_refused(case, model):
    extra = {"model.layers.0.self_attn.sinks": np.zeros(4, np.float32)}
    with pytest.raises(ModelError, match=r"does not have: model\.layers\.0\.self_attn\.sinks"):
        model(case, tensors=extra)


def test_buffers_of_old_files_are_passed_over(model):
    speeds = np.ones(4, np.float32)
    names = ("model.rotary_emb.inv_freq", "model.layers.1.self_attn.rotary_emb.inv_freq")
    for name in names:
        model("llama", tensors={name: speeds})


@pytest.mark.parametrize("case", ["gemma", "granite-bias", "qwen3-bias", "starcoder2"])
def test_tied_tables_must_be_the_same(case, model):
    table = weights(case)[TABLE]
    assert model(case, tensors={HEAD: table}).tied
    with pytest.raises(ModelError, match=r"lm_head\.weight differs from the token table"):
        model(case, tensors={HEAD: 2 * table})
    untied = model(case, {"tie_word_embeddings": False}, {HEAD: 2 * table})
    assert not untied.tied
    with pytest.raises(ModelError, match=r"lacks the tensor lm_head\.weight"):
        model(case, {"tie_word_embeddings": False})


def test_tied_tables_in_bfloat16(tmp_path):
    arrays = weights("qwen3-bias")
    arrays[HEAD] = arrays[TABLE] = bf16_bits(arrays[TABLE])
    kinds = dict.fromkeys((HEAD, TABLE), "BF16")
    config = config_of("qwen3-bias")
    assert gptscope.load(write_model(tmp_path / "same", arrays, config, kinds=kinds)).tied
    arrays[HEAD] = arrays[TABLE] ^ np.uint16(1)
    with pytest.raises(ModelError, match=r"lm_head\.weight differs from the token table"):
        gptscope.load(write_model(tmp_path / "other", arrays, config, kinds=kinds))


# As a GGUF has them


@pytest.mark.parametrize("case", ["gemma", "gemma2", "gemma3"])
def test_whole_gains(case, model):
    whole = {name: x + 1 for name, x in weights(case).items() if "norm" in name}
    assert_the_same(model(case, {"norm_gain_offset": False}, whole), case, model(case))


@pytest.mark.parametrize("case", ["granite-bias", "llama-grouped", "smollm3-window"])
def test_rotary_pairs_side_by_side(case, model):
    config = config_of(case)
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    order = np.arange(width).reshape(2, -1).T.ravel()  # 0, P, 1, P + 1, ...
    permuted = {
        name: x.reshape(-1, width, *x.shape[1:])[:, order].reshape(x.shape)
        for name, x in weights(case).items()
        if ".q_proj." in name or ".k_proj." in name
    }
    made, expected = model(case, {"rope_interleaved": True}, permuted), model(case)
    assert_the_same(made, case, expected)
    for block, as_before in zip(made.blocks, expected.blocks, strict=True):  # where none turns too
        np.testing.assert_array_equal(block.attention.q.weight, as_before.attention.q.weight)
