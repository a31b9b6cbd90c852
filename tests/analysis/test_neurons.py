from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import gptscope
from gptscope.analysis.attribution import attribute, directions
from gptscope.analysis.attribution.directions import frozen, frozen_back, sigma
from gptscope.analysis.neighbours import nearest
from gptscope.analysis.neurons import (
    KEEP,
    Widened,
    contributions,
    likeness,
    n_for_half,
    norms_after,
    norms_before,
    reads_along,
    says,
)
from gptscope.model.dtypes import BF16
from gptscope.model.weights import Linear
from tests.golden.transformers.cases import CASES
from tests.helpers.families import family_folder
from tests.helpers.folders import bf16_bits
from tests.helpers.micro import micro_model, models_and_ids
from tests.helpers.variants import CHANGES, WIRED, gated, in_blocks, projected

IDS = [3, 1, 4, 1, 5]


def near_to(actual, expected, dtype):
    to = {"float32": 2e-5, "float64": 1e-9}[str(dtype)]
    assert_allclose(actual, expected, rtol=to, atol=to * max(1.0, np.abs(expected).max()))


def by_answer(model, trace, position, unit):
    """What a unit says, token by token on the way back from each logit."""
    layer, i = unit
    row = model.blocks[layer].mlp.down.weight[i].astype(np.float64) * model.spec.residual_scale
    each = (directions(model, trace, position, {a: 1.0}) for a in range(model.spec.n_vocab))
    return np.array([row @ one.at["mlp_out", layer] for one in each])


def check_says(model, ids):
    trace = gptscope.trace(model, ids)
    units = [(layer, model.spec.d_ff - 1) for layer in range(model.spec.n_layers)]
    found = says(model, trace, units, len(ids) - 1)
    assert found.shape == (len(units), model.spec.n_vocab)
    expected = np.stack([by_answer(model, trace, len(ids) - 1, unit) for unit in units])
    near_to(found, expected, np.dtype(np.float64))
    for one, other in zip(found, expected, strict=True):
        n = model.spec.n_vocab
        assert_allclose(one[nearest(one, n)], np.sort(other)[::-1], rtol=1e-9, atol=1e-9)


@given(models_and_ids())
def test_what_a_unit_says_is_what_every_logit_hears(model_and_ids):
    check_says(*model_and_ids)


@pytest.mark.parametrize("case", [case.name for case in CASES])
def test_units_of_every_family(case):
    model = gptscope.load(family_folder(case))
    check_says(model, [1, 2, 3, 4, 5])
    trace = gptscope.trace(model, [1, 2, 3, 4, 5])
    check_reads(model, trace)
    check_sum(model, trace, {7: 1.0, 9: -1.0})


def test_what_a_unit_of_tiny_says_is_its_row_through_the_last_norm(tiny):
    trace = gptscope.trace(tiny, IDS)
    row = tiny.blocks[2].mlp.down.weight[204].astype(np.float64)
    scale = np.sqrt(trace.layers[-1].output[3].astype(np.float64).var() + tiny.spec.norm_eps)
    normed = (row - row.mean()) / scale * tiny.ln_final.gain
    expected = normed @ np.asarray(tiny.output_table, np.float64).T
    assert_allclose(says(tiny, trace, [(2, 204)], 3)[0], expected, rtol=1e-5, atol=1e-6)


def test_a_larger_value_moves_logits_by_what_the_unit_says():
    # Without a norm that follows, the whole effect is the direct one.
    model = replace(micro_model(dtype="float64"), ln_final=None)
    trace, (layer, i) = gptscope.trace(model, IDS), (1, 4)
    row = model.blocks[layer].mlp.down.weight[i]
    down = model.blocks[layer].mlp.down
    moved = replace(down, bias=down.bias + 0.5 * row)  # as if the value were larger by a half
    blocks = (
        model.blocks[0],
        replace(model.blocks[1], mlp=replace(model.blocks[1].mlp, down=moved)),
    )
    other = gptscope.trace(replace(model, blocks=blocks), IDS)
    for position in range(len(IDS)):
        found = says(model, trace, [(layer, i)], position)[0]
        assert_allclose(other.logits[position] - trace.logits[position], 0.5 * found, atol=1e-12)


def check_sum(model, trace, wanted):
    position = len(trace.ids) - 1
    account = attribute(model, trace, position, wanted)
    layers = range(model.spec.n_layers)
    found = contributions(model, trace, account.found, layers)
    assert found.shape == (len(layers), model.spec.d_ff, 2)
    units = [term.value for term in account.terms if term.kind == "feed forward"]
    near_to(found.prod(axis=-1).sum(axis=1), np.array(units), model.dtype)
    others = sum(term.value for term in account.terms if term.kind != "feed forward")
    size = sum(abs(term.value) for term in account.terms)
    to = {"float32": 1e-4, "float64": 1e-10}[str(model.dtype)]
    assert abs(found.prod(axis=-1).sum() + others - account.logit) <= to * max(1.0, size)
    per_one = says(model, trace, [(0, 0)], position)[0]
    direct = sum(weight * per_one[i] for i, weight in wanted.items())
    assert_allclose(found[0, 0, 1], direct, rtol=1e-9, atol=1e-9)
    assert found[0, 0, 0] == trace.layers[0].mlp_act[position, 0]


@given(models_and_ids())
def test_units_biases_and_the_rest_add_up_to_the_logit(model_and_ids):
    model, ids = model_and_ids
    check_sum(model, gptscope.trace(model, ids), {0: 1.0})


def check_reads(model, trace):
    """A part of the token's embedding turns a unit on as the product with its direction says."""
    rng = np.random.default_rng(0)
    position = len(trace.ids) - 1
    for layer, block in enumerate(model.blocks):
        for matrix in filter(None, (block.mlp.up, block.mlp.gate)):
            u = reads_along(model, trace, matrix, (layer, 0))
            scale = 1.0
            parts = rng.normal(size=(3, model.spec.d_model))
            came = []
            for part in parts:
                x = part
                for name in reversed(norms_before(trace, layer)):
                    x = frozen(model, name, x, sigma(trace, name, position))
                came.append(x @ matrix.weight[:, 0].astype(np.float64))
            for name in norms_before(trace, layer):
                scale *= sigma(trace, name, position)
            assert_allclose(np.array(came) * scale, parts @ u, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("change", ["scales", "rms_norm"])
def test_a_frozen_norm_backwards_is_its_transpose(change):
    model = CHANGES[change](micro_model(dtype="float64"))
    x, u = np.random.default_rng(0).normal(size=(2, model.spec.d_model))
    for name in ("layers.0.ln1", "ln_final"):
        given = frozen(model, name, x, 3.0) @ u
        assert_allclose(frozen_back(model, name, u, 3.0) @ x, given, rtol=1e-12)


@given(models_and_ids())
def test_units_read_along_their_directions(model_and_ids):
    model, ids = model_and_ids
    check_reads(model, gptscope.trace(model, ids))


def test_the_direction_of_a_unit_of_tiny_has_the_gain_and_no_mean(tiny):
    trace = gptscope.trace(tiny, IDS, KEEP)
    block = tiny.blocks[3]
    u = block.ln2.gain * block.mlp.up.weight[:, 9].astype(np.float64)
    expected = u - u.mean()
    assert_allclose(reads_along(tiny, trace, block.mlp.up, (3, 9)), expected, rtol=1e-6, atol=1e-8)
    rows = np.asarray(tiny.token_table, np.float64)
    cosines = rows @ expected / np.linalg.norm(rows, axis=1) / np.linalg.norm(expected)
    assert_allclose(likeness(tiny, expected), cosines, rtol=1e-9, atol=1e-12, strict=True)


WAYS = {  # norms after the units of layer 0 of two, and before those of layer 1
    "pre_norm": (["ln_final"], ["layers.1.ln2"]),
    "sandwich": (["ln_final", "layers.0.ln2_post"], ["layers.1.ln2"]),
    "post_norm": (
        ["layers.1.ln2", "layers.1.ln1", "layers.0.ln2"],
        ["layers.1.ln1", "layers.0.ln2", "layers.0.ln1"],
    ),
    "norm_of_parts": (["ln_final", "layers.0.ln2"], []),
    "parallel": (["ln_final"], ["layers.1.ln2"]),
    "one_norm": (["ln_final"], ["layers.1.ln1"]),
    "norm_in_stream": (
        ["ln_final", "layers.1.ln2", "layers.1.ln1"],
        ["layers.1.ln2", "layers.1.ln1", "layers.0.ln2", "layers.0.ln1"],
    ),
}


@pytest.mark.parametrize("wiring", WIRED)
def test_the_norms_on_the_way(wiring):
    model = WIRED[wiring](micro_model())
    trace = gptscope.trace(model, IDS, KEEP)
    assert (norms_after(trace, 0), norms_before(trace, 1)) == WAYS[wiring]


def test_a_norm_of_the_embeddings_is_on_the_way():
    model = CHANGES["normed_embeddings"](micro_model())
    assert norms_before(gptscope.trace(model, IDS, KEEP), 0) == ["layers.0.ln2", "embed_norm"]


def test_a_table_behind_a_matrix_is_as_the_stream_gets_it():
    model = projected(micro_model(dtype="float64"))
    widened = Widened(model.token_table, model.project_in)
    assert widened.shape == (model.spec.n_vocab, model.spec.d_model)
    assert_allclose(widened[IDS], gptscope.trace(model, IDS).token_embeddings, rtol=1e-12)
    assert_array_equal(np.asarray(widened)[3:5], widened[3:5])
    u = np.arange(model.spec.d_model) - 1.0
    rows = np.asarray(widened)
    expected = rows @ u / np.linalg.norm(rows, axis=1) / np.linalg.norm(u)
    assert_allclose(likeness(model, u), expected, atol=1e-12, strict=True)


def test_how_matrices_are_stored_does_not_matter():
    def stored(convert):
        def linear(w):
            return Linear(convert(bf16_bits(w.stored)), w.bias)

        def block(b):
            mlp = replace(b.mlp, up=linear(b.mlp.up), down=linear(b.mlp.down))
            return replace(b, mlp=replace(mlp, gate=linear(mlp.gate)))

        return in_blocks(gated(micro_model()), block)

    narrow = stored(lambda bits: bits.view(BF16))
    wide = stored(lambda bits: (bits.astype("uint32") << 16).view("float32"))
    trace = gptscope.trace(wide, IDS)
    one, two = (says(model, trace, [(0, 3), (1, 5)], 4) for model in (narrow, wide))
    assert_array_equal(one, two, strict=True)
    for name in ("up", "gate"):
        one, two = (
            reads_along(model, trace, getattr(model.blocks[1].mlp, name), (1, 5))
            for model in (narrow, wide)
        )
        assert_array_equal(one, two, strict=True)


@given(st.lists(st.floats(-9, 9), min_size=1, max_size=12))
def test_the_fewest_that_make_half(numbers):
    given_, n = np.array(numbers), n_for_half(np.array(numbers))
    sizes = np.sort(np.abs(given_))[::-1]
    if not sizes.sum() > 0:
        assert n == 0
        return
    assert sizes[:n].sum() >= sizes.sum() / 2 - 1e-9
    assert sizes[: n - 1].sum() < sizes.sum() / 2 + 1e-9
    assert 1 <= n <= len(numbers)
