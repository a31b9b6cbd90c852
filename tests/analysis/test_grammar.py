import json
import math
from collections import defaultdict

import numpy as np
import pytest

import gptscope
from gptscope.analysis.grammar import (
    nats_knowing,
    nats_per_word,
    read_grammar,
    split,
    toy_grammar,
)
from gptscope.errors import ModelError

ENTROPY = 0.526


@pytest.fixture(scope="module")
def grammar():
    return toy_grammar()


@pytest.fixture(scope="module")
def chances(grammar):
    return grammar.sentences()


def test_twelve_words(grammar, chances):
    assert len(set(grammar.words)) == len(grammar.words) == 12
    assert {"the", "cat", "eats"} <= set(grammar.words)
    assert {word for sentence in chances for word in sentence} == set(grammar.words)
    assert {len(sentence) for sentence in chances} == {18}
    assert {sentence[0] for sentence in chances} == {"the"}


def test_chances_add_up_to_one(grammar, chances):
    assert math.fsum(chances.values()) == pytest.approx(1, abs=1e-12)
    assert min(chances.values()) > 0
    for sentence in list(chances)[::100]:
        for at in range(len(sentence)):
            assert math.fsum(grammar.after(sentence[:at]).values()) == pytest.approx(1)


def test_entropy_per_word_by_enumeration(chances):
    assert round(nats_per_word(chances), 3) == ENTROPY
    assert nats_knowing(chances, lambda before: before) == pytest.approx(nats_per_word(chances))


def test_entropy_equals_a_monte_carlo_estimate(grammar, chances):
    rng = np.random.default_rng(0)
    drawn = [grammar.sample(rng) for _ in range(2000)]
    nats = np.array([-math.log(chances[sentence]) / 17 for sentence in drawn])
    error = nats.std(ddof=1) / math.sqrt(len(nats))
    assert error < 0.002
    assert abs(nats.mean() - nats_per_word(chances)) < 3 * error


def test_the_last_word_is_not_enough(chances):
    entropy = nats_per_word(chances)
    assert nats_knowing(chances, lambda before: before[-1]) > entropy + 0.5
    assert nats_knowing(chances, lambda before: (len(before), before[-1])) > entropy + 0.15
    assert nats_knowing(chances, lambda before: (len(before), before[-5:])) > entropy + 0.003


def information(chances, one, other, given):
    """I(one; other | given) in nats, of the words at three places."""
    counts = [defaultdict(float) for _ in range(4)]
    for sentence, p in chances.items():
        x, y, z = (sentence[at] for at in (one, other, given))
        for count, key in zip(counts, ((x, y, z), (x, z), (y, z), z), strict=True):
            count[key] += p
    joint, left, right, middle = counts
    return math.fsum(
        p * math.log(p * middle[z] / (left[x, z] * right[y, z])) for (x, y, z), p in joint.items()
    )


@pytest.mark.parametrize(("early", "late"), [(1, 4), (7, 10), (13, 16), (1, 7), (7, 13)])
def test_a_word_depends_on_one_several_words_back(chances, early, late):
    assert information(chances, early, late, given=late - 1) > 0.03
    assert information(chances, 5, 11, given=10) == pytest.approx(0, abs=1e-12)


def test_held_out_sentences_keep_the_entropy(grammar, chances):
    learned, held_out = split(grammar)
    assert learned.keys() | held_out.keys() == chances.keys()
    assert not learned.keys() & held_out.keys()
    assert math.fsum(held_out.values()) == pytest.approx(1 / 4)
    for side in (learned, held_out):
        assert nats_per_word(side) == pytest.approx(nats_per_word(chances), abs=1e-12)
    others = [sentence[:5] + sentence[6:11] + sentence[12:] for sentence in held_out]
    assert len(set(others)) == len(others) == len(chances) / 4


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"tables": {"animal": {"cat": 0.5, "dog": 0.4}}}, r"add up to 0\.9, not to 1"),
        ({"words": ["the", "cat"]}, r"does not say 'dog'"),
        ({"sentence": ["the", {"table": "verb"}]}, r"does not say 'verb'"),
        ({"sentence": 3}, r"cannot read .*grammar\.json"),
        ({"tables": {"animal": ["cat", "dog"]}}, r"cannot read .*grammar\.json"),
        ({"sentence": ["the", {"table": "animal", "given": [1]}]}, r"cannot read .*grammar\.json"),
    ],
)
def test_a_wrong_grammar_is_refused(tmp_path, change, match):
    right = {
        "words": ["the", "cat", "dog"],
        "sentence": ["the", {"table": "animal"}],
        "tables": {"animal": {"cat": 0.5, "dog": 0.5}},
        "held_out": [1],
    }
    path = tmp_path / "grammar.json"
    path.write_text(json.dumps(right), "utf-8")
    assert nats_per_word(read_grammar(path).sentences()) == pytest.approx(math.log(2))
    path.write_text(json.dumps(right | change), "utf-8")
    with pytest.raises(ModelError, match=match):
        read_grammar(path)


def test_a_broken_grammar_is_refused(tmp_path):
    path = tmp_path / "grammar.json"
    with pytest.raises(ModelError, match="No such file"):
        read_grammar(path)
    path.write_text("{", "utf-8")
    with pytest.raises(ModelError, match="cannot read"):
        read_grammar(path)


def test_the_numbers_of_words_are_those_of_the_toy(grammar):
    model = gptscope.load("toy")
    sentence = "the cat eats the fish and the dog sees the bird but the bird eats the seed ."
    (ids,) = grammar.ids([tuple(sentence.split())])
    assert ids.tolist() == model.tokenizer.encode(sentence)
    assert (len(grammar.words), len(grammar.sentence)) == (model.spec.n_vocab, model.spec.n_ctx)


def test_who_is_given_the_sentences_may_change_them(grammar, chances):
    grammar.sentences().clear()
    assert grammar.sentences() == chances
