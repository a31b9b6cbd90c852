# The Llama of transformer-visualized against the same model as Hugging Face stores it.

import json
from dataclasses import replace

import numpy as np
import pytest

import gptscope
from gptscope.errors import ModelError
from gptscope.model.families.visualized import rename
from tests.helpers.folders import write_model

IDS = [0, 5, 12, 7, 7, 1, 30, 22]
CONFIG = {
    "vocabSize": 31,
    "contextLength": 16,
    "dModel": 24,
    "nLayers": 2,
    "nHeads": 4,
    "dHead": 6,
    "dMlp": 10,
    "layerNormEps": 1e-3,
    "arch": "llama",
    "nKvHeads": 2,
    "ropeBase": 500.0,
}
LLAMA = {
    "model_type": "llama",
    "vocab_size": 31,
    "max_position_embeddings": 16,
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 10,
    "rms_norm_eps": 1e-3,
    "rope_theta": 500.0,
    "tie_word_embeddings": True,
}


def shapes():
    block = {
        "norm_1": (24,),
        "attn.wq": (24, 24),
        "attn.wk": (12, 24),
        "attn.wv": (12, 24),
        "attn.wo": (24, 24),
        "norm_2": (24,),
        "mlp.w_gate": (10, 24),
        "mlp.w_up": (10, 24),
        "mlp.w_down": (24, 10),
    }
    blocks = {f"h.{i}.{name}.weight": shape for i in range(2) for name, shape in block.items()}
    return {"wte.weight": (31, 24), "norm_f.weight": (24,)} | blocks


def tensors():
    rng = np.random.default_rng(3)
    return {name: rng.normal(0, 0.4, shape).astype("float32") for name, shape in shapes().items()}


def write(folder, stored, **changes):
    about = {"format": "transformer-visualized/llama/1", "config": json.dumps(CONFIG | changes)}
    return write_model(folder, stored, metadata=about)


def as_llama(stored):
    """The same numbers under Hugging Face's names, each head's pairs put as (i, i + 3)."""
    order = np.array([0, 2, 4, 1, 3, 5])
    out = {}
    for name, x in stored.items():
        if name.endswith(("wq.weight", "wk.weight")):
            x = x.reshape(-1, 6, 24)[:, order].reshape(x.shape)  # noqa: PLW2901
        out[f"model.{rename(name)}"] = x
    return out


def test_it_is_the_same_model_as_a_llama(tmp_path):
    stored = tensors()
    model = gptscope.load(write(tmp_path / "visualized", stored))
    llama = gptscope.load(write_model(tmp_path / "llama", as_llama(stored), LLAMA))
    assert model.spec == replace(llama.spec, pairs="neighbours")
    assert model.tied
    assert model.n_params == llama.n_params == sum(x.size for x in stored.values())
    trace, expected = gptscope.trace(model, IDS), gptscope.trace(llama, IDS)
    assert trace.names() == expected.names()
    for name in expected.names():
        np.testing.assert_array_equal(trace[name], expected[name], strict=True, err_msg=name)


def test_scores_are_those_of_pairs_side_by_side(tmp_path):
    stored = tensors()
    trace = gptscope.trace(gptscope.load(write(tmp_path, stored), dtype="float64"), IDS)
    x = trace.layers[0].ln1.out
    at, speeds = np.arange(len(IDS))[:, None], 500.0 ** (-np.arange(0, 6, 2) / 6)
    turned = np.exp(1j * at * speeds)
    q, k = (
        (y[:, 0::2] + 1j * y[:, 1::2]) * turned
        for y in (
            x @ stored["h.0.attn.wq.weight"][18:24].T,  # head 3 of 4
            x @ stored["h.0.attn.wk.weight"][6:12].T,  # shares the keys of 1 of 2
        )
    )
    expected = (q @ k.conj().T).real
    np.testing.assert_allclose(trace.layers[0].heads[3].scores, expected, atol=1e-10)


@pytest.mark.parametrize("name", shapes())
def test_every_missing_tensor_is_named(tmp_path, name):
    stored = tensors()
    del stored[name]
    with pytest.raises(ModelError, match=rf"lacks the tensor {rename(name)}$"):
        gptscope.load(write(tmp_path, stored))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"dModel": 25}, "4 heads do not divide the width 25"),
        ({"dHead": 5}, "do not fit the width 24"),
        ({"nKvHeads": 3}, "do not fit the width 24"),
        ({"nHeads": 8, "dHead": 3}, "do not fit the width 24"),
        ({"ropeBase": 0}, "ropeBase is 0, not a positive number"),
        ({"dMlp": None}, "does not say dMlp"),
        ({"arch": "gpt2"}, "the model type is not named"),
        ({"window": 4}, "window = 4 is not understood"),
    ],
)
def test_a_config_without_sense_is_refused(tmp_path, change, why):
    with pytest.raises(ModelError, match=why):
        gptscope.load(write(tmp_path, tensors(), **change))
