import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from gptscope.commands.mlp import glu
from tests.helpers.cli import SENTENCE, column, parts
from tests.helpers.families import family_folder
from tests.helpers.folders import tensors_of


@pytest.mark.parametrize("layer", [0, 3])
def test_a_row_for_each_token(trace, labels, layer):
    table, *_ = parts("mlp", SENTENCE, "--layer", str(layer))
    act = trace.layers[layer].mlp_act
    assert table["title"] == f"Layer {layer}: 512 hidden units, all tokens"
    assert column(table, "token") == labels
    assert column(table, "units on") == (act > 0).sum(axis=1).tolist()
    assert_allclose(column(table, "share on"), (act > 0).mean(axis=1))
    assert column(table, "strongest unit") == act.argmax(axis=1).tolist()
    assert_allclose(column(table, "its value"), act.max(axis=1), rtol=1e-5)


@pytest.mark.parametrize(("token", "at"), [([], 5), (["--token", "1"], 1), (["-t", "-2"], 4)])
def test_the_strongest_units_of_one_token(trace, token, at):
    *overview, facts, table = parts("mlp", SENTENCE, "--layer", "1", *token)
    assert bool(overview) == (not token)
    before, after = trace.layers[1].mlp_hidden[at], trace.layers[1].mlp_act[at]
    assert facts["title"].startswith(f"Layer 1, token {at} ")
    assert facts["facts"] == {"units on": int((after > 0).sum()), "units": 512}
    units = column(table, "unit")
    assert len(units) == 8
    assert_allclose(column(table, "before"), before[units], rtol=1e-5)
    assert_allclose(column(table, "after"), after[units], rtol=1e-5)
    assert table["title"] == "The strongest, before and after gelu_new"


def test_the_strongest_come_first_whatever_their_sign():
    *_, table = parts("mlp", SENTENCE, "--token", "5", "--top", "512")
    sizes = np.abs(column(table, "after"))
    assert np.all(np.diff(sizes) <= 0)
    assert sorted(column(table, "unit")) == list(range(512))
    assert min(column(table, "after")) < 0


@pytest.mark.parametrize("top", [1, 3])
def test_top_says_how_many(top):
    assert len(parts("mlp", SENTENCE, "--token", "0", "--top", str(top))[1]["rows"]) == top


def test_what_is_no_number_comes_first(folder):
    bias = tensors_of("gpt2")["transformer.h.0.mlp.c_fc.bias"].copy()
    bias[5] = np.nan
    broken = folder(tensors={"transformer.h.0.mlp.c_fc.bias": bias})
    args = ["--ids", "1,2", "--token", "0", "--model", str(broken)]
    *_, table = parts("mlp", *args)
    first, *rest = table["rows"]
    assert first == {"unit": 5, "before": "NaN", "after": "NaN"}
    sizes = np.abs([row["after"] for row in rest])
    assert np.all(np.diff(sizes) <= 0)


def test_gated_units_show_gate_and_unit():
    folder = family_folder("llama")
    trace = gptscope.trace(gptscope.load(folder), [1, 2, 3]).layers[1]
    overview, facts, table = parts("mlp", "--ids", "1,2,3", "--layer", "1", "--model", folder)
    assert overview["title"] == "Layer 1: 42 gated units, all tokens"
    assert column(overview, "gates open") == (trace.mlp_gate > 0).sum(axis=1).tolist()
    assert column(overview, "strongest unit") == np.abs(trace.mlp_act).argmax(axis=1).tolist()
    assert facts["facts"] == {"gates open": int((trace.mlp_gate[2] > 0).sum()), "units": 42}
    assert table["title"] == "The strongest: after = silu(gate) x up (SwiGLU)"
    units = column(table, "unit")
    for name, values in {
        "gate": trace.mlp_gate,
        "up": trace.mlp_up,
        "after": trace.mlp_act,
    }.items():
        assert_allclose(column(table, name), values[2, units], rtol=1e-5)
    gate, up = (np.array(column(table, name)) for name in ("gate", "up"))
    assert_allclose(column(table, "after"), gate / (1 + np.exp(-gate)) * up, rtol=1e-5)


@pytest.mark.parametrize(
    ("activation", "name"),
    [
        ("silu", "SwiGLU"),
        ("gelu_pytorch_tanh", "GeGLU"),
        ("relu", "ReGLU"),
        ("sigmoid", "GLU"),
        ("mish", "a gated linear unit"),
    ],
)
def test_gated_units_have_names(activation, name):
    assert glu(activation) == name
