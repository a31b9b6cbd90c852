import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import gptscope
from gptscope.analysis.attribution import (
    KEEP,
    KEEP_EDITED,
    attribute,
    directions,
    source_contributions,
    unit_contributions,
)
from gptscope.errors import UsageError
from gptscope.model.weights import Linear
from tests.golden.transformers.cases import CASES
from tests.helpers.families import family_folder
from tests.helpers.micro import micro_model, models_and_ids
from tests.helpers.variants import CHANGES, WIRED, alibi, capped, changed, projected, rich, scales

ALLOWED = {"float32": 1e-4, "float64": 1e-10}  # of the largest number in the account
STREAM = ("embeddings", "input", "attn_out", "resid_after_attn", "mlp_out", "output")


@st.composite
def asked(draw):
    """A model, its ids, a position, and an answer against another token."""
    model, ids = draw(models_and_ids())
    token = st.integers(0, model.spec.n_vocab - 1)
    answer, against = draw(token), draw(token)
    wanted = {answer: 1.0} | ({against: -1.0} if against != answer else {})
    return model, ids, draw(st.integers(0, len(ids) - 1)), wanted


def assert_adds_up(account, dtype):
    largest = max([1.0, abs(account.logit), *(abs(term.value) for term in account.terms)])
    assert abs(account.remainder) <= ALLOWED[str(dtype)] * largest
    assert account.total + account.remainder == pytest.approx(account.logit, rel=1e-12, abs=1e-12)


def named(account):
    return {term.name: term.value for term in account.terms}


def near(actual, expected, dtype, size=1.0):
    allowed = {"float32": 1e-5, "float64": 1e-11}[str(dtype)]
    assert_allclose(actual, expected, rtol=0, atol=allowed * max(1.0, size))


# What holds for every model


@given(asked())
def test_the_terms_add_up_to_the_logit(case):
    model, ids, position, wanted = case
    account = attribute(model, gptscope.trace(model, ids, KEEP), position, wanted)
    assert_adds_up(account, model.dtype)
    assert len(set(named(account))) == len(account.terms)
    assert {term.kind for term in account.terms} >= {"embedding", "head", "feed forward"}
    assert "edit" not in {term.kind for term in account.terms}


@pytest.mark.parametrize("dtype", ALLOWED)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_they_add_up_in_every_family(case, dtype):
    model = gptscope.load(family_folder(case.name), dtype=dtype)
    trace = gptscope.trace(model, list(range(1, 30)), KEEP)
    for wanted in ({7: 1.0}, {3: 1.0, 5: -1.0}):
        assert_adds_up(attribute(model, trace, 28, wanted), dtype)


@pytest.mark.parametrize("wiring", WIRED)
@pytest.mark.parametrize("change", CHANGES)
def test_they_add_up_with_everything_a_family_may_choose(wiring, change):
    for dtype in ALLOWED:
        model = CHANGES[change](WIRED[wiring](micro_model(dtype=dtype)))
        trace = gptscope.trace(model, [1, 2, 3, 4], KEEP)
        assert_adds_up(attribute(model, trace, -2, {3: 1.0, 5: -1.0}), dtype)


@given(asked())
def test_a_difference_is_one_account_less_the_other(case):
    model, ids, position, wanted = case
    trace = gptscope.trace(model, ids, KEEP)
    whole = attribute(model, trace, position, wanted)
    single = [attribute(model, trace, position, {i: 1.0}) for i in wanted]
    signs = list(wanted.values())
    for i, term in enumerate(whole.terms):
        given = [account.terms[i] for account in single]
        assert {one.name for one in given} == {term.name}
        values = [sign * one.value for sign, one in zip(signs, given, strict=True)]
        near(term.value, sum(values), "float64", max(map(abs, values)))


@given(asked())
def test_what_is_not_kept_is_not_needed(case):
    model, ids, position, wanted = case
    few, every = (gptscope.trace(model, ids, keep) for keep in (KEEP, KEEP_EDITED))
    short, long = (attribute(model, trace, position, wanted) for trace in (few, every))
    assert [t.name for t in short.terms] == [t.name for t in long.terms]
    size = max(abs(term.value) for term in long.terms)
    near([t.value for t in short.terms], [t.value for t in long.terms], model.dtype, size)


@given(asked())
def test_sources_add_up_to_heads_and_units_to_layers(case):
    model, ids, position, wanted = case
    trace = gptscope.trace(model, ids)
    account = attribute(model, trace, position, wanted)
    terms = named(account)
    for layer in range(model.spec.n_layers):
        weights, says = source_contributions(model, trace, account.found, layer)
        assert weights.shape == says.shape == (model.spec.n_heads, len(ids))
        heads = [terms[f"layers.{layer}.heads.{h}"] for h in range(model.spec.n_heads)]
        near((weights * says).sum(axis=1), heads, model.dtype, np.abs(weights * says).sum())
        assert not weights[:, position + 1 :].any()
        units = unit_contributions(model, trace, account.found, layer)
        assert units.shape == (model.spec.d_ff,)
        near(units.sum(), terms[f"layers.{layer}.mlp"], "float64", np.abs(units).sum())


@given(asked(), st.data())
def test_a_direction_is_how_a_logit_grows_if_all_else_is_frozen(case, data):
    # Every other part is put back to what it was, and so is the scale of every norm.
    model, ids, position, wanted = case
    model = replace(model, dtype=np.dtype(np.float64))
    trace = gptscope.trace(model, ids)
    found = directions(model, trace, position, wanted)
    ends = [one for one in found.at if one[0] in {"attn_out", "mlp_out", "token_embeddings"}]
    chosen = data.draw(st.sampled_from(ends))
    frozen = [n for n in trace.names() if n.endswith((".variance", ".mean_square"))]
    frozen += [name_of(one) for one in ends if one != chosen]
    more = np.random.default_rng(0).normal(size=model.spec.d_model)
    moved = trace.values[chosen].copy()
    moved[position] += more
    edits = [(name, trace[name]) for name in frozen] + [(name_of(chosen), moved)]
    again = gptscope.trace(model, ids, edits=edits)
    key = "logits_before_cap" if model.spec.logit_cap else "logits"
    grown = (again[key] - trace[key])[position]
    terms = [weight * grown[i] for i, weight in wanted.items()]
    expected = float(more @ found.at[chosen])
    near(sum(terms), expected, model.dtype, max(map(abs, terms)) + np.abs(trace[key]).max())


def name_of(value):
    key, layer = value
    return key if layer is None else f"layers.{layer}.{key}"


# By hand


def test_a_small_gpt_2_by_hand():
    model, ids, at = micro_model(seed=5, dtype="float64"), [3, 1, 4, 1, 5], 3
    trace = gptscope.trace(model, ids)
    d, heads, d_head = model.spec.d_model, model.spec.n_heads, model.spec.d_head
    centring = np.eye(d) - np.ones((d, d)) / d
    sigma = np.std(trace["layers.1.output"][at]) ** 2 + model.spec.norm_eps
    gain, shift = model.ln_final.gain, model.ln_final.shift
    column = np.asarray(model.output_table)[7] - np.asarray(model.output_table)[2]

    def counts(x):
        return float((centring @ x / np.sqrt(sigma) * gain) @ column)

    expected = {
        "token_embeddings": counts(np.asarray(model.token_table)[1]),
        "position_embeddings": counts(np.asarray(model.position_table)[at]),
    }
    for layer, block in enumerate(model.blocks):
        weights = trace.layers[layer]
        for h in range(heads):
            slice_of_w = block.attention.out.weight[h * d_head : (h + 1) * d_head]
            mixed = sum(weights.heads[h].weights[at, s] * weights.heads[h].v[s] for s in range(4))
            expected[f"layers.{layer}.heads.{h}"] = counts(mixed @ slice_of_w)
        expected[f"layers.{layer}.attn.bias"] = counts(block.attention.out.bias)
        expected[f"layers.{layer}.mlp"] = counts(weights.mlp_act[at] @ block.mlp.down.weight)
        expected[f"layers.{layer}.mlp.bias"] = counts(block.mlp.down.bias)
    expected["ln_final.shift"] = float(shift @ column)
    account = attribute(model, gptscope.trace(model, ids, KEEP), at, {7: 1.0, 2: -1.0})
    assert list(named(account)) == list(expected)
    assert_allclose(list(named(account).values()), list(expected.values()), atol=1e-12)
    assert account.logit == pytest.approx(trace.logits[at, 7] - trace.logits[at, 2])


def test_every_kind_of_part_is_named():
    model = changed(rich(micro_model()), logit_scale=0.25)
    eye, bias = np.eye(6, dtype=np.float32), np.full(6, 0.25, np.float32)
    model = replace(model, project_out=Linear(eye, bias), output_bias=np.ones(13, np.float32))
    account = attribute(model, gptscope.trace(model, [1, 2], KEEP), 1, {3: 1.0})
    assert [t.name for t in account.terms if t.layer is None] == [
        *("token_embeddings", "embed_norm.shift"),
        *("ln_final.shift", "project_out.bias", "output_bias"),
    ]
    assert [t.name for t in account.terms if t.layer == 1] == [
        *(f"layers.1.{part}" for part in ("heads.0", "heads.1", "attn.bias", "ln1_post.shift")),
        *(f"layers.1.{part}" for part in ("mlp", "mlp.bias", "ln2_post.shift")),
    ]
    assert_adds_up(account, "float32")


def test_scales_and_projections_reach_the_terms():
    plain = micro_model(dtype="float64")
    for change in (scales, projected):
        model = change(plain)
        trace = gptscope.trace(model, [1, 2, 3])
        account = attribute(model, trace, 2, {3: 1.0})
        u = account.found.at["mlp_out", 1]
        mlp = float(trace.layers[1].mlp_out[2] @ u)
        terms = named(account)
        assert terms["layers.1.mlp"] + terms["layers.1.mlp.bias"] == pytest.approx(mlp, rel=1e-9)
        heads = sum(terms[f"layers.1.heads.{h}"] for h in range(2)) + terms["layers.1.attn.bias"]
        u = account.found.at["attn_out", 1]
        assert heads == pytest.approx(float(trace.layers[1].attn_out[2] @ u), rel=1e-9)


def test_a_capped_logit_is_split_before_its_cap():
    model = capped(micro_model(seed=2))
    trace = gptscope.trace(model, [1, 2, 3])
    account = attribute(model, trace, 2, {3: 1.0})
    assert account.logit == trace.logits_before_cap[2, 3]
    assert account.logit != pytest.approx(float(trace.logits[2, 3]), rel=1e-3)


def test_a_value_that_was_not_kept_is_missed():
    model = micro_model()
    trace = gptscope.trace(model, [1, 2], ["logits", "token_embeddings"])
    with pytest.raises(UsageError, match=r"^ln_final\.variance is not in this trace"):
        attribute(model, trace, 1, {3: 1.0})


def test_directions_end_where_parts_begin():
    model = WIRED["post_norm"](alibi(micro_model()))
    found = directions(model, gptscope.trace(model, [1, 2], KEEP), 0, {3: 1.0})
    assert list(found.at) == [
        *in_a_block(1),
        *in_a_block(0),
        *(("embeddings", None), ("token_embeddings", None)),
    ]
    assert all(u.shape == (6,) and u.dtype == np.float64 for u in found.at.values())


def in_a_block(layer):
    keys = ("output", "ln2.out", "mlp_out", "resid_after_attn", "ln1.out", "attn_out", "input")
    return [(key, layer) for key in keys]


# After edits


@given(asked(), st.data())
def test_an_edited_pass_adds_up_and_says_where_it_was_edited(case, data):
    model, ids, position, wanted = case
    plain = gptscope.trace(model, ids)
    values = [v for v in directions(model, plain, position, wanted).at if "token_" not in v[0]]
    values = [v for v in values if "position_" not in v[0]]
    chosen = name_of(data.draw(st.sampled_from(values)))
    trace = gptscope.trace(model, ids, KEEP_EDITED, edits=[(chosen, plain[chosen] * 2 + 1)])
    account = attribute(model, trace, position, wanted)
    assert_adds_up(account, model.dtype)
    edits = [term for term in account.terms if term.kind == "edit"]
    assert [term.name for term in edits] in ([], [f"{chosen} changed by --edit"])
    (u,) = (u for value, u in account.found.at.items() if name_of(value) == chosen)
    more = float((trace[chosen] - plain[chosen].astype(np.float64))[position] @ u)
    if abs(more) > 1e-2 * float(np.linalg.norm(trace[chosen][position]) * np.linalg.norm(u)):
        assert math.fsum(term.value for term in edits) == pytest.approx(more, rel=1e-2)


def test_an_edited_part_keeps_its_pieces_and_has_what_it_was_given():
    model = micro_model(dtype="float64")
    trace = gptscope.trace(model, [1, 2, 3], KEEP_EDITED, edits=["layers.1.attn_out=zero"])
    terms = named(attribute(model, trace, 2, {3: 1.0}))
    pieces = [terms[f"layers.1.{name}"] for name in ("heads.0", "heads.1", "attn.bias")]
    assert terms["layers.1.attn_out changed by --edit"] == pytest.approx(-sum(pieces), rel=1e-9)
    assert list(terms).index("layers.1.attn_out changed by --edit") == 10


@pytest.mark.parametrize(
    ("edit", "names"),
    [
        ("layers.0.heads.1.out=zero", []),
        ("layers.0.attn_concat=zero", []),
        ("layers.1.mlp_act=2", []),
        ("ln_final.variance=2", []),
        ("ln_final.mean=2", ["ln_final.out"]),
        ("ln_final.normalized=2", ["ln_final.out"]),
        ("layers.1.mlp_out=2", ["layers.1.mlp_out"]),
        ("layers.1.input=2", ["layers.1.input"]),
        ("embeddings=2", ["embeddings"]),
        ("logits=9", ["logits"]),
    ],
)
def test_only_what_is_no_sum_of_its_parts_is_told(edit, names):
    model = micro_model(seed=1)
    trace = gptscope.trace(model, [1, 2, 3], KEEP_EDITED, edits=[edit])
    account = attribute(model, trace, 1, {3: 1.0})
    assert_adds_up(account, "float32")
    found = [term for term in account.terms if term.kind == "edit"]
    assert [term.name for term in found] == [f"{name} changed by --edit" for name in names]
    assert [name_of(term.of) for term in found] == names


def test_every_term_tells_the_value_that_it_is_of():
    model = CHANGES["output_bias"](WIRED["post_norm"](micro_model()))
    account = attribute(model, gptscope.trace(model, [1, 2, 3], KEEP), 1, {3: 1.0})
    of = {term.name: term.of for term in account.terms}
    assert of.pop("output_bias") is None
    assert of["layers.1.heads.0"] == of["layers.1.attn.bias"] == ("attn_out", 1)
    assert of["layers.0.mlp"] == of["layers.0.mlp.bias"] == ("mlp_out", 0)
    assert of["layers.0.ln2.shift"] == ("ln2.out", 0)
    assert of["token_embeddings"] == ("token_embeddings", None)
    assert set(of.values()) <= account.found.at.keys()


def test_a_head_without_output_gives_nothing():
    model = micro_model()
    edits = ["layers.0.heads.1.out=zero"]
    trace = gptscope.trace(model, [1, 2, 3], KEEP_EDITED, edits=edits)
    terms = named(attribute(model, trace, 1, {3: 1.0}))
    assert terms["layers.0.heads.1"] == 0
    assert terms["layers.0.heads.0"] != 0
