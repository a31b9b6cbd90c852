from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose

import gptscope
from gptscope.analysis.heads import copying as module
from gptscope.analysis.heads.circuits import heads
from gptscope.analysis.heads.composition import composition, level_of, norms
from gptscope.analysis.heads.copying import copying, sample, steps
from gptscope.analysis.heads.eigen import both_tables, eigen, fraction
from gptscope.analysis.heads.patterns import stripe
from gptscope.analysis.heads.random_tokens import repeated
from gptscope.analysis.heads.scores import SHARES, over_seeds, scores
from gptscope.analysis.heads.verdict import is_far_beyond
from gptscope.analysis.wiring import SOURCES
from gptscope.model.spec import Spec
from gptscope.model.weights import Attention, Block, Linear, Mlp, Model, Norm
from tests.helpers.micro import micro_model, micro_models, sizes
from tests.helpers.variants import CHANGES, WIRED, in_attention, in_blocks, rms_norm

module_lists = module.lists
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
    found = eigen(model)
    assert_allclose(found.eigenvalues, [[0, 0], [1, 0]], atol=1e-9)
    own = copying(model)
    assert_allclose([own.most, own.top, own.above_mean], [[[0, 0], [1, 0]]] * 3)
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


def whole_circuit(model, layer, head, ids=slice(None)):
    """Every token, or some, to every logit through one head, [V, V]."""
    s, b = model.spec, model.blocks[layer]
    table, out_table = (np.asarray(t, "f8") for t in (model.token_table, model.output_table))
    table = table[ids]
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


def bounds(circuit, ids):
    """The least and the most that each share can be, ties within rounding either way: [3, 2]."""
    own = circuit[np.arange(len(ids)), ids]
    margin = 1e-7 * np.abs(circuit).max()
    found = []
    for m in (margin, -margin):
        others = (circuit >= own[:, None] - m).sum(-1) - (m >= 0)
        above = own > circuit.mean(-1) + m
        found.append([(others <= 0).mean(), (others < 5).mean(), above.mean()])
    return np.array(found)


@settings(max_examples=60)
@given(micro_models())
def test_copying_is_that_of_the_whole_circuit(model):
    model = replace(model, dtype=np.dtype("f8"), bos_id=None)
    found, own = eigen(model), copying(model)
    ids = sample(model, 999, np.random.default_rng(0))
    assert sorted(ids) == list(range(model.spec.n_vocab))
    assert (own.n, own.n_vocab) == (len(ids), len(ids))
    for layer, head in np.ndindex(model.spec.n_layers, model.spec.n_heads):
        circuit = whole_circuit(model, layer, head)
        values = np.linalg.eigvals(circuit)
        size = np.abs(values).sum()
        expected = values.real.sum() / size if size > 1e-9 else 0
        assert_allclose(found.eigenvalues[layer, head], expected, atol=1e-3)
        if model.spec.n_vocab > 1:
            low, high = bounds(circuit, np.arange(len(ids)))
            shown = [one[layer, head] for one in (own.most, own.top, own.above_mean)]
            assert (low - 1e-12 <= shown).all()
            assert (shown <= high + 1e-12).all()


def giving_back(out_table=None, n=64, width=8):
    """A model of one head that writes what it reads; the rows of its table have length 1."""
    model = rms_norm(micro_model(sizes(n_heads=1, d_head=width, n_layers=1), bias=False))
    whole, norm = Linear(np.eye(width, dtype="f4"), None), Norm(np.ones(width, "f4"), None)
    table = np.random.default_rng(0).normal(size=(n, width)).astype("f4")
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    out_table = table if out_table is None else out_table
    spec = replace(model.spec, n_vocab=n, d_model=width)
    model = replace(model, spec=spec, token_table=table, output_table=out_table, ln_final=norm)
    model = replace(model, bos_id=None)
    return in_blocks(in_attention(model, v=whole, out=whole), lambda b: replace(b, ln1=norm))


def shares_of(model):
    found = copying(model)
    return [one.item() for one in (found.most, found.top, found.above_mean)]


def test_a_head_that_gives_back_what_it_reads_copies():
    model = giving_back()
    assert_allclose(eigen(model).eigenvalues, [[1.0]], rtol=1e-5)
    assert shares_of(model) == [1, 1, 1]
    found = copying(model)
    assert is_far_beyond(found.top.item(), found.error().item(), found.chance["top"])
    minus = in_attention(model, out=Linear(-np.eye(8, dtype="f4"), None))
    assert_allclose(eigen(minus).eigenvalues, [[-1.0]], rtol=1e-5)
    assert shares_of(minus) == [0, 0, 0]


def test_a_head_that_writes_nothing_does_not_copy(tiny):
    d = tiny.spec.d_head
    out = np.array(tiny.blocks[1].attention.out.weight)
    out[d : 2 * d] = 0
    block = tiny.blocks[1]
    block = replace(block, attention=replace(block.attention, out=Linear(out, None)))
    model = replace(tiny, blocks=(tiny.blocks[0], block, *tiny.blocks[2:]))
    found = copying(model)
    assert found.most[1, 1] == found.top[1, 1] == found.above_mean[1, 1] == 0
    assert eigen(model).eigenvalues[1, 1] == 0
    top, error = found.top, found.error()
    assert not any(
        is_far_beyond(top[at], error[at], found.chance["top"]) for at in np.ndindex(top.shape)
    )
    assert_allclose(np.delete(top, 1, axis=0), np.delete(copying(tiny).top, 1, axis=0))


def test_a_head_that_raises_all_tokens_alike_does_not_copy():
    row = np.random.default_rng(1).normal(size=8).astype("f4")
    assert shares_of(giving_back(np.tile(row, (64, 1)))) == [0, 0, 0]


@pytest.mark.parametrize(
    ("alike", "expected"), [(1, [1, 1]), (2, [0, 1]), (5, [0, 1]), (6, [0, 0])]
)
def test_tokens_that_are_level_count_against_a_head(alike, expected):
    model = giving_back(n=60)
    table = np.repeat(np.asarray(model.token_table)[:10], alike, axis=0)[:60]
    table = np.vstack([table, np.full((60 - len(table), 8), -0.01, "f4")])
    model = replace(model, token_table=table, output_table=table)
    assert copying_of(model, np.arange(10 * alike)).tolist() == expected


def copying_of(model, ids):
    """`most` and `top` of the only head over these tokens."""
    read = np.asarray(model.token_table)[ids]
    y = module.lists(model, 0, read)
    own = np.asarray(model.output_table)[ids]
    most, top, _ = module.shares(model, y, ids, own, module.mean_row(model), lambda _: None)
    return np.concatenate([most, top])


def test_each_token_is_rated_among_all(monkeypatch):
    monkeypatch.setattr(module, "SAMPLE", 100)
    model = gptscope.load("llama-tiny")
    found = copying(model, seed=1)
    assert (found.n, found.n_vocab) == (100, 4096)
    assert_allclose(found.chance["top"], 5 / 4096)
    assert_allclose([found.chance["most"], found.chance["above_mean"]], [1 / 4096, 0.5])
    ids = sample(model, 100, np.random.default_rng(1))
    assert found.top.max() > 0
    for at in [*zip(*np.nonzero(found.top), strict=True)][:3]:
        low, high = bounds(whole_circuit(model, *at, ids), ids)
        shown = [one[at] for one in (found.most, found.top, found.above_mean)]
        assert_allclose(shown, low, atol=1e-9)
        assert_allclose(shown, high, atol=1e-9)
    p = found.top
    assert_allclose(found.error(), (p * (1 - p) / 100) ** 0.5)


@pytest.mark.parametrize("sizes_of", [(1, 1, 1), (3, 5, 7), (64, 1 << 30, 64)])
def test_pieces_change_nothing(monkeypatch, sizes_of):
    model = replace(micro_model(sizes(n_vocab=40, n_layers=3)), dtype=np.dtype("f8"))
    whole, ticks = copying(model), []
    for name, size in zip(("AT_ONCE", "LISTS", "LOGITS"), sizes_of, strict=True):
        monkeypatch.setattr(module, name, size)
    found = copying(model, ticks.append)
    assert sum(ticks) == steps(model, range(3))
    for name in ("most", "top", "above_mean"):
        assert_allclose(getattr(found, name), getattr(whole, name))
    assert whole.top.max() > 0


def test_the_layers_that_are_asked_for_alone_are_measured(monkeypatch):
    monkeypatch.setattr(module, "LISTS", 1)
    model, ticks, made = micro_model(sizes(n_vocab=40, n_layers=4)), [], []
    whole = copying(model)
    monkeypatch.setattr(module, "lists", lambda m, i, x: made.append(i) or module_lists(m, i, x))
    found = copying(model, ticks.append, layers=[1, 3])
    assert made == [1, 3]
    assert sum(ticks) == steps(model, [1, 3])
    for name in ("most", "top", "above_mean"):
        one, two = getattr(found, name), getattr(whole, name)
        assert_allclose(one[[1, 3]], two[[1, 3]])
        assert np.isnan(one[[0, 2]]).all()


def test_the_sample_has_no_special_tokens_and_no_rows_of_zeros():
    model = micro_model(sizes(n_vocab=9))
    table, out_table = np.array(model.token_table), np.array(model.output_table)
    table[3], out_table[5] = 0, 0
    model = replace(model, token_table=table, output_table=out_table)
    assert sorted(sample(model, 9, np.random.default_rng(0))) == [1, 2, 4, 6, 7, 8]
    assert len(sample(model, 2, np.random.default_rng(0))) == 2
    assert (copying(model).n, copying(model).n_vocab) == (6, 9)
    nothing = replace(model, token_table=np.zeros_like(table))
    assert copying(nothing).n == 0
    assert np.isnan(copying(nothing).top).all()


def test_random_heads_spread_about_nothing(tiny):
    rng, s = np.random.default_rng(5), tiny.spec
    tables = both_tables(tiny)
    v = rng.normal(size=(400, s.d_model, s.d_head))
    found = fraction(v, rng.normal(size=(400, s.d_head, s.d_model)), tables)
    spread = eigen(tiny).spread
    assert abs(found.mean()) < 5 * spread / 400**0.5
    assert_allclose(found.std(), spread, rtol=0.3)
    assert eigen(tiny).spread == spread
    even = replace(tiny, token_table=np.eye(s.d_model), output_table=np.eye(s.d_model))
    even = replace(even, spec=replace(s, n_vocab=s.d_model), ln_final=None, tokenizer=None)
    assert eigen(even).spread < spread / 2  # more directions, nearer to nothing


def test_a_gain_of_a_norm_counts():
    model = micro_model(bias=False)
    gain = np.linspace(-1, 2, model.spec.d_model).astype("f4")
    other = in_blocks(model, lambda b: replace(b, ln1=Norm(gain, None)))
    assert np.abs(eigen(other).eigenvalues - eigen(model).eigenvalues).max() > 0.05
    last = replace(model, ln_final=Norm(gain, None))
    assert np.abs(eigen(last).eigenvalues - eigen(model).eigenvalues).max() > 0.05


def test_one_broken_head_leaves_the_others_alone():
    model = micro_model()
    weight = np.array(model.blocks[1].attention.v.weight)
    weight[0, 0] = np.nan
    block = model.blocks[1]
    broken = replace(block, attention=replace(block.attention, v=Linear(weight, None)))
    model = replace(model, blocks=(model.blocks[0], broken))
    found = eigen(model)
    own = copying(model)
    for one in (found.eigenvalues, own.most, own.top, own.above_mean):
        assert np.isnan(one).tolist() == [[False, False], [True, False]]
    assert np.isfinite(found.spread)
    assert np.isnan(composition(model).scores["V"][0, :, 1]).tolist() == [[True, False]] * 2
    assert not np.isnan(composition(model).scores["K"][0, :, 1]).any()


@pytest.mark.parametrize("row", [0, 29], ids=["not in the sample", "in the sample"])
def test_a_broken_row_of_the_vocabulary_leaves_no_number(row):
    model = micro_model(sizes(n_vocab=30))
    table = np.array(model.output_table)
    table[row, 1] = np.nan
    model = replace(model, output_table=table, tied=False)
    found, own = eigen(model), copying(model)
    assert np.isnan([found.eigenvalues, own.most, own.top, own.above_mean]).all()
    assert np.isnan(found.spread)


def test_each_layer_is_told():
    ticks = []
    model = micro_model(sizes(n_layers=3))
    eigen(model, ticks.append)
    composition(model, ticks.append)
    assert ticks == [1] * 6


@pytest.mark.parametrize("change", [*WIRED.values(), *CHANGES.values()])
def test_every_kind_of_model_has_copying_and_composition(change):
    model = change(micro_model())
    assert np.isfinite(eigen(model).eigenvalues).all()
    assert np.isfinite(copying(model).above_mean).all()
    assert all(np.isfinite(one[0, :, 1]).all() for one in composition(model).scores.values())
