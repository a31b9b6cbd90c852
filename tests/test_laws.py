# What holds for every model, every text and every distribution, whatever the numbers are.

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

import gptscope
from gptscope.engine.cache import Cache
from gptscope.engine.forward import forward, unembed
from gptscope.engine.hook_points import BY_KEY
from gptscope.engine.ops import softmax, turn
from gptscope.engine.step import untouched
from gptscope.engine.trace import Scope
from gptscope.model.positions import turning_speeds
from gptscope.tokens import Decoder
from tests.helpers.close import assert_close, scale
from tests.helpers.micro import models_and_ids
from tests.helpers.variants import changed, in_attention, post_norm

SPEEDS = turning_speeds(6)  # three pairs
TO = {"float32": 1e-5, "float64": 1e-12}  # of the scale
SETTINGS = {
    "temperature": st.floats(0.05, 5),
    "top_k": st.none() | st.integers(1, 60),
    "top_p": st.none() | st.floats(0.01, 1),
}


def same(name, actual, expected, dtype):
    assert_close(name, actual, expected, dtype, allowed=TO[str(dtype)] * scale(expected))


def numbers(shape, largest=30):
    return arrays(np.float64, shape, elements=st.floats(-largest, largest))


def logits(largest=30):
    return numbers(st.integers(1, 50), largest)


def everything(model, ids, cache=None):
    values = {}

    def note(key, value, layer=None):
        values[key, layer] = value.copy()
        return value

    forward(model, np.array(ids), note, cache)
    return values


def rows(key, value, start, stop):
    # Those of the tokens start .. stop - 1, and of what they can see; heads, if any, come first.
    axes = BY_KEY[key].axes.split()
    if axes == ["T"]:
        return value[start:stop]
    value = value[..., start:stop, :]
    return value[..., :stop] if "S" in axes else value


# The pass


@given(models_and_ids(min_size=2), st.data())
def test_later_tokens_never_change_earlier_rows(model_and_ids, data):
    model, ids = model_and_ids
    seen = data.draw(st.integers(1, len(ids) - 1))
    later = st.integers(0, model.spec.n_vocab - 1)
    others = data.draw(st.lists(later, min_size=len(ids) - seen, max_size=len(ids) - seen))
    one = everything(model, ids)
    two = everything(model, ids[:seen] + others)
    for (key, layer), value in one.items():
        expected = rows(key, two[key, layer], 0, seen)
        np.testing.assert_array_equal(rows(key, value, 0, seen), expected, strict=True)


@given(models_and_ids(min_size=2), st.data())
def test_a_shorter_text_has_the_same_rows(model_and_ids, data):
    model, ids = model_and_ids
    seen = data.draw(st.integers(1, len(ids) - 1))
    whole, start = everything(model, ids), everything(model, ids[:seen])
    for (key, layer), value in start.items():
        same(key, value, rows(key, whole[key, layer], 0, seen), model.dtype)


@given(models_and_ids(), st.data())
def test_cached_equals_recomputed(model_and_ids, data):
    model, ids = model_and_ids
    stops = data.draw(st.sets(st.integers(1, len(ids)), max_size=4)) | {len(ids)}
    whole, cache, start = everything(model, ids), Cache(model.spec, model.dtype), 0
    for stop in sorted(stops):
        for (key, layer), value in everything(model, ids[start:stop], cache).items():
            same(key, value, rows(key, whole[key, layer], start, stop), model.dtype)
        start = stop
    assert cache.length == len(ids)


@given(models_and_ids())
def test_cached_token_by_token_equals_recomputed(model_and_ids):
    model, ids = model_and_ids
    cache = Cache(model.spec, model.dtype)
    by_token = [forward(model, np.array([i]), cache=cache)[0] for i in ids]
    same("logits", np.array(by_token), forward(model, np.array(ids)), model.dtype)


@given(models_and_ids())
def test_rows_of_weights_sum_to_one_and_the_future_is_hidden(model_and_ids):
    model, ids = model_and_ids
    for layer, weights in zip(gptscope.trace(model, ids).layers, model.blocks, strict=True):
        window = weights.attention.window or len(ids)
        future = ~np.tri(len(ids), dtype=bool) | np.tri(len(ids), k=-window, dtype=bool)
        for head in layer.heads:
            np.testing.assert_allclose(head.weights.sum(-1), 1, atol=1e-6)
            assert (head.weights >= 0).all()
            assert (head.weights[future] == 0).all()
            assert (head.scaled_masked[future] == -np.inf).all()
            assert np.isfinite(head.scaled_masked[~future]).all()


@given(models_and_ids())
def test_watching_changes_no_bit(model_and_ids):
    model, ids = model_and_ids
    expected = forward(model, np.array(ids))
    assert gptscope.trace(model, ids).logits.tobytes() == expected.tobytes()
    assert gptscope.trace(model, ids, keep=["logits"]).logits.tobytes() == expected.tobytes()
    assert forward(model, np.array(ids), untouched).tobytes() == expected.tobytes()


@given(models_and_ids())
def test_what_was_recorded_cannot_be_changed(model_and_ids):
    model, ids = model_and_ids
    trace = gptscope.trace(model, ids)
    assert trace.names()
    for name in trace.names():
        assert not trace[name].flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            trace[name][...] = 0


@given(models_and_ids())
def test_what_was_recorded_is_what_was_seen(model_and_ids):
    # Nothing is changed in place after its hook: the copies taken at the time are the values kept.
    model, ids = model_and_ids
    trace, seen = gptscope.trace(model, ids), everything(model, ids)
    assert trace.values.keys() == seen.keys()
    for at, value in seen.items():
        np.testing.assert_array_equal(trace.values[at], value, strict=True)


@given(models_and_ids(), st.randoms(use_true_random=False))
def test_without_mask_and_positions_permuting_tokens_permutes_outputs(model_and_ids, random):
    model, ids = model_and_ids
    model, order = all_visible(without_positions(model)), random.sample(range(len(ids)), len(ids))
    one, two = (forward(model, i) for i in (np.array(ids), np.array(ids)[order]))
    assert_close("logits", two, one[order], str(model.dtype))


@pytest.mark.parametrize("left", ["mask", "positions"])
def test_the_mask_alone_and_positions_alone_show_the_order(micro, left):
    model = without_positions(micro) if left == "mask" else all_visible(micro)
    ids = np.array([3, 1, 4, 1, 5])
    assert np.abs(forward(model, ids) - forward(model, ids[::-1])[::-1]).max() > 0.1


def all_visible(model):
    return in_attention(changed(model, causal=False), window=None)


def without_positions(model):
    return in_attention(replace(model, position_table=None), turning=None, slopes=None)


@given(
    arrays("float64", (2, 6), elements=st.floats(-4, 4)),
    st.integers(0, 500),
    st.integers(0, 500),
    st.integers(0, 4000),
)
def test_rotary_scores_depend_only_on_the_distance(pair, i, j, further):
    def score(*at):
        q, k = (turn(x[None], np.array([p]), SPEEDS)[0] for x, p in zip(pair, at, strict=True))
        return q @ k

    np.testing.assert_allclose(score(i, j), score(i + further, j + further), atol=1e-9)
    np.testing.assert_allclose(score(i, i), pair[0] @ pair[1], atol=1e-9)


@given(arrays("float64", (3, 7), elements=st.floats(-4, 4)), st.integers(0, 500))
def test_turning_keeps_every_length_and_leaves_the_rest_alone(x, first):
    turned = turn(x, np.arange(first, first + 3), SPEEDS)
    for i in range(3):
        np.testing.assert_allclose(
            np.hypot(turned[:, i], turned[:, i + 3]), np.hypot(x[:, i], x[:, i + 3]), atol=1e-12
        )
    np.testing.assert_array_equal(turned[:, 6], x[:, 6])


@given(models_and_ids())
def test_the_residual_stream_adds_up(model_and_ids):
    model, ids = model_and_ids
    assume(model.spec.wiring == "pre_norm" and model.blocks[0].ln1_post is None)
    trace = gptscope.trace(model, ids)
    total = trace.token_embeddings.astype(np.float64)
    if model.position_table is not None:
        total = total + trace.position_embeddings
    total = total if model.embed_norm is None else trace.embed_norm.out
    same("embeddings", trace.embeddings, total, model.dtype)
    for layer in trace.layers:
        same("input", layer.input, total, model.dtype)
        total = total + layer.attn_out
        same("resid_after_attn", layer.resid_after_attn, total, model.dtype)
        total = total + layer.mlp_out
        same("output", layer.output, total, model.dtype)
    same("logits", trace.logits, unembed(model, total), model.dtype)


@given(models_and_ids())
def test_after_a_post_norm_the_stream_is_what_the_norm_gives(model_and_ids):
    model, ids = model_and_ids
    assume(model.blocks[0].ln2 is not None)
    trace = gptscope.trace(post_norm(model), ids)
    for layer in trace.layers:
        attended, fed = layer.input + layer.attn_out, layer.resid_after_attn + layer.mlp_out
        for norm, read in ((layer.ln1, attended), (layer.ln2, fed)):
            if model.spec.norm == "layer_norm":
                same("mean", norm.mean, read.mean(-1), model.dtype)
            else:
                same("mean_square", norm.mean_square, (read**2).mean(-1), model.dtype)
        np.testing.assert_array_equal(layer.resid_after_attn, layer.ln1.out, strict=True)
        np.testing.assert_array_equal(layer.output, layer.ln2.out, strict=True)
    same("logits", trace.logits, unembed(post_norm(model), layer.output), model.dtype)


@given(models_and_ids())
def test_what_attention_adds_is_the_sum_over_its_heads(model_and_ids):
    model, ids = model_and_ids
    for layer, weights in zip(gptscope.trace(model, ids).layers, model.blocks, strict=True):
        out, d_head = weights.attention.out, model.spec.d_head
        total = 0 if out.bias is None else out.bias
        for h, head in enumerate(layer.heads):
            total = total + head.out @ out.weight[h * d_head : (h + 1) * d_head]
        same("attn_out", layer.attn_out, total * model.spec.residual_scale, model.dtype)


@given(models_and_ids())
def test_a_head_reads_a_weighted_mean_of_values(model_and_ids):
    model, ids = model_and_ids
    for layer in gptscope.trace(model, ids).layers:
        for head in layer.heads:
            same("out", head.out, head.weights @ head.v, model.dtype)
            same("first", head.out[0], head.v[0], model.dtype)
            assert (head.out <= head.v.max(0) + 1e-5).all()
            assert (head.out >= head.v.min(0) - 1e-5).all()


@given(models_and_ids())
def test_a_norm_leaves_a_mean_square_of_at_most_one(model_and_ids):
    model, ids = model_and_ids
    trace, eps = gptscope.trace(model, ids), model.spec.norm_eps
    outs = [name for name in trace.names() if name.endswith(".normalized")]
    assert outs
    for norm in (Scope(trace, name.removesuffix("normalized")) for name in outs):
        square = (norm.normalized**2).mean(-1)
        if model.spec.norm == "layer_norm":
            size = norm.variance
            np.testing.assert_allclose(norm.normalized.mean(-1), 0, atol=1e-4)
        else:
            size = norm.mean_square
        np.testing.assert_allclose(square, size / (size + eps), atol=1e-4)


@given(models_and_ids())
def test_keys_and_values_are_what_a_cache_remembers(model_and_ids):
    model, ids = model_and_ids
    cache, trace = Cache(model.spec, model.dtype), gptscope.trace(model, ids)
    forward(model, np.array(ids), cache=cache)
    for layer in range(model.spec.n_layers):
        nothing = np.empty((model.spec.n_kv_heads, 0, model.spec.d_head))
        k, v = cache.extend(layer, nothing, nothing)
        same("k", k, trace.values["k", layer], model.dtype)
        same("v", v, trace.values["v", layer], model.dtype)


# Softmax

ROWS = array_shapes(min_dims=1, max_dims=3, max_side=6)


@given(numbers(ROWS, 500))
def test_softmax_gives_probabilities(x):
    p = softmax(x)
    assert p.shape == x.shape
    assert (p >= 0).all()
    np.testing.assert_allclose(p.sum(-1), 1, rtol=1e-12)


@given(numbers(ROWS), st.floats(-1e3, 1e3))
def test_softmax_ignores_a_shift(x, shift):
    np.testing.assert_allclose(softmax(x + shift), softmax(x), rtol=1e-9, strict=True)


@given(numbers(st.integers(1, 20)), st.randoms(use_true_random=False))
def test_softmax_follows_a_permutation(x, random):
    order = random.sample(range(len(x)), len(x))
    np.testing.assert_allclose(softmax(x[order]), softmax(x)[order], rtol=1e-12, strict=True)


@given(numbers(st.integers(2, 20)))
def test_softmax_turns_differences_into_ratios(x):
    p = softmax(x)
    np.testing.assert_allclose(np.log(p) - np.log(p[0]), x - x[0], atol=1e-9)


@given(numbers(st.integers(2, 20)), st.data())
def test_softmax_gives_the_hidden_nothing_and_the_rest_everything(x, data):
    at = data.draw(st.sets(st.integers(0, len(x) - 1), min_size=1, max_size=len(x) - 1))
    hidden = np.isin(np.arange(len(x)), list(at))
    p = softmax(np.where(hidden, -np.inf, x))
    assert (p[hidden] == 0).all()
    np.testing.assert_allclose(p[~hidden], softmax(x[~hidden]), rtol=1e-12, strict=True)


# Sampling


@given(logits(), st.fixed_dictionaries(SETTINGS))
def test_probabilities_sum_to_one(x, how):
    p = gptscope.probabilities(x, **how)
    assert p.dtype == np.float64
    assert p.shape == x.shape
    assert (p >= 0).all()
    assert abs(p.sum() - 1) < 1e-12


@given(logits(), st.floats(0.05, 5))
def test_temperature_divides_the_logits(x, temperature):
    hot = gptscope.probabilities(x, temperature)
    np.testing.assert_allclose(hot, softmax(x / temperature), rtol=1e-9, atol=1e-300)


@given(arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([-1.0, 0.0, 1.0, 2.0])))
def test_temperature_zero_takes_the_likeliest_and_the_lower_id_of_equals(x):
    expected = np.zeros(len(x))
    expected[x.tolist().index(max(x))] = 1
    np.testing.assert_array_equal(gptscope.probabilities(x, 0), expected, strict=True)


def by_rank(x):
    return sorted(range(len(x)), key=lambda i: (-x[i], i))


# Halves, so that many are equal and that what differs still differs as a probability.
HALVES = st.integers(-20, 20).map(lambda n: n / 2)


@given(arrays(np.float64, st.integers(1, 40), elements=HALVES), st.integers(1, 50))
def test_top_k_keeps_exactly_k_and_the_lower_ids_of_equals(x, k):
    p, whole = gptscope.probabilities(x, 1, k), gptscope.probabilities(x, 1)
    kept = by_rank(x)[:k]
    assert np.flatnonzero(p).tolist() == sorted(kept)
    np.testing.assert_allclose(p[kept], whole[kept] / whole[kept].sum(), rtol=1e-12)


@given(arrays(np.float64, st.integers(1, 40), elements=HALVES), st.floats(0.01, 0.999))
def test_top_p_keeps_the_fewest_that_reach_p(x, top_p):
    p, whole = gptscope.probabilities(x, 1, top_p=top_p), gptscope.probabilities(x, 1)
    order, n = by_rank(x), np.count_nonzero(p)
    reached = np.cumsum(whole[order])
    assume(np.abs(reached - top_p).min() > 1e-12)  # rounding may decide a tie with p itself
    assert np.flatnonzero(p).tolist() == sorted(order[:n])
    assert reached[n - 1] >= top_p
    assert n == 1 or reached[n - 2] < top_p
    np.testing.assert_allclose(p[order[:n]], whole[order[:n]] / reached[n - 1], rtol=1e-12)


@given(
    arrays(np.float64, st.integers(1, 40), elements=HALVES),
    st.integers(1, 50),
    st.floats(0.01, 0.999),
)
def test_top_p_counts_what_top_k_left(x, k, top_p):
    left = gptscope.probabilities(x, 1, k)
    assume(np.abs(np.cumsum(np.sort(left)[::-1]) - top_p).min() > 1e-12)
    again = gptscope.probabilities(np.log(np.maximum(left, 1e-300)), 1, top_p=top_p)
    np.testing.assert_allclose(gptscope.probabilities(x, 1, k, top_p), again, atol=1e-12)


@given(arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0.0, 0.25, 1.0])))
def test_only_what_is_probable_is_drawn(p):
    assume(p.any())
    rng = gptscope.create_rng(0)
    assert {gptscope.sample(p, rng) for _ in range(40)} <= set(np.flatnonzero(p).tolist())


@given(logits(5), st.fixed_dictionaries(SETTINGS), st.integers(0, 2**63))
def test_a_seed_repeats_its_draws(x, how, seed):
    p = gptscope.probabilities(x, **how)
    one, two = (gptscope.create_rng(seed) for _ in range(2))
    assert [gptscope.sample(p, one) for _ in range(9)] == [
        gptscope.sample(p, two) for _ in range(9)
    ]


# Generation


@given(models_and_ids())
def test_greedy_generation_is_the_likeliest_of_full_passes(model_and_ids):
    model, ids = model_and_ids
    room = model.spec.n_ctx - len(ids)
    assume(room)
    drawn = gptscope.generate(model, ids, max_new_tokens=room, temperature=0).ids
    assert len(drawn) == room
    for n, i in enumerate(drawn):
        last = gptscope.trace(model, [*ids, *drawn[:n]]).logits[-1]
        # Equal to rounding: the one that was drawn is the likeliest, or as likely as that.
        assert last[i] >= last.max() - 1e-5 * scale(last)


@given(models_and_ids(), st.integers(1, 20), st.integers(0, 2**32))
def test_a_generation_ends_with_its_reason_and_repeats(model_and_ids, asked, seed):
    model, ids = model_and_ids
    assume(len(ids) < model.spec.n_ctx)
    model = replace(model, end_ids=(0,))
    made = gptscope.generate(model, ids, asked, seed=seed)
    assert made == gptscope.generate(model, ids, asked, seed=seed)
    assert made.prompt == tuple(ids)
    assert all(draw.stopped is None for draw in made.draws[:-1])
    assert 0 not in made.ids[:-1]
    why = "asked" if len(made.ids) == asked else "context full"
    assert made.stopped == ("end token" if made.ids[-1] == 0 else why)
    assert len(ids) + len(made.ids) <= model.spec.n_ctx
    assert made.stopped != "context full" or len(ids) + len(made.ids) == model.spec.n_ctx


# Tokens


@given(st.text())
@example("Lily wanted to play with her")
@example("  two  spaces\t\r\n\x00 and \u202e")
@example("caf\u00e9 \u2603 \U0001f600 e\u0301 \u0130")
@example("<|endoftext|>a<|endoftext|> b")
@example("\ufeff\ufffd\U0010ffff")
def test_decoding_gives_back_the_text(tiny, text):
    assert tiny.tokenizer.decode(tiny.tokenizer.encode(text)) == text


@given(st.text(min_size=1))
def test_tokens_lie_side_by_side_and_make_the_text(tiny, text):
    tokens = tiny.tokenizer.tokens(tiny.tokenizer.encode(text))
    assert b"".join(token.bytes for token in tokens) == text.encode()
    assert [token.start for token in tokens] == [0, *(token.end for token in tokens[:-1])]
    assert all(token.end - token.start == len(token.bytes) for token in tokens)


@given(st.text())
def test_streaming_gives_the_same_text(tiny, text):
    decoder, ids = Decoder(tiny.tokenizer), tiny.tokenizer.encode(text)
    assert "".join(map(decoder.feed, ids)) + decoder.finish() == tiny.tokenizer.decode(ids)


@given(st.lists(st.integers(0, 4095), max_size=20))
def test_streaming_any_ids_shows_every_byte(tiny, ids):
    decoder = Decoder(tiny.tokenizer)
    data = b"".join(map(tiny.tokenizer.bytes_of, ids))
    streamed = "".join(map(decoder.feed, ids)) + decoder.finish()
    assert streamed == data.decode(errors="show_byte")
    assert "\ufffd" not in streamed or "\ufffd".encode() in data


@given(st.text(), st.characters(categories=["Cs"]), st.text())
def test_half_a_character_is_refused(tiny, before, half, after):
    place = rf"character {len(before)} of the text \(U\+{ord(half):04X}\) is not valid"
    with pytest.raises(gptscope.UsageError, match=place):
        tiny.tokenizer.encode(before + half + after)
