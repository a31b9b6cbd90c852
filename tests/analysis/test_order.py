from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gptscope
from gptscope.analysis.order import alone, derangement, head_outputs, order_case, order_cases
from gptscope.engine.ops import softmax
from tests.helpers.close import scale
from tests.helpers.micro import micro_model, models_and_ids
from tests.helpers.variants import rotary

ROUNDING = {"float32": 16 * 2.0**-23, "float64": 1e-12}  # of the scale
IDS = {"tiny": [643, 414, 266, 337, 331, 322], "toy": [1, 2, 5, 1, 7, 10, 1, 3, 6]}


@pytest.fixture(scope="module", params=IDS)
def name(request):
    return request.param


@given(models_and_ids(min_size=2), st.integers(0, 99), st.data())
def test_without_positions_and_mask_the_outputs_are_permuted(model_and_ids, seed, data):
    model, ids = model_and_ids
    layer = data.draw(st.integers(0, model.spec.n_layers - 1))
    head = data.draw(st.integers(0, model.spec.n_heads - 1))
    order = derangement(len(ids), seed)
    case, *others = order_cases(model, np.array(ids), order, layer, head)
    assert (case.positions, case.mask) == (False, False)
    v = np.abs(head_outputs(alone(model, layer, positions=False, mask=False), np.array(ids), head))
    assert case.scale == v.max()
    assert case.difference <= ROUNDING[str(model.dtype)] * scale(v)
    assert [(c.positions, c.mask) for c in others][-1][1]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_positions_and_the_mask_each_tell_the_order(name, dtype):
    model, ids = gptscope.load(name, dtype), np.array(IDS[name])
    order = derangement(len(ids), 0)
    for layer in range(model.spec.n_layers):
        for head in range(model.spec.n_heads):
            cases = order_cases(model, ids, order, layer, head)
            flags = [(case.positions, case.mask) for case in cases]
            assert flags == [(False, False), (True, False), (False, True), (True, True)]
            assert [case.same for case in cases] == [True, False, False, False]
            first, *others = cases
            assert first.difference < {"float32": 1e-5, "float64": 1e-13}[dtype] * first.scale
            assert min(case.difference for case in others) > 1e3 * first.difference


@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("positions", [False, True])
def test_outputs_are_those_of_the_formula(toy_or_tiny, positions, mask):
    model, ids = toy_or_tiny
    layer, head, n = model.spec.n_layers - 1, 1, len(ids)
    block, d_head = model.blocks[layer], model.spec.d_head
    x = model.token_table[ids].astype(float)
    if positions:
        x = x + model.position_table[:n]
    x = (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + model.spec.norm_eps)
    x = x * block.ln1.gain + block.ln1.shift
    part = slice(head * d_head, (head + 1) * d_head)
    q, k, v = (
        x @ linear.weight[:, part] + linear.bias[part]
        for linear in (block.attention.q, block.attention.k, block.attention.v)
    )
    scores = q @ k.T / np.sqrt(d_head)
    if mask:
        scores[np.triu_indices(n, 1)] = -np.inf
    expected = softmax(scores) @ v
    shown = head_outputs(alone(model, layer, positions=positions, mask=mask), ids, head)
    np.testing.assert_allclose(shown, expected, rtol=1e-9, atol=1e-12)


@pytest.fixture(params=IDS)
def toy_or_tiny(request):
    return gptscope.load(request.param, "float64"), np.array(IDS[request.param])


def test_the_first_block_with_both_is_the_model_itself(name):
    model, ids = gptscope.load(name), IDS[name]
    found = head_outputs(alone(model, 0, positions=True, mask=True), np.array(ids), 1)
    np.testing.assert_array_equal(found, gptscope.trace(model, ids).layers[0].heads[1].out)


def test_turning_tells_the_order_and_is_a_position():
    model, ids = rotary(micro_model()), np.array([3, 1, 4, 1, 5])
    cases = order_cases(model, ids, derangement(5, 0), 1, 1)
    assert [case.same for case in cases] == [True, False, False, False]
    assert [case.positions for case in cases] == [False, True, False, True]


def test_a_model_without_positions_has_two_cases():
    model, ids = replace(micro_model(), position_table=None), np.array([3, 1, 4, 1, 5])
    cases = order_cases(model, ids, derangement(5, 0), 0, 0)
    assert [(c.positions, c.mask, c.same) for c in cases] == [
        (False, False, True),
        (False, True, False),
    ]


def test_the_difference_is_the_largest():
    model = alone(micro_model(), 0, positions=True, mask=True)
    ids, order = np.array([3, 1, 4]), np.array([2, 0, 1])
    case = order_case(model, ids, order, 0)
    before, after = head_outputs(model, ids, 0), head_outputs(model, ids[order], 0)
    expected = max(
        abs(float(after[at, i]) - float(before[origin, i]))
        for at, origin in enumerate(order)
        for i in range(model.spec.d_head)
    )
    assert case.difference == pytest.approx(expected, rel=1e-6)
    assert case.scale == np.abs(before).max()


def test_what_is_not_a_number_is_not_the_same():
    model = micro_model()
    model.token_table[1] = np.nan
    case, *_ = order_cases(model, np.array([3, 1, 4]), np.array([2, 0, 1]), 0, 0)
    assert np.isnan(case.difference)
    assert not case.same


@given(st.integers(2, 40), st.integers(0, 999))
def test_a_derangement_moves_everything_in_one_cycle(n, seed):
    order = derangement(n, seed)
    assert sorted(order) == list(range(n))
    at, seen = 0, []
    while at not in seen:
        seen.append(at)
        at = order[at]
    assert len(seen) == n
    np.testing.assert_array_equal(order, derangement(n, seed), strict=True)


@given(st.lists(st.integers(0, 2), min_size=2, max_size=12), st.integers(0, 99))
def test_a_derangement_changes_every_text_but_one_of_equal_tokens(ids, seed):
    assume(len(set(ids)) > 1)
    ids = np.array(ids)
    assert not np.array_equal(ids, ids[derangement(len(ids), seed)])


def test_seeds_differ():
    assert len({tuple(derangement(6, seed)) for seed in range(20)}) > 10
