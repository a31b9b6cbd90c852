from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import gptscope
from gptscope.analysis.heads.patterns import PATTERNS, similarity, stripe
from gptscope.analysis.heads.random_tokens import drawn, longest, n_plain, repeated
from gptscope.analysis.heads.scores import SCORES, SHARES, of_layer, over_seeds, scores, unread
from gptscope.analysis.heads.verdict import ERRORS, SHARE, TIMES, WORDS, is_far_beyond
from gptscope.engine.ops import hidden
from gptscope.tokens import Token
from tests.helpers.micro import micro_model, models_and_ids, sizes
from tests.helpers.variants import changed, windowed

IDS = [7, 3, 7, 7, 3, 5]
PLACES = {  # what each token of IDS looks at
    "previous": [[], [0], [1], [2], [3], [4]],
    "itself": [[0], [1], [2], [3], [4], [5]],
    "first": [[0]] * 6,
    "duplicate": [[], [], [0], [0, 2], [1], []],
    "induction": [[], [], [1], [1, 3], [2], []],
}
TOKENS = st.lists(st.integers(0, 4), min_size=1, max_size=12)


def seen_by(n, window=None, *, causal=True):
    return ~hidden(np.arange(n), window, causal=causal)


def measured(weights, ids, seen):
    patterns = np.stack([PATTERNS[name](ids) for name in SHARES])
    values, even, rows = of_layer(weights, patterns, seen)
    return ({name: values[i] for i, name in enumerate(SCORES)}, even, rows)


def weights_of(rng, n, heads=3):
    scores = np.where(seen_by(n), rng.normal(0, 3, (heads, n, n)), -np.inf)
    weights = np.exp(scores)
    return weights / weights.sum(-1, keepdims=True)


# Patterns


@pytest.mark.parametrize("name", PLACES)
def test_a_pattern_is_where_such_a_head_looks(name):
    found = [np.flatnonzero(row).tolist() for row in PATTERNS[name](IDS)]
    assert found == PLACES[name]
    assert PATTERNS.keys() == PLACES.keys()


@given(TOKENS, st.sampled_from(sorted(PATTERNS)))
def test_no_pattern_looks_ahead(ids, name):
    mask = PATTERNS[name](ids)
    assert mask.shape == (len(ids), len(ids))
    assert not np.triu(mask, k=1).any()


def test_the_similarity_is_a_share_of_all_weights():
    weights = weights_of(np.random.default_rng(0), 6)
    for name, places in PLACES.items():
        share = sum(weights[:, i, j] for i, row in enumerate(places) for j in row) / 6
        assert_allclose(similarity(weights, PATTERNS[name](IDS)), share + np.zeros(3))


def test_the_similarity_leaves_out_first_and_current_token_in_both_sums():
    weights = weights_of(np.random.default_rng(0), 6)
    whole, left = weights.copy(), weights.copy()
    left[:, :, 0] = 0
    pattern = PATTERNS["previous"](IDS)
    expected = (left * pattern).sum((1, 2)) / left.sum((1, 2))
    assert_allclose(similarity(weights, pattern, exclude_bos=True), expected)
    left[:, range(6), range(6)] = 0
    expected = (left * pattern).sum((1, 2)) / left.sum((1, 2))
    both = {"exclude_bos": True, "exclude_current_token": True}
    assert_allclose(similarity(weights, pattern, **both), expected)
    assert_array_equal(weights, whole)


def test_a_stripe_is_the_mean_of_a_diagonal():
    weights = weights_of(np.random.default_rng(1), 7, heads=1)[0]
    expected = np.mean([weights[i, i - 3] for i in range(3, 7)])
    assert_allclose(stripe(weights[None], 3), [expected])
    assert_allclose(stripe(weights, 1), similarity(weights, PATTERNS["previous"](range(7))) * 7 / 6)


# Scores


@given(TOKENS, st.none() | st.integers(1, 12), st.booleans())
def test_an_even_head_has_just_what_chance_gives(ids, window, causal):
    seen = seen_by(len(ids), window, causal=causal)
    found, even, rows = measured((seen / seen.sum(-1, keepdims=True))[None], ids, seen)
    for i, name in enumerate(SCORES):
        assert_allclose(found[name], even[[i]], rtol=1e-12)
        assert np.isnan(even[i]) == (rows[i] == 0)


@given(TOKENS, st.none() | st.integers(1, 12), st.booleans(), st.sampled_from(SHARES))
def test_a_head_of_the_kind_itself_has_all_of_its_share(ids, window, causal, name):
    seen = seen_by(len(ids), window, causal=causal)
    on = PATTERNS[name](ids) & seen
    other = np.where(on.any(-1, keepdims=True), on, seen)  # where it has nothing to look at
    found, even, rows = measured((other / other.sum(-1, keepdims=True))[None], ids, seen)
    if rows[SHARES.index(name)]:
        assert_allclose(found[name], [1.0], rtol=1e-12)
        assert even[SHARES.index(name)] < 1


def test_chance_is_one_over_what_a_row_sees():
    _, even, rows = measured(weights_of(np.random.default_rng(0), 6), IDS, seen_by(6))
    assert rows.tolist() == [5, 5, 5, 3, 3, 5, 5]
    others = np.arange(2, 7)
    expected = {
        "previous": np.mean(1 / others),
        "itself": np.mean(1 / others),
        "first": np.mean(1 / others),
        "duplicate": np.mean([1 / 3, 2 / 4, 1 / 5]),
        "induction": np.mean([1 / 3, 2 / 4, 1 / 5]),
        "entropy": np.mean(np.log2(others)),
        "distance": np.mean((others - 1) / 2),
    }
    assert_allclose(even, [expected[name] for name in SCORES])


def test_scores_are_means_over_the_rows_that_have_a_choice():
    w = weights_of(np.random.default_rng(2), 6)
    found, _, _ = measured(w, IDS, seen_by(6))
    assert_allclose(found["itself"], np.mean([w[:, i, i] for i in range(1, 6)], axis=0))
    picked = [w[:, 2, 1], w[:, 3, 1] + w[:, 3, 3], w[:, 4, 2]]
    assert_allclose(found["induction"], np.mean(picked, axis=0))
    bits = [-(w[:, i, : i + 1] * np.log2(w[:, i, : i + 1])).sum(-1) for i in range(1, 6)]
    assert_allclose(found["entropy"], np.mean(bits, axis=0))
    back = [(w[:, i, : i + 1] * (i - np.arange(i + 1))).sum(-1) for i in range(1, 6)]
    assert_allclose(found["distance"], np.mean(back, axis=0))


def test_a_window_hides_what_is_outside():
    ids, n = [1, 2, 3, 1, 2, 3], 6
    seen = seen_by(n, 3)
    _, even, rows = measured((seen / seen.sum(-1, keepdims=True))[None], ids, seen)
    assert rows[SHARES.index("duplicate")] == 0  # three back is one too far
    assert rows[SHARES.index("induction")] == 3  # two back is not
    assert_allclose(even[SHARES.index("induction")], 1 / 3)
    assert rows[SHARES.index("first")] == 2


@given(models_and_ids())
def test_scores_of_any_model_are_within_their_bounds(model_and_ids):
    model, ids = model_and_ids
    found = scores(model, gptscope.trace(model, ids, "weights"))
    s = model.spec
    assert found.values.shape == (len(SCORES), s.n_layers, s.n_heads)
    assert found.even.shape == found.rows.shape == (len(SCORES), s.n_layers)
    by_name = dict(zip(SCORES, found.values, strict=True))
    some = found.rows > 0
    assert_array_equal(np.isnan(found.values), np.repeat(~some[..., None], s.n_heads, -1))
    for name in SHARES:
        assert not (by_name[name] < 0).any()
        assert not (by_name[name] > 1 + 1e-5).any()
    assert not (by_name["previous"] + by_name["itself"] > 1 + 1e-5).any()  # rows are the same
    assert not (by_name["entropy"] > found.even[SCORES.index("entropy")][:, None] + 1e-4).any()
    assert not (by_name["entropy"] < 0).any()
    assert not (by_name["distance"] > len(ids) - 1 + 1e-4).any()


def test_windows_and_masks_of_the_model_are_heeded():
    ids = [1, 2, 3, 1, 2, 3]
    model = micro_model()
    local = scores(windowed(model), gptscope.trace(windowed(model), ids, "weights"))
    assert local.rows[SHARES.index("duplicate")].tolist() == [0, 0]
    both = changed(model, causal=False)
    found = scores(both, gptscope.trace(both, ids, "weights"))
    assert_allclose(found.even[SHARES.index("previous")], [1 / 6] * 2)
    assert found.rows[SHARES.index("first")].tolist() == [6, 6]


def test_a_broken_weight_is_not_nothing():
    weights = weights_of(np.random.default_rng(0), 6)
    weights[1, 3, 2] = np.nan
    found, _, rows = measured(weights, IDS, seen_by(6))
    assert rows.min() > 0
    for name in SCORES:
        assert np.isnan(found[name]).tolist() == [False, True, False], name


def test_seeds_give_a_mean_and_its_standard_error():
    model = micro_model(sizes(n_vocab=30))
    passes = [
        scores(model, gptscope.trace(model, repeated(model, 4, seed, bos=False), "weights"))
        for seed in range(4)
    ]
    found = over_seeds(passes)
    values = np.stack([one.values for one in passes])
    assert_allclose(found.mean, values.mean(0))
    expected = np.sqrt(((values - values.mean(0)) ** 2).sum(0) / 3 / 4)
    assert_allclose(found.error, expected)
    assert (found.error > 0).any()
    assert_allclose(found.even, passes[0].even)  # where they stand is the same in all


def test_nothing_read_is_nothing_measured():
    found, model = unread(micro_model()), micro_model()
    one = scores(model, gptscope.trace(model, [1, 2], "weights"))
    for name in ("values", "even", "rows"):
        assert getattr(found, name).shape == getattr(one, name).shape
    assert not found.rows.any()
    assert np.isnan(found.values).all()


# Random tokens


@pytest.mark.parametrize("bos", [False, True])
def test_random_tokens_come_twice_and_none_of_them_is_special(tiny, bos):
    ids = repeated(tiny, 40, 3, bos=bos)
    first, own = ids[:bos], ids[bos:]
    assert first == [0] * bos
    assert own[:40] == own[40:]
    assert len(set(own)) == 40
    assert not any(token.special for token in tiny.tokenizer.tokens(own))
    assert repeated(tiny, 40, 3, bos=bos) == ids
    assert repeated(tiny, 40, 4, bos=bos) != ids


def test_a_small_vocabulary_is_used_up():
    model = gptscope.load("toy")
    special = {i for i in range(12) if model.tokenizer.tokens([i])[0].special} | {*model.end_ids}
    assert n_plain(model, 50) == 12 - len(special)
    assert n_plain(model, 3) == 3
    assert set(drawn(model, 50, np.random.default_rng(0))) == set(range(12)) - special
    assert (longest(model, bos=False), longest(model, bos=True)) == (9, 8)


def test_the_end_and_the_beginning_are_not_random_tokens():
    model = micro_model(sizes(n_vocab=5))
    assert sorted(drawn(model, 9, np.random.default_rng(0))) == [1, 2, 3, 4]


class Words:
    """A tokenizer whose token 2 is special, and whose token 3 stands for nothing."""

    def tokens(self, ids):
        return [Token(i, "", b"", 0, 0, special=i == 2) for i in ids]

    def bytes_of(self, token_id):
        return b"" if token_id == 3 else b"x"


def test_other_special_tokens_and_padding_are_left_out():
    model = replace(micro_model(sizes(n_vocab=7)), tokenizer=Words())
    assert sorted(drawn(model, 9, np.random.default_rng(0))) == [1, 4, 5, 6]


# Verdicts


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((SHARE, 0.0, 0.0), True),
        ((np.nextafter(SHARE, 0), 0.0, 0.0), False),
        ((0.75, 0.0, 0.25), True),
        ((np.nextafter(0.75, 0), 0.0, 0.25), False),
        ((0.5, 0.0625, 0.125), True),
        ((0.5, 0.0625, 0.125 + 0.0625), False),
        ((0.5625, 0.0625, 0.25), False),
        ((0.5, 0.075, 0.125), True),
        ((np.nextafter(0.5, 0), 0.075, 0.125), False),
        ((1.0, 0.0, 0.5), False),
        ((np.nan, 0.0, 0.1), False),
        ((0.9, np.nan, 0.1), False),
        ((0.9, 0.0, np.nan), False),
    ],
)
def test_a_word_stands_only_far_beyond_chance(numbers, expected):
    assert is_far_beyond(*numbers) is expected
    assert (SHARE, TIMES, ERRORS) == (0.4, 3, 5)


def test_every_share_has_a_word():
    assert set(WORDS) == {*SHARES, "copying"}
