import numpy as np
import pytest
from numpy.testing import assert_allclose

from gptscope.glyphs import token_glyphs
from tests.helpers.cli import SENTENCE, column, parts

AHEAD = np.triu(np.ones((6, 6), bool), 1)


def values(grid):
    return np.array(grid["values"], float)  # null becomes NaN


@pytest.mark.parametrize("layer", [0, 3])
def test_all_heads_are_shown_where_none_is_named(trace, labels, layer):
    shown = parts("attention", SENTENCE, "--layer", str(layer))
    assert [part["kind"] for part in shown] == ["grid", "note"] * 4
    for head, grid in enumerate(shown[::2]):
        assert grid["title"].startswith(f"Layer {layer}, head {head}: weights")
        assert grid["rows"] == grid["columns"] == labels
        weights = trace.layers[layer].heads[head].weights
        assert_allclose(np.nan_to_num(values(grid)), weights, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("head", [0, 1, 2, 3])
def test_weights_of_a_row_sum_to_one_and_the_future_is_hidden(head):
    grid, _ = parts("attention", SENTENCE, "--layer", "1", "--head", str(head))
    assert_allclose(np.nansum(values(grid), axis=1), np.ones(6), rtol=1e-6)
    assert [[cell is None for cell in row] for row in grid["values"]] == AHEAD.tolist()


@pytest.mark.parametrize(("layer", "head"), [("-1", "-1"), ("3", "3")])
def test_counting_from_the_end(layer, head):
    grid, _ = parts("attention", SENTENCE, "-l", layer, "-H", head)
    assert grid["title"].startswith("Layer 3, head 3: ")


@pytest.mark.parametrize("stage", ["scores", "scaled", "weights"])
def test_stage_is_that_of_the_trace(trace, stage):
    grid, _ = parts("attention", SENTENCE, "--layer", "2", "--head", "1", "--stage", stage)
    head = trace.layers[2].heads[1]
    kept = {"scores": head.scores, "scaled": head.scaled_masked, "weights": head.weights}[stage]
    hidden = AHEAD & (stage != "scores")  # raw scores are there for later tokens, too
    assert np.array_equal(np.isnan(values(grid)), hidden)
    assert_allclose(values(grid)[~hidden], kept[~hidden], rtol=1e-4, atol=1e-5)
    assert f": {stage}, " in grid["title"]


@pytest.mark.parametrize("stage", ["scores", "weights"])
@pytest.mark.parametrize("where", [(0, 0), (1, 2), (3, 1)])
def test_the_sentence_names_where_the_last_token_looks_most(trace, labels, where, stage):
    layer, head = map(str, where)
    _, note = parts("attention", SENTENCE, "-l", layer, "-H", head, "--stage", stage)
    weights = trace.layers[where[0]].heads[where[1]].weights[-1]
    most = [f"{token_glyphs(labels[i])} {weights[i]:.2f}" for i in np.argsort(-weights)[:3]]
    assert note["text"] == f"The last token \u00b7her looks most at {', '.join(most)}"


def test_the_sentence_of_a_single_token():
    _, note = parts("attention", "Lily", "--head", "0")
    assert note["text"] == "The last token Lily looks most at Lily 1.00"


@pytest.mark.parametrize(("token", "at"), [("0", 0), ("3", 3), ("-1", 5)])
def test_token_shows_all_stages_of_one_row(trace, labels, token, at):
    (table,) = parts("attention", SENTENCE, "-l", "1", "-H", "2", "--token", token)
    head = trace.layers[1].heads[2]
    assert column(table, "token") == labels[: at + 1]
    seen = slice(at + 1)
    for name, kept in (
        ("score", head.scores),
        ("scaled", head.scaled_masked),
        ("weight", head.weights),
    ):
        assert_allclose(column(table, name), kept[at, seen], rtol=1e-4, atol=1e-5)
    assert_allclose(sum(column(table, "weight")), 1, rtol=1e-6)


def test_token_without_head_shows_every_head():
    titles = [part["title"] for part in parts("attention", SENTENCE, "--token", "1")]
    assert titles == [f"Layer 0, head {h}: what token 1 \u00b7wanted reads" for h in range(4)]


def test_scaled_is_score_over_the_root_of_the_head_width():
    (table,) = parts("attention", SENTENCE, "--token", "5", "--head", "0")
    ratio = np.divide(column(table, "score"), column(table, "scaled"))
    assert_allclose(ratio, np.full(6, 32**0.5), rtol=1e-4)
