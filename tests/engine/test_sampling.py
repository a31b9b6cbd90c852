import numpy as np
import pytest

from gptscope.engine.sampling import (
    Sampling,
    create_rng,
    distribution,
    probabilities,
    rank,
    ranked,
    sample,
)
from gptscope.errors import ModelError, UsageError

# Probabilities 0.1, 0.4, 0.2, 0.1, 0.2.
LOGITS = np.log([1.0, 4, 2, 1, 2])


def test_without_settings_it_is_softmax():
    np.testing.assert_allclose(probabilities(LOGITS), [0.1, 0.4, 0.2, 0.1, 0.2], rtol=1e-14)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ((0.5,), [1 / 26, 16 / 26, 4 / 26, 1 / 26, 4 / 26]),
        ((0,), [0, 1, 0, 0, 0]),
        ((0, 3, 0.5), [0, 1, 0, 0, 0]),
        ((1, 1), [0, 1, 0, 0, 0]),
        ((1, 2), [0, 2 / 3, 1 / 3, 0, 0]),
        ((1, 3), [0, 0.5, 0.25, 0, 0.25]),
        ((1, 4), [1 / 9, 4 / 9, 2 / 9, 0, 2 / 9]),
        ((1, 5), [0.1, 0.4, 0.2, 0.1, 0.2]),
        ((1, 99), [0.1, 0.4, 0.2, 0.1, 0.2]),
        ((1, None, 0.3), [0, 1, 0, 0, 0]),
        ((1, None, 0.5), [0, 2 / 3, 1 / 3, 0, 0]),
        ((1, None, 0.85), [1 / 9, 4 / 9, 2 / 9, 0, 2 / 9]),
        ((1, None, 1), [0.1, 0.4, 0.2, 0.1, 0.2]),
        ((1, 3, 0.6), [0, 2 / 3, 1 / 3, 0, 0]),  # top-p counts what top-k left: 0.5 + 0.25
        ((1, 4, 0.6), [0, 2 / 3, 1 / 3, 0, 0]),
        ((0.5, None, 0.7), [0, 0.8, 0.2, 0, 0]),  # and what the temperature made: 16/26 + 4/26
    ],
)
def test_by_hand(how, expected):
    actual = probabilities(LOGITS, *how)
    np.testing.assert_allclose(actual, np.array(expected, float), rtol=1e-12, strict=True)


def test_float32_logits_are_counted_in_float64():
    p = probabilities(LOGITS.astype("float32"), 1, 3)
    assert p.dtype == np.float64
    assert p.sum() == pytest.approx(1, abs=1e-15)


def test_logits_are_not_changed():
    logits = LOGITS.copy()
    logits.flags.writeable = False
    probabilities(logits, 0.7, 3, 0.9)
    np.testing.assert_array_equal(logits, LOGITS)


def test_tokens_at_minus_infinity_are_never_kept():
    p = probabilities(np.array([-np.inf, 0, -np.inf, 1]), 1, 3, 0.99)
    assert p[[0, 2]].tolist() == [0, 0]
    assert p.sum() == pytest.approx(1)


@pytest.mark.parametrize("temperature", [1e-3, 1e-8, 1e-200])
def test_a_low_temperature_comes_close_to_the_likeliest(temperature):
    np.testing.assert_allclose(probabilities(LOGITS, temperature), [0, 1, 0, 0, 0], atol=1e-300)


def test_a_high_temperature_makes_all_alike():
    np.testing.assert_allclose(probabilities(LOGITS, 1e9), np.full(5, 0.2), rtol=1e-8)


def test_the_lowest_temperatures_do_not_warn():
    np.testing.assert_array_equal(probabilities(LOGITS, 1e-310), [0, 1, 0, 0, 0])


def test_a_temperature_that_makes_all_equal_still_ranks_by_logits():
    np.testing.assert_array_equal(probabilities(LOGITS, 1e20, top_k=1), [0, 1, 0, 0, 0])


def test_top_p_of_one_keeps_all():
    assert (probabilities(np.array([0.0, -40]), 1, top_p=1) > 0).all()


@pytest.mark.parametrize("temperature", [0, 1])
@pytest.mark.parametrize("logits", [[0, np.nan, 1], [0, np.inf, 1], [-np.inf] * 3])
def test_logits_that_nothing_can_be_drawn_from_are_refused(logits, temperature):
    with pytest.raises(ModelError, match="logits hold NaN or infinity"):
        probabilities(np.array(logits), temperature)


def test_lists_and_whole_numbers_are_logits_too():
    expected = probabilities(np.array([1.0, 2, 3]), 0.7, 2)
    np.testing.assert_array_equal(probabilities(np.array([1, 2, 3]), 0.7, 2), expected, strict=True)
    np.testing.assert_array_equal(probabilities([1, 2, 3], 0.7, 2), expected, strict=True)


@pytest.mark.parametrize("shape", [(), (1, 3), (2, 3)])
def test_logits_that_are_not_one_list_are_refused(shape):
    with pytest.raises(UsageError, match=r"logits are one list \[V\], not of the shape"):
        probabilities(np.zeros(shape))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"temperature": -0.1}, r"temperature -0\.1 must be 0 \(greedy\) or more, and finite"),
        ({"temperature": float("inf")}, r"temperature inf must be 0"),
        ({"temperature": float("nan")}, r"temperature nan must be 0"),
        ({"top_k": 0}, "top-k 0 must be 1 or more"),
        ({"top_k": -5}, "top-k -5 must be 1 or more"),
        ({"top_p": 0}, "top-p 0 must be above 0 and at most 1"),
        ({"top_p": 1.01}, r"top-p 1\.01 must be above 0 and at most 1"),
        ({"top_p": -0.5}, r"top-p -0\.5 must be above 0"),
        ({"top_p": float("nan")}, "top-p nan must be above 0"),
    ],
)
def test_settings_out_of_range_are_refused(settings, why):
    with pytest.raises(UsageError, match=why):
        Sampling(**settings)
    with pytest.raises(UsageError, match=why):
        probabilities(LOGITS, **settings)


def test_settings_are_a_value():
    assert Sampling(0.8, 40) == Sampling(0.8, 40, None)
    np.testing.assert_array_equal(
        distribution(LOGITS, Sampling(0.8, 3)), probabilities(LOGITS, 0.8, 3), strict=True
    )


@pytest.mark.parametrize("count", [None, 0, 1, 2, 3, 4, 5, 6])
def test_ranked(count):
    p = np.array([0.1, 0.4, 0.2, 0.1, 0.2])
    expected = [1, 2, 4, 0, 3]
    if count == 0:
        assert ranked(p, 1).tolist() == expected[:1]
    else:
        assert ranked(p, count).tolist() == expected[:count]


def test_ranked_among_many_equals():
    p = np.array([0.0, 1, 0, 1, 0, 1, 1, 0])
    for count in range(1, 9):
        assert ranked(p, count).tolist() == [1, 3, 5, 6, 0, 2, 4, 7][:count]


# Drawing


class Fixed:
    def __init__(self, value):
        self.value = value

    def random(self):
        return self.value


@pytest.mark.parametrize(
    ("u", "drawn"),
    [(0, 1), (0.2499, 1), (0.25, 3), (0.7499, 3), (0.75, 4), (np.nextafter(1, 0), 4)],
)
def test_a_number_between_0_and_1_falls_on_an_id(u, drawn):
    assert sample(np.array([0, 0.25, 0, 0.5, 0.25, 0]), Fixed(u)) == drawn


def test_rounding_does_not_reach_past_the_last():
    p = np.array([0.1] * 10 + [0.0, 0.0])
    assert sample(p, Fixed(np.nextafter(1, 0))) == 9
    assert sample(p.astype("float32"), Fixed(np.nextafter(1, 0))) == 9
    assert sample(np.array([0, 5e-324, 0]), Fixed(0.9)) == 1


@pytest.mark.parametrize("at", range(4))
def test_a_certain_token_is_always_drawn(at):
    p, rng = np.eye(4)[at], create_rng(1)
    assert {sample(p, rng) for _ in range(50)} == {at}
    assert type(sample(p, rng)) is int


@pytest.mark.parametrize("seed", range(3))
def test_frequencies_are_the_probabilities(seed):
    # Pearson's chi squared; with 4 free cells, more than 23.5 has the probability 1e-4.
    p, n, rng = probabilities(LOGITS), 20_000, create_rng(seed)
    found = np.bincount([sample(p, rng) for _ in range(n)], minlength=5)
    assert ((found - n * p) ** 2 / (n * p)).sum() < 23.5


def test_a_seed_repeats_and_another_differs():
    p = np.full(1000, 1e-3)
    draws = [[sample(p, rng) for _ in range(5)] for rng in map(create_rng, (7, 7, 8))]
    assert draws[0] == draws[1]
    assert draws[0] != draws[2]


def test_a_negative_seed_is_refused():
    with pytest.raises(UsageError, match="seed -1 must be 0 or more"):
        create_rng(-1)


@pytest.mark.parametrize("scores", [[3.0, 1.0, 3.0, 2.0], [0.0] * 4, [-np.inf, 5.0, -np.inf, 0.0]])
def test_a_rank_is_the_place_among_the_ranked(scores):
    order = ranked(np.array(scores)).tolist()
    assert [rank(np.array(scores), i) for i in range(4)] == [order.index(i) + 1 for i in range(4)]
