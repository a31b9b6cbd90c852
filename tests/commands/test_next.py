import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from tests.helpers.cli import SENTENCE, column, parts

PLAIN = ["rank", "id", "token", "logit", "probability"]


def names(table):
    return [column["name"] for column in table["columns"]]


@pytest.mark.parametrize(("at", "position"), [([], 5), (["--at", "0"], 0), (["--at", "-2"], 4)])
def test_the_likeliest_tokens(tiny, trace, at, position):
    table, facts = parts("next", SENTENCE, *at)
    p = gptscope.probabilities(trace.logits[position])
    ids = np.argsort(-p, kind="stable")[:10]
    assert names(table) == PLAIN
    assert column(table, "rank") == list(range(1, 11))
    assert column(table, "id") == ids.tolist()
    assert column(table, "token") == [tiny.tokenizer.text_of(i) for i in ids]
    assert_allclose(column(table, "logit"), trace.logits[position, ids], rtol=1e-5)
    assert_allclose(column(table, "probability"), p[ids], rtol=1e-5)
    assert list(facts["facts"]) == ["tokens not shown", "their probability"]
    assert facts["facts"]["tokens not shown"] == 4086
    assert_allclose(facts["facts"]["their probability"], 1 - p[ids].sum(), rtol=1e-4)


@pytest.mark.parametrize("top", [1, 25, 5000])
def test_shown_and_not_shown_are_the_whole_vocabulary(top):
    table, facts = parts("next", SENTENCE, "--top", str(top))
    rest = facts["facts"]
    assert len(table["rows"]) + rest["tokens not shown"] == 4096
    assert_allclose(sum(column(table, "probability")) + rest["their probability"], 1, rtol=1e-9)


@pytest.mark.parametrize(
    ("options", "settings", "told"),
    [
        (["--temperature", "0.7"], {"temperature": 0.7}, "(temperature 0.7)"),
        (["--temperature", "0"], {"temperature": 0.0}, "(temperature 0)"),
        (["--top-k", "3"], {"top_k": 3}, "(top-k 3)"),
        (["--top-p", "0.5"], {"top_p": 0.5}, "(top-p 0.5)"),
        (
            ["--temperature", "2", "--top-k", "20", "--top-p", "0.9"],
            {"temperature": 2.0, "top_k": 20, "top_p": 0.9},
            "(temperature 2, top-k 20, top-p 0.9)",
        ),
    ],
)
def test_settings_add_the_column_that_a_draw_uses(trace, options, settings, told):
    table, facts = parts("next", SENTENCE, *options)
    p = gptscope.probabilities(trace.logits[-1], **settings)
    assert names(table) == [*PLAIN, "drawn with"]
    assert table["title"] == f"After token 5 \u00b7her {told}"
    shown, drawn = column(table, "id"), column(table, "drawn with")
    assert_allclose(drawn, p[shown], rtol=1e-5)
    assert [value == 0.0 for value in drawn] == (p[shown] == 0).tolist()
    told = ["tokens not shown", "their probability", "their drawn with", "tokens that can be drawn"]
    assert list(facts["facts"]) == told
    softmax = gptscope.probabilities(trace.logits[-1])
    rest = facts["facts"]
    assert_allclose(column(table, "probability"), softmax[shown], rtol=1e-5)
    assert_allclose(rest["their probability"], np.delete(softmax, shown).sum(), rtol=1e-4)
    assert_allclose(rest["their drawn with"], np.delete(p, shown).sum(), rtol=1e-4)
    assert rest["tokens that can be drawn"] == np.count_nonzero(p)
    plain, _ = parts("next", SENTENCE)
    assert [row[:5] for row in map(list, map(dict.values, table["rows"]))] == [
        list(row.values()) for row in plain["rows"]
    ]


def test_after_every_token(tiny, trace, ids, labels):
    (table,) = parts("next", SENTENCE, "--at", "all")
    p = np.stack([gptscope.probabilities(row) for row in trace.logits])
    assert column(table, "token") == labels
    assert column(table, "best guess") == [tiny.tokenizer.text_of(i) for i in p.argmax(axis=1)]
    assert_allclose(column(table, "probability"), p.max(axis=1), rtol=1e-5)
    assert column(table, "what came") == [*labels[1:], None]
    came = p[np.arange(5), ids[1:]]
    assert_allclose(column(table, "its probability")[:-1], came, rtol=1e-5)
    ranks = (p[:-1] > came[:, None]).sum(axis=1) + 1
    assert column(table, "its rank") == [*ranks.tolist(), None]


def test_after_every_token_with_settings(trace, ids):
    (table,) = parts("next", SENTENCE, "--at", "all", "--temperature", "0.5")
    p = np.stack([gptscope.probabilities(row, 0.5) for row in trace.logits])
    assert_allclose(column(table, "drawn with"), p.max(axis=1), rtol=1e-5)
    came = p[np.arange(5), ids[1:]]
    assert_allclose(column(table, "its drawn with")[:-1], came, rtol=1e-5)
    assert column(table, "its drawn with")[-1] is None
    assert not {"probability", "its probability"} & set(names(table))
    assert table["title"] == "After every token (temperature 0.5)"
