import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gptscope
from gptscope.analysis.grammar import nats_per_word, split, toy_grammar
from gptscope.analysis.mask import (
    EXAMPLE,
    PLACE,
    check_fit,
    example,
    fresh,
    loss,
    losses,
    losses_alone,
    measure,
    nats_of,
    place_and_last_word,
    with_mask,
)
from gptscope.engine.forward import forward
from gptscope.engine.ops import softmax
from gptscope.errors import ModelError
from tests.helpers.close import scale
from tests.helpers.micro import micro_models

TO = {"float32": 2e-5, "float64": 1e-11}  # of the scale


@pytest.fixture(scope="module")
def grammar():
    return toy_grammar()


@pytest.fixture(scope="module")
def toy():
    return gptscope.load("toy")


@pytest.fixture(scope="module")
def unmasked():
    return gptscope.load("toy-unmasked")


@pytest.fixture(scope="module")
def sentences(grammar):
    return fresh(grammar, 40, seed=1).sentences


@pytest.fixture(scope="module")
def lesson(grammar, toy, unmasked):
    done = []
    drawn = fresh(grammar, 4000, seed=2017)
    found = measure(toy, unmasked, drawn, done.append)
    assert sum(done) == 4 * drawn.n_words
    assert len(done) > 100
    return found


def no_one(_):
    pass


def one_by_one(model, texts):
    return np.array([-np.log(softmax(forward(model, text).astype(float))) for text in texts])


# The lesson


def test_the_masked_model_comes_close_to_the_entropy(grammar, lesson):
    assert abs(lesson.masked.mean - nats_per_word(grammar.sentences())) < 0.01
    assert lesson.masked.mean == pytest.approx(0.5298, abs=5e-5)
    assert lesson.masked.error == pytest.approx(0.00093, abs=5e-6)


def test_looking_ahead_is_far_below_the_entropy(lesson):
    assert lesson.ahead.mean == pytest.approx(0.0029, abs=5e-5)
    assert lesson.ahead.error < 1e-6


def test_without_the_next_word_the_unmasked_model_is_worse_than_knowing_nothing(lesson):
    assert lesson.writing.mean == pytest.approx(3.027, abs=5e-4)
    assert lesson.absent.mean == pytest.approx(3.020, abs=5e-4)
    for one in (lesson.writing, lesson.absent):
        assert one.mean - math.log(12) > 20 * one.error
        assert one.error == pytest.approx(0.0130, abs=1e-4)


def test_the_least_from_place_and_last_word(grammar):
    chances = grammar.sentences()
    least = 0
    for at in range(1, 18):
        pairs, lasts = {}, {}
        for sentence, p in chances.items():
            last, word = sentence[at - 1 : at + 1]
            pairs[last, word] = pairs.get((last, word), 0) + p
            lasts[last] = lasts.get(last, 0) + p
        least -= sum(p * math.log(p / lasts[last]) for (last, _), p in pairs.items())
    assert place_and_last_word(chances) == pytest.approx(least / 17)
    assert round(place_and_last_word(chances), 3) == 0.690


def test_the_example_was_kept_out_of_training(grammar):
    assert tuple(EXAMPLE.split()) in split(grammar)[1]


def test_what_is_said_of_the_example(grammar, toy, unmasked):
    rows = example(toy, unmasked, grammar)
    assert [word for word, _ in rows[:3]] == ["fish", "bone", "seed"]
    assert [given[0] for _, given in rows] == [0.6, 0.2, 0.2] + 9 * [0.0]
    np.testing.assert_allclose(np.sum([given for _, given in rows], axis=0), 1, rtol=1e-6)
    ids = toy.tokenizer.encode(EXAMPLE)[:-1]
    for column, (model, shown) in enumerate(
        [(toy, PLACE), (unmasked, 17), (with_mask(unmasked), PLACE)], 1
    ):
        chances = softmax(gptscope.trace(model, ids[:shown]).logits[PLACE - 1])
        words = [toy.tokenizer.text_of(i) for i in range(12)]
        expected = [chances[words.index(word)] for word, _ in rows]
        got = [given[column] for _, given in rows]
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-7)


# The draw


def test_a_draw_counts_its_sentences(grammar):
    drawn, held_out = fresh(grammar, 4000, seed=2017), split(grammar)[1]
    assert drawn.counts.sum() == 4000
    assert drawn.kept_out == len(held_out) == 3375
    assert drawn.n_words == 17 * len(drawn.counts)
    words = [tuple(grammar.words[i] for i in row) for row in drawn.sentences]
    assert len(set(words)) == len(words) == len(drawn.counts)
    assert set(words) <= held_out.keys()
    # How often each came is what its chance says, within what chance allows.
    expected = np.array([held_out[word] for word in words]) * 4 * 4000
    assert abs((drawn.counts - expected) / np.sqrt(expected)).max() < 6
    common = max(held_out, key=held_out.get)
    assert drawn.counts[words.index(common)] > drawn.counts.mean()


def test_a_seed_repeats_its_draw(grammar):
    one, two, other = (fresh(grammar, 50, seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.sentences, two.sentences, strict=True)
    np.testing.assert_array_equal(one.counts, two.counts, strict=True)
    assert not np.array_equal(one.sentences[:9], other.sentences[:9])


# The losses


def test_losses_are_those_of_a_pass_for_each_sentence(toy, unmasked, sentences):
    for model in (toy, unmasked, with_mask(unmasked)):
        nats = one_by_one(model, sentences[:, :-1])
        expected = [
            [row[t, word] for t, word in enumerate(sentence[1:])]
            for row, sentence in zip(nats, sentences, strict=True)
        ]
        np.testing.assert_allclose(losses(model, sentences, no_one), expected, atol=1e-4)


def test_alone_means_that_only_the_words_before_are_there(unmasked, sentences):
    few = sentences[:6]
    expected = [
        [one_by_one(unmasked, [sentence[:t]])[0, -1, sentence[t]] for t in range(1, 18)]
        for sentence in few
    ]
    np.testing.assert_allclose(losses_alone(unmasked, few, no_one), expected, atol=1e-4)


def test_to_a_masked_model_it_is_the_same_alone(toy, sentences):
    alone, whole = (f(toy, sentences, no_one) for f in (losses_alone, losses))
    np.testing.assert_allclose(alone, whole, atol=1e-5, strict=True)


@given(micro_models(), st.integers(1, 9), st.booleans(), st.data())
def test_together_is_the_same_as_one_by_one(model, n, causal, data):
    model = replace(model, spec=replace(model.spec, causal=causal))
    length = data.draw(st.integers(1, model.spec.n_ctx))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    texts = rng.integers(0, model.spec.n_vocab, (n, length))
    expected = one_by_one(model, texts)
    error = np.abs(nats_of(model, texts) - expected).max()
    assert error <= TO[str(model.dtype)] * scale(expected)


def test_the_standard_error_is_over_sentences():
    nats = np.array([[1.0, 3.0], [2.0, 4.0], [4.0, 4.0]])
    found = loss(nats, np.array([1, 1, 1]))
    assert (found.mean, found.error) == (3.0, pytest.approx(1 / math.sqrt(3)))


@given(st.lists(st.integers(1, 5), min_size=2, max_size=6))
def test_counting_a_sentence_is_repeating_it(counts):
    nats = np.random.default_rng(0).normal(size=(len(counts), 3))
    counted = loss(nats, np.array(counts))
    each = np.repeat(nats, counts, axis=0).mean(1)
    assert counted.mean == pytest.approx(each.mean())
    assert counted.error == pytest.approx(each.std(ddof=1) / math.sqrt(len(each)))


# What does not fit


def test_a_pair_that_does_not_fit_is_refused(grammar, toy, unmasked):
    check_fit(toy, unmasked, grammar)
    with pytest.raises(ModelError, match="toy-unmasked has no mask; it should be a model with a"):
        check_fit(unmasked, toy, grammar)
    with pytest.raises(ModelError, match="toy has a mask; it should be a model with none"):
        check_fit(toy, toy, grammar)
    short = replace(toy, spec=replace(toy.spec, n_ctx=16))
    with pytest.raises(ModelError, match="toy knows 12 words and reads 16; the sentences have 12"):
        check_fit(short, unmasked, grammar)
    check_fit(replace(toy, spec=replace(toy.spec, n_ctx=17)), unmasked, grammar)
