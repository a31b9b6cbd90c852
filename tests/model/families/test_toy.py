import numpy as np
import pytest

import gptscope
from gptscope.errors import ModelError
from tests.helpers.folders import write_model

D, L, V, CTX = 8, 2, 12, 16
IDS = [3, 1, 4, 1, 5, 9]


def tensors(*, learned=False, last_norm=True):
    rng = np.random.default_rng(5)
    shapes = {"wte.weight": (V, D)}
    shapes |= {"wpe.weight": (CTX, D)} if learned else {}
    for i in range(L):
        for name, n_in, n_out in (
            ("attn.c_attn", D, 3 * D),
            ("attn.c_proj", D, D),
            ("mlp.c_fc", D, 4 * D),
            ("mlp.c_proj", 4 * D, D),
        ):
            shapes |= {f"h.{i}.{name}.weight": (n_in, n_out), f"h.{i}.{name}.bias": (n_out,)}
        norms = (f"h.{i}.ln_1", f"h.{i}.ln_2")
        shapes |= {f"{norm}.{part}": (D,) for norm in norms for part in ("weight", "bias")}
    shapes |= {f"ln_f.{part}": (D,) for part in ("weight", "bias")} if last_norm else {}
    return {name: rng.normal(size=shape).astype("float32") for name, shape in shapes.items()}


def config(**changes):
    sizes = {"vocab_size": V, "n_positions": CTX, "n_embd": D, "n_layer": L, "n_head": 2}
    return {"model_type": "toy", "activation_function": "gelu", **sizes, **changes}


def toy(folder, dtype="float32", *, learned=False, last_norm=True, **changes):
    write_model(folder, tensors(learned=learned, last_norm=last_norm), config(**changes))
    return gptscope.load(folder, dtype)


def test_it_has_1856_parameters_and_none_for_its_positions(tmp_path):
    model = toy(tmp_path)
    assert model.n_params == gptscope.n_params(8, 2, 12, 0).total == 1856
    assert model.spec.positions == "sinusoidal"
    table = gptscope.trace(model, IDS).position_embeddings
    np.testing.assert_allclose(table, gptscope.sinusoidal_positions(6, D), atol=1e-7)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_asked_for_is_computed_in(tmp_path, dtype):
    assert gptscope.trace(toy(tmp_path, dtype), IDS).logits.dtype == dtype


def test_it_is_a_gpt2_whose_table_of_positions_was_computed(tmp_path):
    table = gptscope.sinusoidal_positions(CTX, D).astype("float32")
    same = tensors() | {"wpe.weight": table}
    write_model(tmp_path / "gpt2", same, config(model_type="gpt2"))
    ours = gptscope.trace(toy(tmp_path / "toy"), IDS).logits
    theirs = gptscope.trace(gptscope.load(tmp_path / "gpt2"), IDS).logits
    np.testing.assert_array_equal(ours, theirs)


def test_norms_after_each_sum_as_in_the_paper(tmp_path):
    model = toy(tmp_path, "float64", last_norm=False, norm="post")
    trace = gptscope.trace(model, IDS)
    for layer, block in zip(trace.layers, model.blocks, strict=True):
        middle = gptscope.layer_norm(layer.input + layer.attn_out, block.ln1.gain, block.ln1.shift)
        after = gptscope.layer_norm(middle + layer.mlp_out, block.ln2.gain, block.ln2.shift)
        np.testing.assert_allclose(layer.resid_after_attn, middle, rtol=1e-12)
        np.testing.assert_allclose(layer.output, after, rtol=1e-12)
    assert not any(name.startswith("ln_final") for name in trace.names())
    np.testing.assert_allclose(trace.logits, trace.layers[-1].output @ model.unembedding)


def test_without_positions_the_order_does_not_matter_but_for_the_mask(tmp_path):
    model = toy(tmp_path, "float64", positions="none", causal=False)
    order = np.random.default_rng(6).permutation(len(IDS))
    plain = gptscope.trace(model, IDS).logits
    mixed = gptscope.trace(model, [IDS[i] for i in order]).logits
    np.testing.assert_allclose(mixed, plain[order], rtol=1e-12)


def test_without_the_mask_every_token_is_seen(tmp_path):
    weights = gptscope.trace(toy(tmp_path, causal=False), IDS).layers[0].heads[0].weights
    assert (weights > 0).all()


def test_learned_positions_are_those_of_the_file(tmp_path):
    model = toy(tmp_path, learned=True, positions="learned")
    assert model.n_params == 1856 + CTX * D
    np.testing.assert_array_equal(model.position_table, tensors(learned=True)["wpe.weight"])


@pytest.mark.parametrize(
    ("key", "word"), [("norm", "middle"), ("positions", "alibi"), ("norm_type", "no")]
)
def test_another_word_is_refused(tmp_path, key, word):
    with pytest.raises(ModelError, match=f"{key} is '{word}', not one of"):
        toy(tmp_path, **{key: word})


def test_rotary_positions_turn_and_have_no_table(tmp_path):
    model = toy(tmp_path, "float64", positions="rotary", rope_theta=100)
    trace = gptscope.trace(model, IDS)
    assert (model.position_table, model.n_params) == (None, 1856)
    head = trace.layers[1].heads[0]
    np.testing.assert_array_equal(head.q[0], head.q_before_rope[0])
    a, b = head.k_before_rope[3, 1], head.k_before_rope[3, 3]  # the second of two pairs
    angle = 3 * 100 ** (-2 / 4)
    np.testing.assert_allclose(head.k[3, 1], a * np.cos(angle) - b * np.sin(angle), rtol=1e-12)
    np.testing.assert_allclose(head.k[3, 3], a * np.sin(angle) + b * np.cos(angle), rtol=1e-12)
    assert "position_embeddings" not in trace.names()


def test_rotary_positions_need_pairs(tmp_path):
    with pytest.raises(ModelError, match="rotary positions need heads of even width"):
        toy(tmp_path, positions="rotary", n_head=8)


def test_rms_norm_has_a_gain_and_no_shift(tmp_path):
    stored = {
        name: x for name, x in tensors().items() if "ln_" not in name or name.endswith("weight")
    }
    write_model(tmp_path, stored, config(norm_type="rms_norm"))
    model = gptscope.load(tmp_path, "float64")
    block = gptscope.trace(model, IDS).layers[1]
    expected = block.input / np.sqrt((block.input**2).mean(-1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(block.ln1.normalized, expected, rtol=1e-12)
    np.testing.assert_allclose(block.ln1.out, expected * model.blocks[1].ln1.gain, rtol=1e-12)
