from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gptscope.commands.attention import row
from gptscope.commands.session import Run
from gptscope.glyphs import token_glyphs
from tests.helpers.cli import SENTENCE, column, parts
from tests.helpers.folders import tensors_of

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
    assert [[cell is None for cell in row] for row in grid["values"]] == AHEAD.tolist()
    assert_allclose(values(grid)[~AHEAD], kept[~AHEAD], rtol=1e-4, atol=1e-5)
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


@pytest.mark.parametrize(("causal", "read"), [(True, [0, 1]), (False, [0, 1, 2, 3, 4, 5])])
def test_token_shows_the_rows_that_are_not_masked(tiny, ids, causal, read):
    model = replace(tiny, spec=replace(tiny.spec, causal=causal))
    run = Run(model, tuple(ids), SENTENCE)
    table = row(run.trace(), run, (0, 0), 1)
    assert [position for position, *_ in table.rows] == read
    assert_allclose(sum(weight for *_, weight in table.rows), 1, rtol=1e-6)


def test_what_is_no_number_is_not_taken_for_hidden(folder):
    bias = np.zeros(tensors_of("gpt2")["transformer.h.0.attn.c_attn.bias"].shape, "float32")
    bias[0] = np.nan
    broken = folder(tensors={"transformer.h.0.attn.c_attn.bias": bias})
    args = ["attention", "--ids", "1,2", "--head", "0", "--model", str(broken)]
    grid, note = parts(*args)
    assert grid["values"] == [["NaN", None], ["NaN", "NaN"]]
    assert note["text"] == "What the last token <id 2> reads is not a number"
