from dataclasses import replace

import numpy as np
import pytest

from gptscope.engine import attention
from gptscope.engine.cache import Cache
from gptscope.engine.forward import WIRINGS, forward, residual_stream, unembed
from gptscope.engine.hook_points import HOOK_POINTS
from gptscope.engine.lacking import why_lacking
from gptscope.engine.norms import NORMS, layer_norm
from gptscope.engine.step import untouched
from gptscope.model.weights import Norm
from tests.helpers.close import assert_close
from tests.helpers.micro import micro_model, sizes
from tests.helpers.variants import rich, rms_norm, rotary

IDS = np.array([3, 1, 4, 1, 5])


def recorded(model, ids=IDS, cache=None):
    values = {}

    def note(key, value, layer=None):
        assert (key, layer) not in values
        values[key, layer] = value.copy()
        return value

    forward(model, ids, note, cache)
    return values


def by_the_paper(model, ids):
    # The same pass in float64, loop by loop, one head and one token at a time.
    s, eps = model.spec, model.spec.norm_eps
    x = [model.token_table[i].astype(float) + model.position_table[t] for t, i in enumerate(ids)]

    def norm(v, w):
        return (v - v.mean()) / np.sqrt(v.var() + eps) * w.gain + w.shift

    for b in model.blocks:
        q, k, v = (
            [norm(row, b.ln1) @ part.weight + part.bias for row in x]
            for part in (b.attention.q, b.attention.k, b.attention.v)
        )
        for t in range(len(x)):
            heads = []
            for h in range(s.n_heads):
                one = slice(h * s.d_head, (h + 1) * s.d_head)
                powers = [np.exp(q[t][one] @ k[u][one] / np.sqrt(s.d_head)) for u in range(t + 1)]
                mixed = sum(p * v[u][one] for u, p in enumerate(powers)) / sum(powers)
                heads.append(mixed)
            out = b.attention.out
            x[t] = x[t] + np.concatenate(heads) @ out.weight + out.bias
        for t in range(len(x)):
            hidden = np.maximum(norm(x[t], b.ln2) @ b.mlp.up.weight + b.mlp.up.bias, 0)
            x[t] = x[t] + hidden @ b.mlp.down.weight + b.mlp.down.bias
    return np.array([norm(row, model.ln_final) @ model.unembedding for row in x])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_pass_loop_by_loop(dtype):
    model = micro_model(sizes(activation="relu"), 1, dtype)
    assert_close("logits", forward(model, IDS), by_the_paper(model, IDS), dtype)


@pytest.mark.parametrize("changed", [lambda model: model, rotary, rms_norm])
def test_hooks_come_in_the_order_of_their_table(micro, changed):
    keys = [point.key for point in HOOK_POINTS]
    in_block = [point.key for point in HOOK_POINTS if "{l}" in point.name]
    start = keys.index(in_block[0])
    end = start + len(in_block)
    expected = [(key, None) for key in keys[:start]]
    expected += [(key, layer) for layer in range(2) for key in in_block]
    expected += [(key, None) for key in keys[end:]]
    seen = list(recorded(changed(micro)))
    assert seen == [at for at in expected if at[0] in {key for key, _ in seen}]


def test_a_model_without_positions_or_last_norm(micro):
    bare = replace(micro, position_table=None, ln_final=None)
    values = recorded(bare)
    left_out = {key for key, _ in recorded(micro)} - {key for key, _ in values}
    assert left_out == {
        "position_embeddings",
        "ln_final.mean",
        "ln_final.variance",
        "ln_final.normalized",
        "ln_final.out",
    }
    np.testing.assert_array_equal(
        values["embeddings", None], values["token_embeddings", None], strict=True
    )
    last = values["output", 1]
    np.testing.assert_array_equal(values["logits", None], last @ bare.unembedding, strict=True)


@pytest.mark.parametrize("point", [p.key for p in HOOK_POINTS])
def test_what_a_hook_gives_back_goes_on(micro, point):
    # One number more in any value but the last changes the logits, and nothing that came before.
    if why_lacking(point, micro):
        micro = rich(micro)
    micro = rms_norm(micro) if point.endswith("mean_square") else micro
    before, after, changed = recorded(micro), {}, []

    def hook(key, value, layer=None):
        after[key, layer] = value
        if key == point and layer in (None, 1):
            bump = np.linspace(1, 2, value[..., -1].size).reshape(value[..., -1].shape)
            value = value.copy()
            value[..., -1] += bump
            changed.append((key, layer))
        return value

    logits = forward(micro, IDS, hook)
    assert len(changed) == 1
    names = list(after)
    for name in names[: names.index(changed[0]) + 1]:
        np.testing.assert_array_equal(after[name], before[name], strict=True)
    assert np.abs(logits - before["logits", None]).max() > 1e-4


def test_positions_go_on_under_a_cache(micro):
    cache = Cache(micro.spec, micro.dtype)
    recorded(micro, IDS[:2], cache)
    later = recorded(micro, IDS[2:4], cache)
    expected = micro.position_table[2:4]
    np.testing.assert_array_equal(later["position_embeddings", None], expected, strict=True)
    assert later["weights", 0].shape == (2, 2, 4)
    assert (later["weights", 0][:, 0, 3] == 0).all()
    assert (later["weights", 0][:, 1] > 0).all()
    assert cache.length == 4


def test_the_whole_context_can_be_read(micro):
    ids = np.arange(micro.spec.n_ctx) % micro.spec.n_vocab
    assert forward(micro, ids).shape == (12, 13)


def test_forward_is_the_stream_and_its_unembedding(micro):
    x = residual_stream(micro, IDS)
    assert x.shape == (5, 6)
    np.testing.assert_array_equal(unembed(micro, x), forward(micro, IDS), strict=True)


def test_some_rows_can_be_unembedded_alone(micro):
    x = residual_stream(micro, IDS)
    np.testing.assert_allclose(unembed(micro, x[-1:]), forward(micro, IDS)[-1:], atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shift", [True, False])
def test_layer_norm_by_hand(dtype, shift):
    noted = {}
    x = np.array([[1, 3, 5, 7], [2, 2, 2, 2]], dtype)
    w = Norm(np.array([1, 1, 2, 2], dtype), np.array([0, 1, 0, 1], dtype) if shift else None)
    y = layer_norm(x, w, 4.0, noted.setdefault)
    flat = np.array([[-1, -1 / 3, 1 / 3, 1], [0, 0, 0, 0]], dtype)
    out = flat * w.gain + (w.shift if shift else 0)
    expected = {"mean": [4, 2], "variance": [5, 0], "normalized": flat, "out": out}
    assert list(noted) == list(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(
            noted[name], np.array(value, dtype), rtol=1e-6, atol=1e-7, strict=True
        )
    np.testing.assert_array_equal(y, noted["out"])
    np.testing.assert_array_equal(x, [[1, 3, 5, 7], [2, 2, 2, 2]])


def test_the_hook_that_does_nothing():
    x = np.ones(3)
    assert untouched("logits", x) is x
    assert untouched("q", x, 1) is x


def test_tables_of_choices(micro):
    assert micro.spec.norm in NORMS
    assert micro.spec.wiring in WIRINGS
    with pytest.raises(KeyError, match="magic"):
        forward(replace(micro, spec=replace(micro.spec, wiring="magic")), IDS)


def test_weights_are_never_changed(micro):
    before = [micro.token_table.copy(), micro.blocks[0].mlp.up.bias.copy()]
    forward(micro, IDS)
    np.testing.assert_array_equal(micro.token_table, before[0])
    np.testing.assert_array_equal(micro.blocks[0].mlp.up.bias, before[1])


def test_without_a_mask_no_token_is_cut_off(micro, monkeypatch):
    unmasked = replace(micro, spec=replace(micro.spec, causal=False))
    whole = forward(unmasked, IDS)
    monkeypatch.setattr(attention, "MIXED_AT_ONCE", 1)
    np.testing.assert_array_equal(forward(unmasked, IDS), whole, strict=True)
