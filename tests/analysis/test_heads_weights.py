from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose

import gptscope
from gptscope.analysis.heads import copying as module
from gptscope.analysis.heads.circuits import heads
from gptscope.analysis.heads.composition import composition, level_of, norms
from gptscope.analysis.heads.copying import copying
from gptscope.analysis.heads.patterns import stripe
from gptscope.analysis.heads.random_tokens import drawn, repeated
from gptscope.analysis.heads.scores import SHARES, over_seeds, scores
from gptscope.analysis.heads.verdict import is_far_beyond
from gptscope.analysis.wiring import SOURCES
from gptscope.model.spec import Spec
from gptscope.model.weights import Attention, Block, Linear, Mlp, Model, Norm
from tests.helpers.micro import micro_model, micro_models, sizes
from tests.helpers.variants import CHANGES, WIRED, in_attention, in_blocks, rms_norm

V, CTX, D_HEAD = 12, 24, 24
WIDTH = V + CTX + V  # the token, its position, the token before it
TOKEN, PLACE, BEFORE = (np.eye(WIDTH)[part] for part in np.split(np.arange(WIDTH), [V, V + CTX]))


def made(turns):
    """Heads [d, d_h] side by side."""
    return Linear(
        np.hstack([turn if turn.any() else np.zeros((WIDTH, D_HEAD)) for turn in turns]), None
    )


def moved(rows, n=D_HEAD):
    """What reads these numbers of the stream, as the first of a head."""
    matrix = np.zeros((WIDTH, n))
    matrix[:, : len(rows)] = rows.T
    return matrix


def induction_model():
    """Two layers: head 0.0 tells each token the one before it, head 1.0 looks for that."""
    nothing = np.zeros((WIDTH, D_HEAD))
    after = np.roll(moved(PLACE), 1, axis=1)  # a key matches the query one further on
    out = [np.zeros((2 * D_HEAD, WIDTH)) for _ in range(2)]
    out[0][:V], out[1][:V] = BEFORE, TOKEN
    values = made([moved(TOKEN), nothing])
    q = made([moved(PLACE), nothing]), made([moved(TOKEN), nothing])
    k = made([after, nothing]), made([moved(BEFORE), nothing])
    norm, mlp = (
        Norm(np.ones(WIDTH), None),
        Mlp(Linear(np.zeros((WIDTH, 1)), None), Linear(np.zeros((1, WIDTH)), None)),
    )
    blocks = tuple(
        Block(norm, Attention(q[i], k[i], values, Linear(out[i], None), 4.0), norm, mlp)
        for i in range(2)
    )
    spec = Spec("made", 2, 2, WIDTH, D_HEAD, 1, V, CTX, norm="rms_norm")
    return Model(spec, TOKEN, PLACE, blocks, norm, TOKEN, tied=True, dtype=np.dtype("f8"))


def test_a_made_induction_head_is_found_and_nothing_else_is_called_so():
    model = induction_model()
    passes = [
        scores(model, gptscope.trace(model, repeated(model, V, seed, bos=False), "weights"))
        for seed in range(3)
    ]
    found = over_seeds(passes)
    named = {
        name: [
            at
            for at in np.ndindex(2, 2)
            if is_far_beyond(found.mean[i][at], found.error[i][at], found.even[i, at[0]])
        ]
        for i, name in enumerate(SHARES)
    }
    nothing = {name: [] for name in SHARES}
    assert named == nothing | {"previous": [(0, 0)], "induction": [(1, 0)]}
    # The first token has none before it but itself, so that its duplicate finds two places.
    assert_allclose(found.mean[SHARES.index("induction"), 1, 0], 1 - 0.5 / V, atol=1e-6)
    ids = repeated(model, V, 0, bos=False)
    weights = gptscope.trace(model, ids, "weights").layers[1].heads[0].weights
    rows = [weights[i, i - V + 1] for i in range(V - 1, 2 * V)]
    assert_allclose(stripe(weights, V - 1), np.mean(rows))


def test_a_made_induction_head_copies_and_reads_the_head_before():
    model = induction_model()
    found = copying(model)
    assert_allclose(found.eigenvalues, [[0, 0], [1, 0]], atol=1e-9)
    assert found.most[1, 0] == found.top[1, 0] == found.above_mean[1, 0] == 1
    made = composition(model)
    assert_allclose(made.scores["K"][0, 0, 1, 0], V**-0.5)
    assert_allclose(made.scores["Q"][0, 0, 1, 0], 0, atol=1e-9)
    assert_allclose(made.scores["V"][0, 0, 1, 0], 0, atol=1e-9)
    assert np.isnan(made.scores["K"][0, 1]).all()  # it writes nothing
    assert_allclose(made.level, WIDTH**-0.5)


# Composition


def stacked(model):
    """For every layer and head what it writes, [d, d], and what it looks by, [d, d]."""
    s = model.spec
    reads = SOURCES[s.wiring]["attention"] == ("ln1.out",)
    centre = np.eye(s.d_model) - (1 / s.d_model if s.norm == "layer_norm" else 0)
    whole = np.eye(s.d_model)
    found = []
    for b in model.blocks:
        before = centre * b.ln1.gain if reads else whole
        after = b.ln1 if SOURCES[s.wiring]["ln1"] == ("attn_out",) else b.ln1_post
        end = (whole if after is None else centre * after.gain) @ (centre if reads else whole)
        per = s.n_heads // s.n_kv_heads
        for h in range(s.n_heads):
            own = slice(h * s.d_head, (h + 1) * s.d_head)
            shared = slice(h // per * s.d_head, (h // per + 1) * s.d_head)
            a = b.attention
            q, k, v = (
                before @ part.weight.astype("f8")[:, place]
                for part, place in ((a.q, own), (a.k, shared), (a.v, shared))
            )
            out = a.out.weight.astype("f8")[own] * s.residual_scale
            found.append((v @ out @ end, q @ k.T))
    return found


@settings(max_examples=60)
@given(micro_models())
def test_composition_is_that_of_the_whole_matrices(model):
    found, matrices = composition(model), stacked(model)
    s = model.spec
    size = s.n_layers * s.n_heads
    for way, turned in (
        ("Q", lambda one: one[1]),
        ("K", lambda one: one[1].T),
        ("V", lambda one: one[0]),
    ):
        scores = found.scores[way].reshape(size, size)
        for i, one in enumerate(matrices):
            for j, two in enumerate(matrices):
                if i // s.n_heads >= j // s.n_heads:
                    assert np.isnan(scores[i, j])
                    continue
                ov, other = one[0], turned(two)
                over = np.linalg.norm(ov) * np.linalg.norm(other)
                assert_allclose(scores[i, j], np.linalg.norm(ov @ other) / over, atol=2e-5)


def test_a_head_with_itself_shares_all_of_its_few_directions():
    model = rms_norm(micro_model(sizes(n_heads=3, d_head=2), bias=False))
    rng = np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(6, 6)))[0].astype("f4")
    same = Linear(basis, None), Linear(basis.T.copy(), None)
    model = in_attention(model, q=same[0], k=same[0], v=same[0], out=same[1])
    model = in_blocks(model, lambda b: replace(b, ln1=Norm(np.ones(6, "f4"), None)))
    for found in composition(model).scores.values():
        assert_allclose(found[0, :, 1], np.eye(3) / 2**0.5, atol=1e-6)


def test_composition_does_not_depend_on_scale():
    model = micro_model()

    def larger(part, by):
        return replace(part, stored=part.stored * np.float32(by))

    def change(b):
        a = b.attention
        parts = {"q": 3, "k": 0.25, "v": 7, "out": 0.5}
        return replace(
            b, attention=replace(a, **{n: larger(getattr(a, n), by) for n, by in parts.items()})
        )

    one, two = composition(model), composition(in_blocks(model, change))
    for way, found in one.scores.items():
        assert_allclose(two.scores[way], found, rtol=1e-5)


def test_random_matrices_give_the_level():
    rng, d = np.random.default_rng(0), 24
    a, b = rng.normal(size=(2, 200, d, 4))
    left, right = (x @ rng.normal(size=(200, 4, d)) for x in (a, b))
    size = np.linalg.norm(left, axis=(1, 2)) * np.linalg.norm(right, axis=(1, 2))
    squares = (np.linalg.norm(left @ right, axis=(1, 2)) / size) ** 2
    spec = replace(micro_model().spec, d_model=d, norm="rms_norm")
    assert_allclose(level_of(spec), d**-0.5)
    assert abs(squares.mean() - level_of(spec) ** 2) < 5 * squares.std() / 200**0.5
    assert_allclose(level_of(replace(spec, norm="layer_norm")), 23**-0.5)
    assert_allclose(level_of(replace(spec, norm="layer_norm", wiring="post_norm")), d**-0.5)


def test_norms_are_those_of_each_product():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(3, 2, 7)), rng.normal(size=(4, 7, 5))
    expected = [[np.linalg.norm(x @ y) for y in b] for x in a]
    assert_allclose(norms(a, b), expected)


# Copying


def whole_circuit(model, layer, head):
    """Every token to every logit through one head, [V, V], made row by row."""
    s, b = model.spec, model.blocks[layer]
    table, out_table = (np.asarray(t, "f8") for t in (model.token_table, model.output_table))
    if model.project_in is not None:
        table = table @ model.project_in.weight
        if model.project_in.bias is not None:
            table = table + model.project_in.bias
    if model.embed_norm is not None:
        table = normed(table * s.embed_scale, model.embed_norm, s)
    x = gained(table, b.ln1, s) if SOURCES[s.wiring]["attention"] == ("ln1.out",) else table
    one = heads(replace(b, ln1_post=None), replace(s, wiring="post_norm"))  # bare matrices
    y = x @ one.v[head] @ one.out[head]
    after = b.ln1 if SOURCES[s.wiring]["ln1"] == ("attn_out",) else b.ln1_post
    y = y if after is None else gained(y, after, s)
    y = y if model.ln_final is None else gained(y, model.ln_final, s)
    return (y if model.project_out is None else y @ model.project_out.weight) @ out_table.T


def gained(x, norm, spec):
    return (x - x.mean(-1, keepdims=True) * (spec.norm == "layer_norm")) * norm.gain


def normed(x, norm, spec):
    x = x - x.mean(-1, keepdims=True) * (spec.norm == "layer_norm")
    y = x / np.sqrt((x**2).mean(-1, keepdims=True) + spec.norm_eps) * norm.gain
    return y if norm.shift is None else y + norm.shift


@settings(max_examples=60)
@given(micro_models())
def test_copying_is_that_of_the_whole_circuit(model):
    model = replace(model, dtype=np.dtype("f8"), bos_id=None)
    found = copying(model)
    for layer, head in np.ndindex(model.spec.n_layers, model.spec.n_heads):
        circuit = whole_circuit(model, layer, head)
        values = np.linalg.eigvals(circuit)
        size = np.abs(values).sum()
        expected = values.real.sum() / size if size > 1e-9 else 0
        assert_allclose(found.eigenvalues[layer, head], expected, atol=1e-3)
        if model.spec.n_vocab == 1:
            continue
        own = circuit.diagonal()
        margin = 1e-7 * np.abs(circuit).max()
        above = [(circuit > own[:, None] + m).sum(-1) < 5 for m in (margin, -margin)]
        low, high = sorted(float(one.mean()) for one in above)
        assert low - 1e-12 <= found.top[layer, head] <= high + 1e-12
    assert found.n == model.spec.n_vocab


def test_a_head_that_gives_back_what_it_reads_copies():
    model = rms_norm(micro_model(sizes(n_heads=1, d_head=8, n_layers=1), bias=False))
    whole, norm = Linear(np.eye(8, dtype="f4"), None), Norm(np.ones(8, "f4"), None)
    table = np.random.default_rng(0).normal(size=(13, 8)).astype("f4")
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    model = replace(model, token_table=table, output_table=table, ln_final=norm)
    model = in_blocks(in_attention(model, v=whole, out=whole), lambda b: replace(b, ln1=norm))
    found = copying(model)
    scores = (found.eigenvalues, found.most, found.top, found.above_mean)
    assert_allclose([one.item() for one in scores], 1, rtol=1e-5)
    minus = Linear(-np.eye(8, dtype="f4"), None)
    found = copying(in_attention(model, out=minus))
    scores = (found.eigenvalues, found.most, found.top, found.above_mean)
    assert_allclose([one.item() for one in scores], [-1, 0, 0, 0], atol=1e-5)


def test_a_gain_of_a_norm_counts():
    model = micro_model(bias=False)
    gain = np.linspace(-1, 2, model.spec.d_model).astype("f4")
    other = in_blocks(model, lambda b: replace(b, ln1=Norm(gain, None)))
    assert np.abs(copying(other).eigenvalues - copying(model).eigenvalues).max() > 0.05
    last = replace(model, ln_final=Norm(gain, None))
    assert np.abs(copying(last).eigenvalues - copying(model).eigenvalues).max() > 0.05


def test_what_is_sampled_is_told(tiny, monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 100)
    found = copying(tiny, seed=1)
    assert found.n == 100
    assert_allclose(found.chance["top"], 0.05)
    ids = drawn(tiny, 100, np.random.default_rng(1))
    circuit = whole_circuit(tiny, 2, 1)[np.ix_(ids, ids)]
    own = circuit.diagonal()
    assert found.above_mean[2, 1] == pytest.approx((own > circuit.mean(-1)).mean(), abs=0.02)
    p = found.top
    assert_allclose(found.error(), (p * (1 - p) / 100) ** 0.5)


def test_one_broken_head_leaves_the_others_alone():
    model = micro_model()
    weight = np.array(model.blocks[1].attention.v.weight)
    weight[0, 0] = np.nan
    block = model.blocks[1]
    broken = replace(block, attention=replace(block.attention, v=Linear(weight, None)))
    model = replace(model, blocks=(model.blocks[0], broken))
    found = copying(model)
    for one in (found.eigenvalues, found.most, found.top, found.above_mean):
        assert np.isnan(one).tolist() == [[False, False], [True, False]]
    assert np.isnan(composition(model).scores["V"][0, :, 1]).tolist() == [[True, False]] * 2
    assert not np.isnan(composition(model).scores["K"][0, :, 1]).any()


def test_each_layer_is_told():
    ticks = []
    model = micro_model(sizes(n_layers=3))
    copying(model, ticks.append)
    composition(model, ticks.append)
    assert ticks == [1] * 6


@pytest.mark.parametrize("change", [*WIRED.values(), *CHANGES.values()])
def test_every_kind_of_model_has_copying_and_composition(change):
    model = change(micro_model())
    assert np.isfinite(copying(model).eigenvalues).all()
    assert all(np.isfinite(one[0, :, 1]).all() for one in composition(model).scores.values())
