from dataclasses import replace

import numpy as np
import pytest

import gptscope
from gptscope.engine.cache import Cache
from gptscope.engine.generate import CANDIDATES, draws, generate, prompt_ids, why
from gptscope.engine.sampling import Sampling
from gptscope.errors import UsageError
from tests.helpers.folders import GOLDEN, ids_of

PROMPT = (3, 1, 4)


def greedy(model, ids, count):
    # Without a cache: a whole pass for every token.
    ids = list(ids)
    for _ in range(count):
        ids.append(int(gptscope.trace(model, ids, keep=["logits"]).logits[-1].argmax()))
    return tuple(ids[-count:])


def test_greedy_is_what_full_passes_give(golden_folder, golden_model):
    ids = ids_of(golden_folder.name)[:5]
    room = golden_model.spec.n_ctx - len(ids)
    endless = replace(golden_model, end_ids=())
    made = generate(endless, ids, room, temperature=0)
    assert made.ids == greedy(golden_model, ids, room)
    assert len(made.ids) == room


def test_the_shipped_model_greedily(tiny):
    ids = tiny.tokenizer.encode("Lily wanted to play with her")
    assert generate(tiny, ids, 12, temperature=0).ids == greedy(tiny, ids, 12)


def test_each_step_is_one_row(micro, monkeypatch):
    lengths = []
    extend = Cache.extend

    def spy(self, layer, k, v):
        lengths.append((layer, k.shape[1]))
        return extend(self, layer, k, v)

    monkeypatch.setattr(Cache, "extend", spy)
    generate(micro, PROMPT, 3)
    assert lengths == [(0, 3), (1, 3), (0, 1), (1, 1), (0, 1), (1, 1)]


def test_as_many_as_asked_for(micro):
    made = generate(micro, PROMPT, 5)
    assert made.prompt == PROMPT
    assert len(made.ids) == len(made.draws) == 5
    assert made.stopped == "asked"
    assert [draw.stopped for draw in made.draws] == [None] * 4 + ["asked"]


def test_until_the_context_is_full(micro):
    made = generate(micro, PROMPT, 1000)
    assert len(PROMPT) + len(made.ids) == micro.spec.n_ctx
    assert made.stopped == "context full"


def test_asked_for_just_what_fits(micro):
    room = micro.spec.n_ctx - len(PROMPT)
    assert generate(micro, PROMPT, room).stopped == "asked"
    assert generate(micro, PROMPT, room + 1).stopped == "context full"


@pytest.mark.parametrize("more", [(), (12,)])
def test_until_an_end_token(micro, more):
    whole = generate(micro, PROMPT, 6, temperature=0).ids
    end = next(i for i in whole if whole.index(i) == 2)
    made = generate(replace(micro, end_ids=(end, *more)), PROMPT, 6, temperature=0)
    assert made.ids == whole[:3]
    assert made.stopped == "end token"


def test_an_end_token_counts_more_than_the_other_reasons(micro):
    first = generate(micro, PROMPT, 1, temperature=0).ids
    assert generate(replace(micro, end_ids=first), PROMPT, 1, temperature=0).stopped == "end token"


def test_an_end_token_in_the_prompt_ends_nothing(micro):
    assert len(generate(replace(micro, end_ids=(3,)), (3, 3), 1).ids) == 1


def test_a_model_without_a_mask_is_run_anew_for_each_token():
    masked = gptscope.load(GOLDEN / "gpt2")
    model = replace(masked, spec=replace(masked.spec, causal=False))
    assert generate(model, (1, 2, 3), 8, temperature=0).ids == greedy(model, (1, 2, 3), 8)


@pytest.mark.parametrize(
    ("ended", "last", "full", "expected"),
    [
        (True, True, True, "end token"),
        (False, True, True, "asked"),
        (False, False, True, "context full"),
        (False, False, False, None),
    ],
)
def test_reasons(ended, last, full, expected):
    assert why(ended=ended, last=last, full=full) == expected


# The prompt


@pytest.mark.parametrize("ids", [(), [], iter([])])
def test_without_ids_it_begins_at_bos(micro, ids):
    made = generate(replace(micro, bos_id=7), ids, 2, temperature=0)
    assert made.prompt == (7,)
    assert made.ids == greedy(micro, [7], 2)


def test_bos_may_be_zero(micro):
    assert prompt_ids(replace(micro, bos_id=0), ()) == (0,)


def test_without_ids_and_bos_there_is_nothing_to_begin_with(micro):
    with pytest.raises(UsageError, match="this model has no BOS token to begin with"):
        generate(replace(micro, bos_id=None))


def test_bos_is_not_put_before_ids(micro):
    assert prompt_ids(replace(micro, bos_id=7), iter(PROMPT)) == PROMPT
    assert prompt_ids(replace(micro, bos_id=7), np.array(PROMPT)) == PROMPT


def test_a_prompt_that_fills_the_context_is_refused(micro):
    assert len(generate(micro, [1] * 11, 5).ids) == 1
    with pytest.raises(UsageError, match="the text fills all 12 places that this model has"):
        generate(micro, [1] * 12)
    with pytest.raises(UsageError, match="13 tokens long, and this model reads 12 at most"):
        generate(micro, [1] * 13)


@pytest.mark.parametrize("wrong", [-1, 13])
def test_an_id_outside_the_vocabulary_is_refused(micro, wrong):
    with pytest.raises(UsageError, match=f"token id {wrong} is outside the vocabulary"):
        generate(micro, [1, wrong])
    with pytest.raises(UsageError, match=f"token id {wrong} is outside the vocabulary"):
        generate(replace(micro, bos_id=wrong))


# Settings


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"max_new_tokens": 0}, "max-new-tokens 0 must be 1 or more"),
        ({"max_new_tokens": -3}, "max-new-tokens -3 must be 1 or more"),
        ({"temperature": -1}, "temperature -1 must be 0"),
        ({"top_k": 0}, "top-k 0 must be 1 or more"),
        ({"top_p": 2}, "top-p 2 must be above 0"),
    ],
)
def test_settings_out_of_range_are_refused(micro, settings, reason):
    with pytest.raises(UsageError, match=reason):
        generate(micro, PROMPT, **settings)


def test_seeds(micro):
    one, again, other = (generate(micro, PROMPT, 9, seed=s, temperature=2) for s in (1, 1, 2))
    assert one == again
    assert one.ids != other.ids


def test_the_seed_is_zero_unless_given(micro):
    assert generate(micro, PROMPT, 9) == generate(micro, PROMPT, 9, seed=0)


@pytest.mark.parametrize("how", [{"top_k": 1}, {"top_k": None, "top_p": 1e-9}, {"temperature": 0}])
def test_settings_that_leave_one_token_are_greedy(micro, how):
    assert generate(micro, PROMPT, 6, **how).ids == greedy(micro, PROMPT, 6)


# The steps


def test_steps_come_one_by_one(micro):
    steps = draws(micro, PROMPT, 5, Sampling(0.8, 40), 3)
    first = next(steps)
    assert first.stopped is None
    assert (first, *steps) == generate(micro, PROMPT, 5, seed=3).draws


def test_a_step_tells_its_probability_and_what_could_have_come(micro):
    how = {"temperature": 0.7, "top_k": 8, "top_p": 0.95}
    made = generate(micro, PROMPT, 6, **how)
    ids = list(PROMPT)
    for draw in made.draws:
        p = gptscope.probabilities(gptscope.trace(micro, ids).logits[-1], **how)
        assert draw.probability == pytest.approx(p[draw.id], abs=1e-5)
        assert draw.probability > 0
        shares = [share for _, share in draw.candidates]
        assert len(draw.candidates) == min(CANDIDATES, np.count_nonzero(p))
        assert shares == sorted(shares, reverse=True)
        assert shares == pytest.approx(np.sort(p)[::-1][: len(shares)], abs=1e-5)
        ids.append(draw.id)


def test_candidates_are_only_what_can_be_drawn(micro):
    draw = generate(micro, PROMPT, 1, temperature=0).draws[0]
    assert draw.candidates == ((draw.id, 1.0),)
    assert draw.probability == 1


def test_plain_numbers_come_out(micro):
    draw = generate(micro, PROMPT, 1).draws[0]
    assert type(draw.id) is int
    assert type(draw.probability) is float
    assert {type(x) for pair in draw.candidates for x in pair} == {int, float}


def test_a_model_of_nan_is_told(micro):
    broken = replace(micro, token_table=micro.token_table * np.nan)
    with pytest.raises(gptscope.ModelError, match="the logits hold NaN or infinity"):
        generate(broken, PROMPT)


def test_generation_in_float64():
    model = gptscope.load(GOLDEN / "gpt2", dtype="float64")
    assert generate(model, PROMPT, 9, temperature=0).ids == greedy(model, PROMPT, 9)
