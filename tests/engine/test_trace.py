import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest

import gptscope
from gptscope.engine.hook_points import BY_KEY, HOOK_POINTS
from gptscope.engine.lacking import why_lacking
from gptscope.errors import UsageError
from gptscope.model.blocks import Blocks
from tests.helpers.folders import GOLDEN
from tests.helpers.micro import micro_model, sizes
from tests.helpers.variants import rich, rms_norm, rotary, shared_keys

IDS = [3, 1, 4, 1, 5]


@pytest.fixture(scope="module")
def trace(micro):
    return gptscope.trace(micro, IDS)


def test_what_was_fed_is_kept(trace, micro):
    assert trace.ids == tuple(IDS)
    assert trace.spec == micro.spec
    assert gptscope.trace(micro, np.array(IDS)).ids == tuple(IDS)


def test_names_are_in_the_order_of_the_pass(trace):
    names = trace.names()
    assert names[:3] == ("token_embeddings", "position_embeddings", "embeddings")
    assert names[3] == "layers.0.input"
    assert names[-1] == "logits"
    order = ["layers.0.ln1.out", "layers.0.heads.0.q", "layers.0.heads.1.q", "layers.0.heads.0.k"]
    assert [name for name in names if name in order] == order


def test_every_name_by_key_and_by_attributes(trace):
    for name in trace.names():
        value = trace
        for part in name.split("."):
            value = value[int(part)] if part.isdigit() else getattr(value, part)
        np.testing.assert_array_equal(value, trace[name], strict=True)
        assert np.shares_memory(value, trace[name])


def test_heads_are_views_of_one_array(trace):
    stacked = trace.values["weights", 1]
    assert stacked.shape == (2, 5, 5)
    for h in range(2):
        assert trace.layers[1].heads[h].weights.base is not None
        np.testing.assert_array_equal(trace.layers[1].heads[h].weights, stacked[h], strict=True)


@pytest.mark.parametrize("key", ["q", "k", "v", "z"])
def test_aliases_put_positions_before_heads(trace, key):
    ours = "out" if key == "z" else key
    value = trace[f"blocks.1.attn.hook_{key}"]
    for h in range(2):
        expected = trace[f"layers.1.heads.{h}.{ours}"]
        np.testing.assert_array_equal(value[:, h], expected, strict=True)


@pytest.mark.parametrize(
    ("alias", "key"), [("pattern", "weights"), ("attn_scores", "scaled_masked")]
)
def test_aliases_of_two_positions_keep_heads_first(trace, alias, key):
    value = trace[f"blocks.0.attn.hook_{alias}"]
    for h in range(2):
        np.testing.assert_array_equal(value[h], trace[f"layers.0.heads.{h}.{key}"], strict=True)


@pytest.mark.parametrize("norm", ["layers.0.ln1", "layers.1.ln2", "ln_final"])
def test_the_scale_of_a_norm_is_the_root_of_its_variance(trace, norm):
    there = norm.replace("layers", "blocks")
    scale = trace[f"{there}.hook_scale"]
    assert scale.dtype == np.float32
    expected = np.sqrt(trace[f"{norm}.variance"] + np.float32(trace.spec.norm_eps))
    np.testing.assert_allclose(scale[:, 0], expected, rtol=1e-6)
    entering = {"layers.0.ln1": "layers.0.input", "layers.1.ln2": "layers.1.resid_after_attn"}
    x = trace[entering.get(norm, "layers.1.output")]
    centred = x - trace[f"{norm}.mean"][:, None]
    normalized = trace[f"{there}.hook_normalized"]
    np.testing.assert_allclose(normalized, centred / scale, rtol=1e-5, atol=1e-6, strict=True)


def test_other_aliases_are_the_same_values(trace):
    for point in HOOK_POINTS:
        if point.name.format(l=1, h=0) not in trace.names():
            continue
        if point.alias and not point.per_head and not point.key.endswith("variance"):
            ours, theirs = point.name.format(l=1), point.alias.format(l=1)
            np.testing.assert_array_equal(trace[theirs], trace[ours], strict=True)


def test_an_alias_is_the_first_value_that_a_model_has(micro):
    plain, turned = (gptscope.trace(model, IDS) for model in (micro, rotary(micro)))
    normed = gptscope.trace(rich(rms_norm(micro)), IDS)
    for name, group in (("q", 2), ("k", 1)):
        alias = f"blocks.1.attn.hook_{name}"
        for trace, ours in ((plain, name), (turned, f"{name}_before_rope")):
            expected = trace.values[ours, 1].swapaxes(0, 1)
            np.testing.assert_array_equal(trace[alias], expected, strict=True)
        expected = normed.values[f"{name}_before_norm", 1]
        np.testing.assert_array_equal(normed[alias], expected.swapaxes(0, 1), strict=True)
        np.testing.assert_array_equal(
            normed[f"blocks.1.attn.hook_rot_{name}"], normed.values[name, 1].swapaxes(0, 1)
        )
        assert len(expected) in {2, group}
    scale = np.sqrt(normed["layers.1.ln1.mean_square"] + normed.spec.norm_eps)[:, None]
    np.testing.assert_array_equal(normed["blocks.1.ln1.hook_scale"], scale, strict=True)
    np.testing.assert_array_equal(
        normed["blocks.1.mlp.hook_pre"], normed["layers.1.mlp_gate"], strict=True
    )


def test_heads_that_share_keys_show_the_same():
    model = shared_keys(micro_model(sizes(n_heads=4, d_head=3)))
    trace = gptscope.trace(model, IDS)
    heads = trace.layers[0].heads
    assert trace.values["k", 0].shape == (2, 5, 3)
    np.testing.assert_array_equal(heads[0].k, heads[1].k, strict=True)
    np.testing.assert_array_equal(heads[3].v, trace.values["v", 0][1], strict=True)
    assert np.abs(heads[1].k - heads[2].k).max() > 0.1


def test_a_pass_ends_after_what_is_kept(micro):
    made = []
    blocks = Blocks(lambda i: made.append(i) or micro.blocks[i], micro.blocks)
    model = replace(micro, blocks=blocks)
    assert gptscope.trace(model, IDS, keep="layers.0.heads.1.weights").names()
    assert made == [0]
    gptscope.trace(model, IDS, keep="embeddings")
    assert made == [0]
    gptscope.trace(model, IDS, keep="ln_final.out")
    assert made == [0, 1]  # the last block made is kept


def test_groups_of_layers_and_heads(trace):
    assert len(trace.layers) == 2
    assert len(trace.layers[0].heads) == 2
    assert [layer.prefix for layer in trace.layers] == ["layers.0.", "layers.1."]
    np.testing.assert_array_equal(trace.layers[-1].output, trace.layers[1].output)
    np.testing.assert_array_equal(trace.layers[0].heads[-2].q, trace["layers.0.heads.0.q"])


@pytest.mark.parametrize("index", [2, -3, 99])
def test_a_layer_or_head_that_is_not_there(trace, index):
    with pytest.raises(IndexError, match=rf"layers\[{index}\]: there are 2"):
        trace.layers[index]
    with pytest.raises(IndexError, match=rf"layers\.0\.heads\[{index}\]: there are 2"):
        trace.layers[0].heads[index]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("layers.2.input", "layer 2 is out of range: this one has layers 0 to 1"),
        ("blocks.2.hook_resid_pre", "layer 2 is out of range: this one has layers 0 to 1"),
        ("layers.0.heads.2.q", "head 2 is out of range: this one has heads 0 to 1"),
        ("nonsense", "no value is called nonsense"),
    ],
)
def test_a_name_that_is_not_there(trace, name, why):
    with pytest.raises(UsageError, match=why):
        trace[name]


@pytest.mark.parametrize("name", ["nonsense", "logit", "hook", "layer"])
def test_an_attribute_that_is_not_there(trace, name):
    with pytest.raises(AttributeError, match=f"no value is called {name}"):
        getattr(trace, name)
    with pytest.raises(AttributeError, match=f"no value is called layers.0.{name}"):
        getattr(trace.layers[0], name)
    assert not hasattr(trace, name)


def test_what_can_be_asked_for(trace):
    assert dir(trace.layers[0].ln1) == ["mean", "normalized", "out", "variance"]
    assert dir(trace.ln_final) == ["mean", "normalized", "out", "variance"]
    assert {"attn_out", "heads", "ln1", "output"} <= set(dir(trace.layers[1]))
    assert {"q", "weights", "out"} <= set(dir(trace.layers[1].heads[0]))


# What is kept


def test_only_what_was_asked_for_is_kept(micro, trace):
    some = gptscope.trace(micro, IDS, keep=["weights", "layers.1.mlp_out", "logits"])
    assert set(some.values) == {("weights", 0), ("weights", 1), ("mlp_out", 1), ("logits", None)}
    for name in some.names():
        np.testing.assert_array_equal(some[name], trace[name], strict=True)
    assert len(some.names()) == 6


def test_nothing_can_be_kept(micro):
    assert gptscope.trace(micro, IDS, keep=[]).names() == ()


@pytest.mark.parametrize("name", ["embeddings", "layers.0.heads.0.q", "blocks.1.hook_resid_pre"])
def test_what_was_not_kept_is_told(micro, name):
    some = gptscope.trace(micro, IDS, keep=["logits"])
    with pytest.raises(UsageError, match=f"{name} is not in this trace: it was not kept"):
        some[name]


LACKING = {
    ("toy-post", "ln_final.out"): "no norm after the last block",
    ("gpt2", "layers.0.ln1.mean_square"): "layer norms, which take a mean and a variance",
    ("gpt2", "ln_final.mean_square"): "layer norms, which take a mean and a variance",
    ("gpt2", "layers.1.heads.0.q_before_rope"): "a learned table of positions, so queries and keys",
    ("toy", "layers.1.heads.1.k_before_rope"): "a computed table of positions, so queries and keys",
    ("toy-rotary", "layers.0.ln1.mean"): "RMS norms, which take no mean and no variance",
    (
        "toy-rotary",
        "hook_pos_embed",
    ): "rotary positions, which turn queries and keys, and adds none",
}


@pytest.mark.parametrize(("case", "name"), LACKING)
def test_what_the_model_lacks_is_told_with_the_reason(case, name):
    everything = gptscope.trace(gptscope.load(GOLDEN / case), [1, 2])
    with pytest.raises(UsageError, match=LACKING[case, name]) as fault:
        everything[name]
    assert fault.value.message.startswith(f"{name} is not in this trace: this model has ")
    assert "not kept" not in fault.value.message


def test_every_value_is_either_there_or_lacking_for_a_reason(golden_model):
    everything = gptscope.trace(golden_model, [1, 2])
    for key, point in BY_KEY.items():
        layer = 0 if "{l}" in point.name else None
        there = (key, layer) in everything.values
        assert there == (why_lacking(key, golden_model) is None), key


@pytest.mark.parametrize("path", [["ln1", "out"], ["ln2", "mean"]])
def test_a_norm_that_was_not_kept_is_told(micro, path):
    layer = gptscope.trace(micro, IDS, keep=["logits"]).layers[0]
    with pytest.raises(AttributeError, match="was not kept"):
        getattr(getattr(layer, path[0]), path[1])


@pytest.mark.parametrize("keep", [["weights", "nonsense"], ["layers.9.input"]])
def test_a_wrong_entry_is_refused_before_the_pass(micro, keep):
    with pytest.raises(UsageError, match=r"no value is called|out of range"):
        gptscope.trace(micro, IDS, keep=keep)


@pytest.mark.parametrize(
    ("ids", "why"),
    [([], "the text is empty"), ([1] * 13, "13 tokens long"), ([13], "token id 13 is outside")],
)
def test_ids_that_cannot_be_read_are_refused(micro, ids, why):
    with pytest.raises(UsageError, match=why):
        gptscope.trace(micro, ids)


# As a Python object


def test_two_passes_give_the_same_bits(micro, trace):
    again = gptscope.trace(micro, IDS)
    assert all(again[name].tobytes() == trace[name].tobytes() for name in trace.names())


def test_traces_are_compared_and_hashed_as_objects(micro, trace):
    assert trace == trace  # noqa: PLR0124
    assert trace != gptscope.trace(micro, IDS)
    assert len({trace, gptscope.trace(micro, IDS)}) == 2


def test_a_trace_can_be_copied_and_pickled(trace):
    pickled = pickle.loads(pickle.dumps(trace))  # noqa: S301
    for again in (copy.copy(trace), copy.deepcopy(trace), pickled):
        np.testing.assert_array_equal(again.layers[0].ln1.out, trace.layers[0].ln1.out)


def test_a_layer_can_be_copied(trace):
    assert copy.copy(trace.layers[0]).prefix == "layers.0."


def test_layers_can_be_sliced(trace):
    assert [layer.prefix for layer in trace.layers[1:]] == ["layers.1."]


def test_a_trace_lists_what_can_be_asked_for(trace):
    assert {"embeddings", "layers", "ln_final", "logits"} <= set(dir(trace))


def test_it_says_what_it_is_without_its_numbers(trace):
    assert repr(trace).startswith("Trace(ids=(3, 1, 4, 1, 5), spec=Spec(")
    assert "array" not in repr(trace)
