# What holds for every edit, on every model that Hypothesis thinks of and on every family.

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gptscope
from gptscope.engine.hook_points import BY_KEY
from gptscope.model.load import load
from tests.golden.transformers.cases import CASES
from tests.helpers.close import assert_close, scale
from tests.helpers.families import family_folder
from tests.helpers.micro import micro_model, models_and_ids
from tests.helpers.variants import rich, rms_norm

IDS, OTHER = [3, 1, 4, 1, 5], [2, 7, 1, 8, 2]
STREAM = ("embeddings", "layers.{}.input", "layers.{}.output")


def identical(a, b):
    assert a.names() == b.names()
    for name in a.names():
        assert a[name].tobytes() == b[name].tobytes(), name


def streams(model):
    """The names of the whole residual stream, from the embeddings to the end."""
    layers = range(model.spec.n_layers)
    return ["embeddings", *(form.format(i) for i in layers for form in STREAM[1:])]


def order(trace):
    """The names in the order of the pass."""
    return {name: i for i, name in enumerate(trace.names())}


def before(name, value, position):
    """What a value has of the tokens before a position, and of what they can see."""
    part = value[:position]
    return part[:, :position] if name.endswith(".scores") else part


@given(models_and_ids())
def test_an_empty_edit_changes_no_bit(model_and_ids):
    model, ids = model_and_ids
    identical(gptscope.trace(model, ids, edits=[]), gptscope.trace(model, ids))


@given(models_and_ids(), st.data())
def test_freezing_a_value_to_itself_changes_no_bit(model_and_ids, data):
    model, ids = model_and_ids
    plain = gptscope.trace(model, ids)
    names = data.draw(st.sets(st.sampled_from(plain.names()), min_size=1, max_size=6))
    identical(gptscope.trace(model, ids, edits=[(name, plain[name]) for name in names]), plain)
    itself = f"{min(names)}=from:ids:{','.join(map(str, ids))}"
    identical(gptscope.trace(model, ids, edits=[itself]), plain)


@given(models_and_ids(), st.data())
def test_patching_the_whole_stream_reproduces_the_other_run_from_there(model_and_ids, data):
    model, ids = model_and_ids
    tokens = st.integers(0, model.spec.n_vocab - 1)
    other = data.draw(st.lists(tokens, min_size=len(ids), max_size=len(ids)))
    name = data.draw(st.sampled_from(streams(model)))
    there = gptscope.trace(model, other)
    made = gptscope.trace(model, ids, edits=[f"{name}=from:ids:{','.join(map(str, other))}"])
    first = order(there)[name]
    for later in there.names()[first:]:
        assert made[later].tobytes() == there[later].tobytes(), later


@given(models_and_ids(min_size=2), st.data())
def test_an_edit_changes_no_earlier_position_and_no_earlier_layer(model_and_ids, data):
    model, ids = model_and_ids
    plain = gptscope.trace(model, ids)
    name = data.draw(st.sampled_from(plain.names()))
    position = data.draw(st.integers(0, len(ids) - 1))
    made = gptscope.trace(model, ids, edits=[f"{name}[{position}]=1.25"])
    at = order(plain)[name]
    for other in plain.names():
        same, new = plain[other], made[other]
        if order(plain)[other] < at and not of_one_stack(other, name):
            assert new.tobytes() == same.tobytes(), other
        earlier = (before(other, value, position) for value in (new, same))
        np.testing.assert_array_equal(*earlier, err_msg=other)


def of_one_stack(one, other):
    """Whether two names are of one value: heads may share a key."""
    return [part for part in one.split(".") if not part.isdigit()] == [
        part for part in other.split(".") if not part.isdigit()
    ]


@given(models_and_ids(), st.data())
def test_what_an_edit_puts_there_is_what_the_pass_goes_on_with(model_and_ids, data):
    # The pass from an edited value on equals the pass of a model that computes that value.
    model, ids = model_and_ids
    name = data.draw(st.sampled_from(streams(model)))
    plain = gptscope.trace(model, ids)
    moved = (plain[name] * 0.5 + 0.25).astype(model.dtype)
    made = gptscope.trace(model, ids, edits=[(name, lambda x: x * 0.5 + 0.25)])
    put = gptscope.trace(model, ids, edits=[(name, moved)])
    assert_close("logits", made.logits, put.logits, str(model.dtype))
    assert_close(name, made[name], moved, str(model.dtype), allowed=1e-6 * scale(moved))


@given(models_and_ids(min_size=2))
def test_heads_without_outputs_leave_their_bias(model_and_ids):
    model, ids = model_and_ids
    assume(model.spec.n_layers > 0)
    made = gptscope.trace(model, ids, edits=["layers.*.heads.*.out=zero"])
    for layer, block in zip(made.layers, model.blocks, strict=True):
        bias = block.attention.out.bias
        expected = 0 if bias is None else bias * model.spec.residual_scale
        np.testing.assert_allclose(layer.attn_out, np.broadcast_to(expected, layer.attn_out.shape))


@pytest.mark.parametrize("case", [case.name for case in CASES])
def test_laws_of_edits_in_every_family(case):
    model = load(family_folder(case))
    plain, there = gptscope.trace(model, IDS), gptscope.trace(model, OTHER)
    identical(gptscope.trace(model, IDS, edits=[]), plain)
    identical(gptscope.trace(model, IDS, edits=[(n, plain[n]) for n in plain.names()]), plain)
    for name in streams(model)[::2]:
        made = gptscope.trace(model, IDS, edits=[f"{name}=from:ids:2,7,1,8,2"])
        for later in there.names()[order(there)[name] :]:
            assert made[later].tobytes() == there[later].tobytes(), (name, later)
    last = model.spec.n_layers - 1
    made = gptscope.trace(model, IDS, edits=[f"layers.{last}.heads.*.out[3]=zero"])
    np.testing.assert_array_equal(made.logits[:3], plain.logits[:3])
    assert (made.logits[3] != plain.logits[3]).any()
    np.testing.assert_array_equal(made.logits[4], plain.logits[4])


def test_every_value_of_every_family_can_be_changed():
    unseen, made_here = set(BY_KEY), rich(micro_model())
    families = (load(family_folder(case.name)) for case in CASES)
    for model in (made_here, rms_norm(made_here), *families):
        plain = gptscope.trace(model, IDS)
        for key in sorted({key for key, _ in plain.values} & unseen):
            made = gptscope.trace(model, IDS, edits=[f"{key}=*0.5"])
            assert (made.logits != plain.logits).any() or key == "logits_before_cap", key
            unseen.discard(key)
    assert unseen == set()
