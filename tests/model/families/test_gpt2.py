import numpy as np
import pytest

import gptscope
from gptscope.errors import ModelError
from gptscope.model.families.gpt2 import rename
from tests.helpers.folders import (
    CASES,
    GOLDEN,
    changed_copy,
    config_of,
    ids_of,
    tensors_of,
    write_model,
)

IDS = ids_of("gpt2")
PLAIN = {name.removeprefix("transformer."): x for name, x in tensors_of("gpt2").items()}


def logits(path):
    return gptscope.trace(gptscope.load(path), IDS).logits


def assert_the_same_model(path, times=1):
    # To rounding: where the numbers lie in the file may change how they are added up.
    expected = times * logits(GOLDEN / "gpt2")
    np.testing.assert_allclose(logits(path), expected, atol=1e-5, strict=True)


def prefixed(prefix):
    return {prefix + name: x for name, x in PLAIN.items()}


def turned(tensors):
    return {name: x.T if ".c_" in name and x.ndim == 2 else x for name, x in tensors.items()}


# Names


@pytest.mark.parametrize(
    "prefix",
    [
        "",
        "transformer.",
        "_orig_mod.",
        "_orig_mod.transformer.",
        "module.",
        "module.transformer.",
        "_orig_mod.module.",
    ],
)
def test_wrappers_around_the_names_change_nothing(tmp_path, prefix):
    write_model(tmp_path, prefixed(prefix), config_of("gpt2"))
    assert_the_same_model(tmp_path)


def test_wrappers_in_the_other_order(tmp_path):
    write_model(tmp_path, prefixed("module._orig_mod.transformer."), config_of("gpt2"))
    assert_the_same_model(tmp_path)


def test_only_whole_wrappers_come_off():
    assert rename("transformer.h.0.ln_1.weight") == "h.0.ln_1.weight"
    assert rename("h.0.transformer.weight") == "h.0.transformer.weight"
    assert rename("transformers.wte") == "transformers.wte"


def test_one_tensor_under_two_names_is_refused(folder):
    path = folder(tensors={"wte.weight": PLAIN["wte.weight"]})
    why = r"one tensor under two names: transformer\.wte\.weight and wte\.weight"
    with pytest.raises(ModelError, match=why):
        gptscope.load(path)


# Every tensor


@pytest.mark.parametrize("name", PLAIN)
def test_every_missing_tensor_is_named(folder, name):
    path = folder(without=[f"transformer.{name}"])
    with pytest.raises(ModelError, match=rf"^model\.safetensors lacks the tensor {name}$"):
        gptscope.load(path)


@pytest.mark.parametrize("name", PLAIN)
def test_every_tensor_of_another_shape_is_named(folder, name):
    longer = np.concatenate([PLAIN[name], PLAIN[name][:1]])
    path = folder(tensors={f"transformer.{name}": longer})
    why = rf"tensor transformer\.{name} of model\.safetensors has the shape \[{len(longer)}"
    if name == "h.0.attn.c_attn.weight":
        why = rf"tensor transformer\.{name} .* \[17, 48\], and the config asks for \[16, 48\]"
    with pytest.raises(ModelError, match=why):
        gptscope.load(path)


@pytest.mark.parametrize("name", PLAIN)
def test_integers_in_the_place_of_every_tensor_are_refused(folder, name):
    path = folder(tensors={f"transformer.{name}": PLAIN[name].astype("int64")})
    with pytest.raises(ModelError, match=rf"tensor transformer\.{name} of .* holds integers"):
        gptscope.load(path)


@pytest.mark.parametrize("name", ["score.weight", "h.2.ln_1.weight", "h.0.attn.rotary.inv_freq"])
def test_a_tensor_that_nobody_asked_for_is_named(folder, name):
    path = folder(tensors={name: np.ones(2, "float32")})
    with pytest.raises(ModelError, match=rf"holds tensors .* does not have: {name}$"):
        gptscope.load(path)


@pytest.mark.parametrize("kind", ["uint8", "bool", "float32"])
def test_masks_of_old_exports_are_passed_over(folder, kind):
    mask = np.tril(np.ones((1, 1, 24, 24))).astype(kind)
    fill = np.array(-1e4, "float32")
    masks = {f"transformer.h.{i}.attn.bias": mask for i in range(2)}
    fills = {f"transformer.h.{i}.attn.masked_bias": fill for i in range(2)}
    path = folder(tensors=masks | fills)
    assert_the_same_model(path)
    assert gptscope.load(path).n_params == gptscope.load(GOLDEN / "gpt2").n_params


# Sizes and choices


def test_sizes_as_hugging_face_names_them():
    spec = gptscope.load(GOLDEN / "gpt2").spec
    assert (spec.family, spec.n_layers, spec.n_heads, spec.d_model) == ("gpt2", 2, 4, 16)
    assert (spec.d_head, spec.d_ff, spec.n_vocab, spec.n_ctx) == (4, 64, 61, 24)
    assert (spec.activation, spec.norm_eps) == ("gelu_new", 1e-5)
    assert (spec.norm, spec.wiring) == ("layer_norm", "pre_norm")


@pytest.mark.parametrize("case", [case for case in CASES if not case.startswith("toy")])
def test_every_dialect_tells_its_activation(case):
    exact = {"nanogpt": "gelu", "gpt2-variant": "gelu", "gpt2-unscaled": "relu"}
    assert gptscope.load(GOLDEN / case).spec.activation == exact.get(case, "gelu_new")


@pytest.mark.parametrize("case", CASES)
def test_queries_keys_and_values_have_the_shapes_of_the_spec(case):
    model = gptscope.load(GOLDEN / case)
    d, f = model.spec.d_model, model.spec.d_ff
    for block in model.blocks:
        a = block.attention
        assert {part.weight.shape for part in (a.q, a.k, a.v, a.out)} == {(d, d)}
        assert (block.mlp.up.weight.shape, block.mlp.down.weight.shape) == ((d, f), (f, d))
    assert model.unembedding.shape == (d, model.spec.n_vocab)


def test_matrices_stored_turned_are_turned_back(tmp_path):
    write_model(tmp_path, turned(PLAIN), config_of("gpt2"))
    assert_the_same_model(tmp_path)
    model = gptscope.load(tmp_path)
    expected = PLAIN["h.1.attn.c_proj.weight"]  # square: its shape cannot tell
    np.testing.assert_array_equal(model.blocks[1].attention.out.weight, expected, strict=True)


def test_matrices_of_both_orientations_are_refused(tmp_path):
    one = "h.1.mlp.c_fc.weight"
    write_model(tmp_path, PLAIN | {one: PLAIN[one].T}, config_of("gpt2"))
    with pytest.raises(ModelError, match=r"h\.1\.mlp\.c_fc\.weight .* shape \[64, 16\]"):
        gptscope.load(tmp_path)


def test_a_wider_inner_layer_must_be_announced(folder):
    with pytest.raises(ModelError, match=r"c_fc\.weight .* the config asks for \[16, 65\]"):
        gptscope.load(folder(config={"n_inner": 65}))


@pytest.mark.parametrize(
    ("config", "scales"),
    [
        ({}, [0.5, 0.5]),
        ({"scale_attn_weights": False}, [1.0, 1.0]),
        ({"scale_attn_by_inverse_layer_idx": True}, [0.5, 0.25]),
        ({"scale_attn_weights": False, "scale_attn_by_inverse_layer_idx": True}, [1.0, 0.5]),
        ({"reorder_and_upcast_attn": True}, [0.5, 0.5]),
    ],
)
def test_what_scores_are_multiplied_by(folder, config, scales):
    model = gptscope.load(folder(config=config))
    assert [block.attention.scale for block in model.blocks] == scales


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"n_head": 3}, "3 heads do not divide the width 16"),
        ({"n_head": 32}, "32 heads do not divide the width 16"),
        ({"n_head": 0}, "n_head is 0, not a whole number above 0"),
        ({"n_embd": None}, "does not say n_embd"),
        ({"n_layer": None}, "does not say n_layer"),
        ({"dHead": 8}, "dHead is not the width over the number of heads"),
        ({"add_cross_attention": True}, "cross-attention is not supported"),
        ({"scale_attn_weights": "yes"}, "scale_attn_weights is 'yes', not true or false"),
        ({"layer_norm_epsilon": 0}, "layer_norm_epsilon is 0, not a positive number"),
        ({"activation_function": 3}, "activation_function is 3, not a word"),
        ({"vocab_size": 61.0}, "vocab_size is 61.0, not a whole number"),
    ],
)
def test_a_config_without_sense_is_refused(folder, config, why):
    with pytest.raises(ModelError, match=rf"^config\.json:? {why}"):
        gptscope.load(folder(config=config))


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"n_layer": 3}, r"lacks the tensor h\.2\."),
        ({"n_layer": 1}, r"does not have: transformer\.h\.1\."),
        ({"n_embd": 8}, r"has the shape .* and the config asks for "),
        ({"vocab_size": 60}, r"wte\.weight .* \[61, 16\], and the config asks for \[60, 16\]"),
        ({"vocab_size": None}, r"wte\.weight .* the config asks for \[50257, 16\]"),
        ({"n_positions": 25}, r"wpe\.weight .* \[24, 16\], and the config asks for \[25, 16\]"),
        ({"bias": False}, r"does not have: transformer\.h\.0\..*bias"),
    ],
)
def test_a_config_of_another_model_is_refused(folder, config, why):
    with pytest.raises(ModelError, match=why):
        gptscope.load(folder(config=config))


def test_an_unknown_activation_is_refused_at_the_pass(folder):
    model = gptscope.load(folder(config={"activation_function": "magic"}))
    with pytest.raises(ModelError, match="the activation 'magic' is not one of: gelu, gelu_10"):
        gptscope.trace(model, IDS)


# The output


def test_a_tied_model_reads_the_token_table_once_more():
    model = gptscope.load(GOLDEN / "gpt2")
    assert model.tied
    assert np.shares_memory(model.unembedding, model.token_table)


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_a_copy_of_the_token_table_is_still_tied(folder, prefix):
    path = folder(tensors={f"{prefix}lm_head.weight": PLAIN["wte.weight"]})
    model = gptscope.load(path)
    assert model.tied
    assert model.n_params == gptscope.load(GOLDEN / "gpt2").n_params


def test_an_output_that_differs_though_tied_is_refused(folder):
    path = folder(tensors={"lm_head.weight": PLAIN["wte.weight"] * 2})
    with pytest.raises(ModelError, match=r"lm_head\.weight differs from wte\.weight") as fault:
        gptscope.load(path)
    assert "set tie_word_embeddings to false" in fault.value.hint


def test_an_output_of_its_own_is_used_where_the_config_says_so(folder):
    own = {"lm_head.weight": PLAIN["wte.weight"] * 2}
    path = folder(tensors=own, config={"tie_word_embeddings": False})
    assert_the_same_model(path, times=2)
    model, tied = gptscope.load(path), gptscope.load(GOLDEN / "gpt2")
    assert not model.tied
    assert model.n_params == tied.n_params + 61 * 16


def test_an_untied_model_must_bring_its_output(folder):
    path = folder(config={"tie_word_embeddings": False})
    with pytest.raises(ModelError, match=r"lacks the tensor lm_head\.weight"):
        gptscope.load(path)


def test_karpathys_models_may_leave_the_output_out_or_bring_their_own(tmp_path):
    name, case = "_orig_mod.transformer.wte.weight", "nanogpt"
    without = [n for n in tensors_of(case) if n.endswith("lm_head.weight")]
    assert len(without) == 1
    assert gptscope.load(changed_copy(tmp_path / "a", case, without=without)).tied
    own = {without[0]: tensors_of(case)[name] + 1}
    assert not gptscope.load(changed_copy(tmp_path / "b", case, tensors=own)).tied


# Biases


def test_a_model_without_biases():
    model = gptscope.load(GOLDEN / "nanogpt")
    for block in model.blocks:
        a, m = block.attention, block.mlp
        assert {part.bias is None for part in (a.q, a.k, a.v, a.out, m.up, m.down)} == {True}
        assert block.ln1.shift is None
        assert block.ln2.shift is None
    assert model.ln_final.shift is None


def test_missing_biases_must_be_announced(tmp_path):
    path = changed_copy(tmp_path / "model", "nanogpt", config={"bias": True})
    with pytest.raises(ModelError, match=r"lacks the tensor h\.0\..*\.bias"):
        gptscope.load(path)
