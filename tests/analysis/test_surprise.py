import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import gptscope
from gptscope.analysis import surprise as module
from gptscope.analysis.surprise import (
    Window,
    losses,
    of_rows,
    surprise,
    turned_by_length,
    usual_overlap,
    windows,
)
from gptscope.analysis.surprise_pair import paired
from gptscope.engine.edits import Edits
from gptscope.engine.forward import forward
from gptscope.engine.step import untouched
from gptscope.errors import UsageError
from gptscope.tokens import Tokenizer, in_pieces
from gptscope.tokens import ends as ends_of
from tests.helpers import made_tokenizers as made_up
from tests.helpers.families import family_folder
from tests.helpers.micro import micro_model, models_and_ids, sizes
from tests.helpers.variants import WIRED, changed

IDS = [3, 1, 4, 1, 5, 9, 2, 6]


def log_softmax(logits):
    z = logits.astype(np.float64)
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def whole(model, ids, **more):
    return surprise(model, ids, windows(len(ids), 0, len(ids), 0), **more)


# One pass


@given(models_and_ids(min_size=2))
def test_one_window_is_the_plain_pass(drawn):
    model, ids = drawn
    made = whole(model, ids)
    logits = forward(model, np.array(ids))[:-1]
    told, came = log_softmax(logits), ids[1:]
    assert_array_equal(made.at, np.arange(1, len(ids)), strict=True)
    expected = -told[np.arange(len(came)), came]
    assert_allclose(made.nats, expected, atol=1e-6, rtol=1e-6, strict=True)
    assert_allclose(made.entropy, -(np.exp(told) * told).sum(1), atol=1e-6, rtol=1e-6, strict=True)
    assert_allclose(made.best_nats, -told.max(axis=1), atol=1e-6, rtol=1e-6, strict=True)
    assert_array_equal(made.best, logits.argmax(axis=1), strict=True)
    order = np.argsort(-logits, axis=1, kind="stable")
    ranks = [int(np.flatnonzero(row == i)[0]) + 1 for row, i in zip(order, came, strict=True)]
    assert made.rank.tolist() == ranks


@pytest.mark.parametrize("wiring", WIRED)
def test_the_sums_are_those_of_the_tokens(wiring):
    made = whole(WIRED[wiring](micro_model(dtype="float64")), IDS)
    assert len(made) == len(IDS) - 1
    assert made.total == pytest.approx(made.bits.sum(), rel=1e-12)
    assert made.perplexity == pytest.approx(2 ** made.bits.mean(), rel=1e-12)
    assert made.mean == pytest.approx(made.total * math.log(2) / len(made), rel=1e-12)
    assert_allclose(np.exp2(-made.bits), np.exp(-made.nats), strict=True)


def test_the_losses_are_the_same_numbers(micro):
    assert_array_equal(losses(micro, IDS), whole(micro, IDS).nats, strict=True)


def test_what_is_next_to_impossible_has_its_exact_number():
    logits = np.array([[0.0, -2000.0, -np.inf, 1.0]] * 3, np.float32)
    made = of_rows(logits, np.array([1, 2, 3]), 5)
    log_sum = math.log(1 + math.e)
    assert_allclose(made.nats, [2000 + log_sum, math.inf, log_sum - 1], strict=True)
    p = math.e / (1 + math.e)
    expected = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert_allclose(made.entropy, [expected] * 3, strict=True)
    assert made.rank.tolist() == [3, 4, 1]
    assert made.at.tolist() == [5, 6, 7]


def test_among_equals_the_lower_id_comes_first():
    made = of_rows(np.zeros((4, 4), np.float32), np.arange(4))
    assert made.rank.tolist() == [1, 2, 3, 4]
    assert made.best.tolist() == [0, 0, 0, 0]
    assert_allclose(made.entropy, [math.log(4)] * 4, strict=True)


def test_what_is_no_number_stays_none():
    made = of_rows(np.array([[0.0, np.nan], [0.0, 1.0]]), np.array([0, 0]))
    assert np.isnan(made.nats).tolist() == [True, False]
    assert np.isnan(made.entropy).tolist() == [True, False]
    assert (made.rank.tolist(), made.best.tolist(), made.n_wrong) == ([0, 2], [-1, 1], 1)


@pytest.mark.parametrize("at_once", [1, 26, 40])
def test_slices_of_the_logits_change_nothing(micro, monkeypatch, at_once):
    expected = whole(micro, IDS)
    seen = []
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    monkeypatch.setattr(module, "of_rows", lambda *a: seen.append(len(a[0])) or of_rows(*a))
    made = whole(micro, IDS)
    assert max(seen) == max(1, at_once // 13)
    assert_allclose(made.nats, expected.nats, rtol=1e-6, strict=True)
    assert_array_equal(made.rank, expected.rank, strict=True)
    assert_array_equal(made.at, expected.at, strict=True)


@pytest.mark.parametrize(
    "edit",
    ["layers.1.heads.0.out=zero", "ln_final.out[4]=0", "logits[2,1]=+9", "layers.0.input=mean"],
)
def test_edits_change_the_pass(micro, monkeypatch, edit):
    edits = Edits(micro, [edit])
    monkeypatch.setattr(module, "AT_ONCE", 26)
    made = whole(micro, IDS, hooks=lambda n: edits.hook(n, untouched))
    told = log_softmax(forward(micro, np.array(IDS), edits.hook(len(IDS), untouched)))
    assert_allclose(made.nats, -told[np.arange(7), IDS[1:]], rtol=1e-6, strict=True)
    assert np.abs(made.nats - whole(micro, IDS).nats).max() > 0.01


@pytest.mark.parametrize(
    ("ids", "plan", "what"),
    [
        ([1, 13], [Window(0, 2, 1, 2)], "token id 13 is outside the vocabulary"),
        ([1] * 13, [Window(0, 13, 1, 13)], "this model reads 12 at most"),
    ],
)
def test_what_the_model_cannot_read_is_refused(micro, ids, plan, what):
    with pytest.raises(UsageError, match=what):
        surprise(micro, ids, plan)


# Windows


@st.composite
def plans(draw):
    prefix, size = draw(st.integers(0, 2)), draw(st.integers(3, 9))
    overlap = draw(st.integers(0, size - prefix - 1))
    return draw(st.integers(prefix, 40)), prefix, size, overlap


@given(plans())
def test_every_token_is_rated_once_after_the_overlap_or_all_there_is(plan):
    n, prefix, size, overlap = plan
    found = windows(*plan)
    rated = [t for w in found for t in range(w.first, w.end)]
    assert rated == list(range(max(prefix, 1), n))
    for w in found:
        assert prefix + w.stop - w.start <= size
        assert w.stop >= w.end - 1  # whoever predicts the last one is fed
        assert w.stop <= n
        assert prefix <= w.start
        assert w.first > w.start or prefix  # something stands before it
    for one, other in pairwise(found):
        assert len({*range(one.start, one.stop)} & {*range(other.start, other.stop)}) == overlap
        assert one.end == one.stop + 1  # the token just after it is rated by it
        assert other.first - other.start == overlap + 1
        assert prefix + one.stop - one.start == size  # the last one alone may be shorter


def test_a_text_that_fits_is_one_window():
    assert windows(8, 0, 8, 4) == [Window(0, 8, 1, 8)]
    assert windows(9, 0, 8, 4) == [Window(0, 8, 1, 9)]  # the last token need not be fed
    assert windows(10, 0, 8, 4) == [Window(0, 8, 1, 9), Window(4, 10, 9, 10)]
    assert windows(1, 0, 8, 4) == []


@pytest.mark.parametrize(
    ("overlap", "fed"),
    [
        (0, [(0, 8), (8, 16), (16, 20)]),
        (1, [(0, 8), (7, 15), (14, 20)]),
        (4, [(0, 8), (4, 12), (8, 16), (12, 20)]),
        (7, [(i, i + 8) for i in range(12)]),
    ],
)
def test_windows_share_as_many_tokens_as_they_say(overlap, fed):
    assert [(w.start, w.stop) for w in windows(20, 0, 8, overlap)] == fed
    with_bos = [(1 + a, 1 + b) for a, b in fed]
    assert [(w.start, w.stop) for w in windows(21, 1, 9, overlap)] == with_bos


@given(models_and_ids(min_size=2), plans(), st.data())
def test_each_number_is_that_of_a_pass_over_its_own_window(drawn, plan, data):
    model, _ = drawn
    n, prefix, size, overlap = plan
    assume(model.spec.n_ctx >= size)
    ids = data.draw(st.lists(st.integers(0, model.spec.n_vocab - 1), min_size=n, max_size=n))
    found = windows(n, prefix, size, overlap)
    made = surprise(model, ids, found, prefix)
    nats = dict(zip(made.at.tolist(), made.nats.tolist(), strict=True))
    assert len(nats) == max(0, n - max(prefix, 1))
    for w in found:
        fed = ids[:prefix] + ids[w.start : w.stop]
        told = log_softmax(forward(model, np.array(fed)))
        for t in range(w.first, w.end):
            row = prefix + t - w.start - 1
            assert nats[t] == pytest.approx(-told[row, ids[t]], rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("wiring", WIRED)
def test_the_most_overlap_is_a_pass_for_each_token(wiring):
    model = changed(WIRED[wiring](micro_model(dtype="float64")), n_ctx=5)
    ids = np.random.default_rng(0).integers(0, 13, 20).tolist()
    made = surprise(model, ids, windows(20, 0, 5, 4))
    passes = [forward(model, np.array(ids[max(0, t - 5) : t]))[-1] for t in range(1, 20)]
    expected = -log_softmax(np.stack(passes))[np.arange(19), ids[1:]]
    assert_allclose(made.nats, expected, rtol=1e-9, strict=True)


def test_the_tick_is_told_how_many_were_rated(micro):
    told = []
    surprise(micro, IDS * 5, windows(40, 0, 12, 6), tick=told.append)
    assert sum(told) == 39
    assert len(told) > 3


@pytest.mark.parametrize(
    ("plan", "what"),
    [
        ((9, 2, 2, 0), "a window of 2 tokens is too short: 3 is the least"),
        ((9, 0, 4, 4), "an overlap of 4 tokens cannot be met: windows of 4 can overlap by 0 to 3"),
        ((9, 0, 4, -1), "windows of 4 can overlap by 0 to 3"),
        ((9, 1, 4, 3), "windows of 4 can overlap by 0 to 2"),
    ],
)
def test_windows_that_say_nothing_are_refused(plan, what):
    with pytest.raises(UsageError, match=what):
        windows(*plan)


@pytest.mark.parametrize(
    ("size", "prefix", "half"),
    [(128, 0, 64), (1, 0, 0), (2, 0, 1), (2, 1, 0), (3, 1, 1), (3, 2, 0)],
)
def test_the_usual_overlap_is_half_a_window(size, prefix, half):
    assert usual_overlap(size, prefix) == half
    windows(9, prefix, size, half)


@pytest.mark.parametrize(
    ("at", "what"),
    [(5, "window 4 of 4 has 5 tokens: .* token 5 is out of range"), (7, "window 1 of 4 has 6")],
)
def test_an_edit_that_does_not_fit_a_window_is_refused_before_the_first_pass(micro, at, what):
    edits, run = Edits(micro, [f"layers.0.output[{at}]=zero"]), []
    with pytest.raises(UsageError, match=what) as raised:
        surprise(
            micro,
            [*IDS, *IDS[:6]],
            windows(14, 0, 6, 3),
            hooks=lambda n: edits.hook(n, untouched),
            tick=run.append,
        )
    assert run == []
    assert "whose positions count from 0" in raised.value.hint
    with pytest.raises(UsageError, match=r"^layers\.0\.output\[8\]=zero: token 8 is out of range"):
        whole(
            micro, IDS, hooks=lambda n: Edits(micro, ["layers.0.output[8]=zero"]).hook(n, untouched)
        )


@pytest.mark.parametrize(
    ("case", "n", "expected"),
    [
        ("llama-dynamic", 48, False),
        ("llama-dynamic", 49, True),
        ("phi3-long", 48, False),
        ("phi3-long", 49, True),
        ("llama", 49, False),
        ("gpt2", 49, False),
    ],
)
def test_what_is_turned_by_length_is_known(case, n, expected):
    model = gptscope.load(family_folder(case))
    assert turned_by_length(model, n) == expected
    ids = np.random.default_rng(0).integers(2, 43, n)
    fewer = forward(model, ids[:40])
    assert (np.abs(forward(model, ids)[:40] - fewer).max() > 1e-3) == expected


# Two models


def of_bits(bits, first=0):
    n = len(bits)
    logits = np.zeros((n, 2))
    made = of_rows(logits, np.zeros(n, np.int64), first)
    made.nats[:] = np.array(bits) * math.log(2)
    return made


def test_pieces_end_where_tokens_of_both_end():
    #        0 1 2 | 3 4 | 5          and 0 | 1 2 | 3 4 5, counted in bytes
    ends = np.array([2, 3, 5, 9, 12]), np.array([3, 5, 7, 8, 12])
    pair = paired(ends, (of_bits([1, 2, 4, 8], 1), of_bits([16, 32, 64, 128, 256], 1)), (0, 1))
    # the first token of the first has no number, so its piece [0, 3) is left out
    assert [a.tolist() for a in pair.starts] == [[2, 3], [1, 2]]
    assert [a.tolist() for a in pair.stops] == [[3, 5], [2, 5]]
    assert [b.tolist() for b in pair.bits] == [[2, 12], [32, 448]]
    assert pair.more.tolist() == [30, 436]
    assert (pair.size, pair.single, len(pair)) == (9, 1, 2)
    assert (pair.total(0), pair.total(1)) == (14, 480)
    assert (pair.n_tokens(0), pair.n_tokens(1)) == (3, 4)


@given(models_and_ids(min_size=2))
def test_the_same_model_differs_nowhere(drawn):
    model, ids = drawn
    ends = np.arange(1, len(ids) + 1)
    pair = paired((ends, ends), (whole(model, ids), whole(model, ids)), (0, 0))
    assert len(pair) == pair.single == len(ids) - 1
    assert_array_equal(pair.more, np.zeros(len(pair)), strict=True)
    assert pair.total(0) == pytest.approx(whole(model, ids).total, rel=1e-12)


def test_nothing_in_common_is_no_piece():
    pair = paired((np.array([2]), np.array([3])), (of_bits([1]), of_bits([1])), (0, 0))
    assert (len(pair), pair.total(0), pair.size) == (0, 0.0, 0)


KINDS = {
    "llama": made_up.llama,
    "metaspace": lambda: made_up.llama(metaspace=True),
    "gemma": made_up.gemma,
    "unigram": made_up.unigram,
    "words": made_up.word_level,
    "word pieces": made_up.word_piece,
    "bytes": made_up.byte_level,
    "gpt1": made_up.gpt1,
}
TEXT = "Lily wanted to play with her red ball in the park. One day, Lily and her dog went out "


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("at_once", [1, 3, 50])
def test_where_tokens_end(kind, at_once, monkeypatch):
    monkeypatch.setattr("gptscope.tokens.long.AT_ONCE", at_once)
    tokenizer = Tokenizer(KINDS[kind]())
    told, own = [], tuple(tokenizer.encoded(TEXT).own)
    text = tokenizer.decode(own)  # what comes back to the byte
    ends = ends_of(tokenizer, own, text, told.append)
    assert ends == [token.end for token in tokenizer.tokens(own)]
    assert ends[-1] == len(text.encode())
    assert sum(told) == len(own)


def test_where_tokens_end_in_a_text_that_does_not_come_back():
    tokenizer = Tokenizer(made_up.gpt1())
    text = "Lily WANTED École"
    own = tuple(tokenizer.encoded(text).own)
    assert tokenizer.joined(own) != text.encode()
    ends = ends_of(tokenizer, own, text)
    assert ends == [end for _, end in tokenizer.places(text)]
    assert ends[-1] == len(text.encode())


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_text_in_pieces_has_the_same_ids_whatever_the_tokenizer(kind):
    tokenizer, rng = Tokenizer(KINDS[kind]()), np.random.default_rng(3)
    words = " ".join(made_up.CORPUS).split()
    drawn = rng.integers(0, len(words), 900).tolist()
    text = " ".join(words[i] + " " * (i % 9 == 0) for i in drawn)
    told = []
    assert in_pieces(tokenizer, text, told.append, (700, 350)) == tokenizer.encoded(text)
    assert len(told) > 5  # it was not read at once
    assert sum(told) == len(text)


def test_a_large_vocabulary_is_never_wide_as_a_whole(monkeypatch):
    model = micro_model(sizes(n_vocab=500))
    monkeypatch.setattr(module, "AT_ONCE", 1000)
    seen = []
    monkeypatch.setattr(module, "of_rows", lambda *a: seen.append(a[0].shape) or of_rows(*a))
    whole(model, IDS)
    assert seen == [(2, 500)] * 3 + [(1, 500)]


def test_a_long_text_in_pieces_has_the_same_ids(tiny):
    text = "Lily's caf\u00e9 was red.\n\nThe   dog \u6f22 ran <|endoftext|> away 1234567. " * 90
    told = []
    made = in_pieces(tiny.tokenizer, text, told.append, (1500, 400))
    assert made == tiny.tokenizer.encoded(text)
    assert len(told) > 3
    assert sum(told) == len(text)


def test_pieces_that_never_agree_are_read_at_once(tiny, monkeypatch):
    text, whole = "Lily ran to the red ball. " * 20, []
    expected = tiny.tokenizer.encoded(text)
    plain = tiny.tokenizer.encoded
    monkeypatch.setattr(tiny.tokenizer, "encoded", lambda t: whole.append(t) or plain(t))
    made = in_pieces(tiny.tokenizer, text, sizes=(100, 20))  # too few tokens to agree on
    assert (made, whole) == (expected, [text])
