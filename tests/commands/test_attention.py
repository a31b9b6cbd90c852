import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gptscope.commands.attention import APART
from gptscope.commands.attention_built import sight
from gptscope.commands.attention_look import Look, window_of
from gptscope.commands.attention_parts import row
from gptscope.commands.session import Run
from gptscope.glyphs import token_glyphs
from tests.helpers.cli import SENTENCE, column, parts, refused, run_cli
from tests.helpers.families import family_folder
from tests.helpers.folders import GOLDEN, tensors_of

AHEAD = np.triu(np.ones((6, 6), bool), 1)
LONG = " ".join([SENTENCE] * 6)  # 36 tokens


def broken_parts(*args):
    """The parts of the answer of a model that is warned of."""
    result = run_cli(["attention", "--format", "json", *args])
    assert result.status == 0
    return json.loads(result.out)["parts"]


def values(grid):
    return np.array(grid["values"], float)  # null becomes NaN


@pytest.mark.parametrize("layer", [0, 3])
def test_a_layer_is_a_sheet_of_all_heads(trace, labels, layer):
    sheet, table, _ = parts("attention", SENTENCE, "--layer", str(layer))
    assert sheet["title"].startswith(f"Layer {layer}: weights")
    assert sheet["columns"] == 4
    assert [grid["title"] for grid in sheet["grids"]] == [f"head {h}" for h in range(4)]
    for head, grid in enumerate(sheet["grids"]):
        assert grid["rows"] == grid["columns"] == labels
        weights = trace.layers[layer].heads[head].weights
        assert_allclose(np.nan_to_num(values(grid)), weights, rtol=1e-5, atol=1e-7)
        at = int(weights[-1].argmax())
        assert table["rows"][head]["position"] == at
        assert table["rows"][head]["token"] == labels[at]
        assert_allclose(table["rows"][head]["weight"], weights[-1].max(), rtol=1e-6)


@pytest.mark.parametrize("stage", ["scores", "weights"])
def test_all_is_a_sheet_of_every_layer_and_head(trace, stage):
    sheet, _ = parts("attention", SENTENCE, "--all", "--stage", stage)
    names = [f"{layer}.{head}" for layer in range(4) for head in range(4)]
    assert [grid["title"] for grid in sheet["grids"]] == names
    for grid in sheet["grids"]:
        layer, head = map(int, grid["title"].split("."))
        kept = trace[f"layers.{layer}.heads.{head}.{stage}"]
        assert_allclose(values(grid)[~AHEAD], kept[~AHEAD], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("layer", [0, 3])
def test_numbers_shows_all_heads_with_their_numbers(trace, labels, layer):
    shown = parts("attention", SENTENCE, "--layer", str(layer), "--numbers")
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
    window = window_of(run, (None, None, None))
    table = row(Look(run, run.trace(), window), (0, 0), 1)
    assert [position for position, *_ in table.rows] == read
    assert_allclose(sum(weight for *_, weight in table.rows), 1, rtol=1e-6)


def test_what_is_no_number_is_not_taken_for_hidden(folder):
    bias = np.zeros(tensors_of("gpt2")["transformer.h.0.attn.c_attn.bias"].shape, "float32")
    bias[0] = np.nan
    broken = folder(tensors={"transformer.h.0.attn.c_attn.bias": bias})
    grid, note = broken_parts("--ids", "1,2", "--head", "0", "--model", str(broken))
    assert grid["values"] == [["NaN", None], ["NaN", "NaN"]]
    assert note["text"] == "What the last token <id 2> reads is not a number"


@pytest.mark.parametrize("options", [["--head", "1"], ["--numbers"], [], ["--all"]])
def test_without_the_first_token_rows_sum_to_one_again(options):
    for part in parts("attention", SENTENCE, "--no-first", *options):
        for grid in part.get("grids", [part] if part["kind"] == "grid" else []):
            assert [row[0] for row in grid["values"]] == [None] * 6
            assert grid["values"][0] == [None] * 6
            assert_allclose(np.nansum(values(grid)[1:], axis=1), np.ones(5), rtol=1e-6)


def test_a_sentence_says_what_the_first_token_took(trace):
    *_, note = parts("attention", SENTENCE, "--head", "1", "--no-first")
    took = trace.layers[0].heads[1].weights[1:, 0].mean()
    assert note["text"].startswith(f"The first token Lily is hidden: it took {took:.2f} of a row")
    assert note["text"].endswith("Row 0 reads nothing else")


def test_a_model_without_a_mask_reads_something_besides_the_first_token():
    args = ["--model", "toy-unmasked", "the cat eats", "--head", "0", "--no-first"]
    grid, _, note = parts("attention", *args)
    assert_allclose(np.nansum(values(grid), axis=1), np.ones(3), rtol=1e-6)
    assert "Row 0" not in note["text"]


@pytest.mark.parametrize("option", [["--token", "0"], ["--sum", "0"]])
def test_without_itself_the_first_token_reads_nothing(option):
    table, note = parts("attention", SENTENCE, "--head", "0", "--no-first", *option)
    assert table["rows"] == []
    assert note["text"] == "The first token Lily is hidden. Row 0 reads nothing else"
    assert run_cli(["attention", SENTENCE, "--no-first", *option]).status == 0


def test_the_first_row_alone_without_the_first_token():
    grid, note, *_ = parts("attention", SENTENCE, "--head", "0", "--no-first", "--rows", "0")
    assert grid["values"] == [[None]]
    assert note["text"] == "Token 0 Lily looks most at the first token, and nothing else"
    _, table, *_ = parts("attention", SENTENCE, "--no-first", "--rows", "0")
    assert column(table, "weight") == [None] * 4


def test_log_is_powers_of_ten_above_a_millionth(trace):
    grid, _, note = parts("attention", SENTENCE, "-l", "2", "-H", "0", "--scale", "log")
    weights = trace.layers[2].heads[0].weights[~AHEAD]
    assert_allclose(10 ** values(grid)[~AHEAD] / 1e6, np.maximum(weights, 1e-6), rtol=1e-4)
    assert note["text"].startswith("6 is a weight of 1, 5 is 0.1")


@pytest.mark.parametrize("first", [[], ["--no-first"]])
def test_rank_is_the_order_within_a_row(first):
    args = ["attention", SENTENCE, "-l", "2", "-H", "1", *first]
    grid, ranked = parts(*args)[0], parts(*args, "--scale", "rank")[0]
    for pair in zip(values(grid), values(ranked), strict=True):
        weights, shares = (x[~np.isnan(x)] for x in pair)
        n = len(weights)
        assert_allclose(np.sort(shares), np.arange(1, n + 1) / max(n, 1))
        assert (np.argsort(weights) == np.argsort(shares)).all()


@pytest.mark.parametrize(("asked", "rows"), [("3,5", [3, 5]), ("-1", [5]), ("0:2,4", [0, 1, 4])])
def test_sum_adds_rows(trace, labels, asked, rows):
    (table,) = parts("attention", SENTENCE, "-l", "1", "-H", "2", "--sum", asked)
    total = trace.layers[1].heads[2].weights[rows].sum(0)[: rows[-1] + 1]
    assert column(table, "token") == labels[: rows[-1] + 1]
    assert_allclose(column(table, "sum"), total, rtol=1e-5)
    assert_allclose(sum(column(table, "mean")), 1, rtol=1e-5)
    names = " + ".join(f"{i} {token_glyphs(labels[i])}" for i in rows)
    assert table["title"] == f"Layer 1, head 2: what {names} read, added"


def test_the_mean_is_that_of_the_rows_that_read():
    args = ["attention", SENTENCE, "--head", "0", "--no-first", "--sum"]
    (two, _), (one, _) = parts(*args, "0,5"), parts(*args, "5")
    assert column(two, "mean") == column(one, "mean")


def test_top_as_data_is_a_row_for_each_that_is_read(trace, labels):
    (table,) = parts("attention", SENTENCE, "-l", "2", "-H", "1", "--top", "3")
    weights = trace.layers[2].heads[1].weights
    for at in range(6):
        read = [line for line in table["rows"] if line["position"] == at]
        most = list(np.argsort(-weights[at, : at + 1])[:3])
        assert [line["rank"] for line in read] == [1, 2, 3][: at + 1]
        assert [line["reads position"] for line in read] == most
        assert [line["reads token"] for line in read] == [labels[i] for i in most]
        assert_allclose([line["weight"] for line in read], weights[at, most], rtol=1e-5)


def test_top_on_a_terminal_is_in_words():
    args = ["attention", SENTENCE, "-l", "2", "-H", "1", "--top", "2"]
    shown = run_cli(args).text
    assert "5   \u00b7her      3 \u00b7play 0.67, 5 \u00b7her 0.09\n" in shown
    assert "0   Lily      nothing\n" in run_cli([*args, "--no-first"]).text
    assert "1 \u00b7wanted" not in run_cli([*args, "--cols", "3:", "--token", "5"]).text


def test_top_of_one_token():
    tables = parts("attention", SENTENCE, "--top", "2", "--token", "3")
    assert [column(table, "position") for table in tables] == [[3, 3]] * 4


@pytest.mark.parametrize(
    ("window", "rows", "columns"),
    [
        (["--rows", "1:3"], [1, 2], [0, 1, 2]),
        (["--rows", "-1,0"], [5, 0], [0, 1, 2, 3, 4, 5]),
        (["--cols", "2,4"], [0, 1, 2, 3, 4, 5], [2, 4]),
        (["--rows", "2:", "--cols", ":-1"], [2, 3, 4, 5], [0, 1, 2, 3, 4]),
        (["--last", "2"], [4, 5], [4, 5]),
    ],
)
@pytest.mark.parametrize("options", [["--head", "2"], [], ["--all"]])
def test_a_window_is_a_part_of_the_whole(labels, window, rows, columns, options):
    def grids(*more):
        found = parts("attention", SENTENCE, *options, *more)
        return found[0].get("grids", [found[0]]), found

    (whole, _), (cut, found) = grids(), grids(*window)
    for one, other in zip(whole, cut, strict=True):
        assert (other["row_positions"], other["column_positions"]) == (list(rows), list(columns))
        assert other["rows"] == [labels[i] for i in rows]
        assert other["columns"] == [labels[i] for i in columns]
        assert_allclose(values(other), values(one)[np.ix_(rows, columns)])
    (note,) = (p for p in found if p.get("text", "").startswith("This is a window: "))
    outside = 1 - np.mean([np.nansum(values(grid), axis=1) for grid in cut])
    assert (f"; {outside:.2f} of what a row reads is outside" in note["text"]) == (outside > 0.005)


def test_the_whole_asked_for_is_no_window():
    asked = parts("attention", SENTENCE, "--head", "0", "--rows", ":", "--cols", ":")
    assert asked == parts("attention", SENTENCE, "--head", "0")
    assert asked == parts("attention", SENTENCE, "--head", "0", "--last", "100")


@pytest.mark.parametrize(
    ("options", "columns"),
    [(["--head", "0"], "4 to 35"), (["--numbers"], "4 to 35"), (["--top", "1"], "0 to 35")],
)
def test_the_end_of_a_long_text_is_shown_and_nothing_is_missing_from_data(options, columns):
    said = " ".join(run_cli(["attention", LONG, *options], terminal=True).text.split())
    assert "This is a window" not in run_cli(["attention", LONG, *options]).text  # a pipe
    assert f"This is a window: rows 4 to 35 and columns {columns} of the tokens 0 to 35" in said
    assert "--rows : --cols : shows all" in said
    every = ["--rows", ":", "--cols", ":"]
    assert "window" not in run_cli(["attention", LONG, *options, *every], terminal=True).text
    assert parts("attention", LONG, *options) == parts("attention", LONG, *options, *every)
    assert "window" not in str(parts("attention", LONG, *options))


@pytest.mark.parametrize("options", [[], ["--all"]])
def test_small_grids_hold_more_of_a_text(options):
    assert "window" not in run_cli(["attention", LONG, *options]).text


@pytest.mark.parametrize(("most", "start"), [(None, 0), (300, 0), (128, 72), (1, 199)])
def test_the_window_that_nobody_asked_for(micro, most, start):
    window = window_of(Run(micro, (1,) * 200, None), (None, None, None), most)
    assert [*window.rows] == [*window.columns] == [*range(start, 200)]
    assert (window.whole, window.asked) == (start == 0, False)


def test_lists_of_a_long_text_are_whole():
    for options in (["--token", "-1"], ["--sum", "3,5"]):
        assert "window" not in run_cli(["attention", LONG, *options]).text


@pytest.mark.parametrize(
    "options", [[], ["--all"], ["--top", "2"], ["--sum", "0"], ["--last", "1"]]
)
@pytest.mark.parametrize(
    "model",
    [["Lily"], ["--ids", "3", "-m", str(GOLDEN / "toy-post")], ["the", "-m", "toy-unmasked"]],
)
def test_one_token_is_enough(model, options):
    assert parts("attention", *model, *options)
    assert run_cli(["attention", *model, *options]).status == 0


def test_a_broken_row_has_no_order(folder):
    bias = np.zeros(tensors_of("gpt2")["transformer.h.0.attn.c_attn.bias"].shape, "float32")
    bias[0] = np.nan
    broken = folder(tensors={"transformer.h.0.attn.c_attn.bias": bias})
    args = ["--ids", "1,2", "--model", str(broken)]
    assert "not a number" in run_cli(["attention", *args, "--head", "0", "--top", "1"]).text
    assert "nan" in run_cli(["attention", *args]).text
    for scale in ("log", "rank"):
        grid, *_ = broken_parts(*args, "--head", "0", "--scale", scale)
        assert grid["values"] == [["NaN", None], ["NaN", "NaN"]]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rows", "6"], "token 6 is out of range: this one has tokens 0 to 5"),
        (["--sum", "3,-7"], "token -7 is out of range: this one has tokens 0 to 5"),
        (["--cols", "a"], "--cols takes 0:10 or 3,4,9, not 'a'"),
        (["--rows", "1:2:3"], "--rows takes 0:10 or 3,4,9, not '1:2:3'"),
        (["--sum", ""], "--sum takes 0:10 or 3,4,9, not ''"),
        (["--rows", "5:2"], "--rows 5:2 names no token: they go from 0 to 5"),
    ],
)
def test_what_is_out_of_range_is_refused(options, said):
    assert refused(run_cli(["attention", SENTENCE, *options]), 2)[0] == said


def test_the_only_token_cannot_be_hidden():
    said, _ = refused(run_cli(["attention", "Lily", "--no-first"]), 2)
    assert said == "there is only one token: without it, nothing is left to read"


VALUES = {"--stage": "scores", "--scale": "log", "--sum": "1", "--rows": "0:2", "--cols": "0:2"}
FLAGS = ("--all", "--numbers", "--no-first")


@pytest.mark.parametrize(("one", "other"), APART)
def test_an_option_that_would_be_ignored_is_refused(one, other):
    given = [word for name in (one, other) for word in (name, VALUES.get(name, "1"))]
    given = [word for i, word in enumerate(given) if i % 2 == 0 or given[i - 1] not in FLAGS]
    said, hint = refused(run_cli(["attention", SENTENCE, *given]), 2)
    assert said == f"{one} and {other} do not go together"
    assert hint == APART[one, other]


@pytest.mark.parametrize(
    ("fmt", "shown"), [("markdown", "| 4 `\u00b7with`"), ("html", ">4</small>")]
)
def test_pages_number_the_tokens_of_a_window_as_they_stand(fmt, shown):
    text = run_cli(["attention", SENTENCE, "--head", "0", "--last", "2", "-f", fmt]).text
    assert shown in text.replace("&#183;", "\u00b7")
    assert {"markdown": "| 0 `\u00b7with`", "html": ">0</small>"}[fmt] not in text


# What is said of heads


def said_of(case, *args):
    found = parts("attention", "--ids", "1,2,3,4", "--model", family_folder(case), *args)
    return [part["text"] for part in found if part["kind"] == "note"]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        ("llama-grouped", "Heads 0-2 share key-value head 0, 3-5 head 1"),
        ("llama-one-group", "All heads share one list of keys and values"),
        ("gemma2", "In layer 0 a token sees itself and the 15 before it"),
        ("gemma2", "Scores are multiplied by 0.378, not by 1 / sqrt(10) = 0.3162"),
        ("gemma2", "Scaled scores are capped softly, 3 tanh(score / 3)"),
        ("qwen3", "Queries and keys are normed before their product"),
        ("bloom", "for every token of distance (ALiBi): head 0 0.25, head 1 0.0625"),
    ],
)
def test_notes_say_what_heads_have(case, words):
    assert any(words in text for text in said_of(case))


def test_notes_are_those_of_the_heads_that_are_shown():
    assert "Heads 3-5 share key-value head 1" in said_of("llama-grouped", "--head", "4")
    said = said_of("bloom", "--head", "2")
    assert any(text.endswith("(ALiBi): head 2 0.01562") for text in said)
    assert not any("a token sees" in text for text in said_of("gemma2", "--layer", "1"))


def test_what_the_paper_has_needs_no_words():
    assert all("keys" not in text for text in said_of("gptj"))


def test_what_lies_outside_a_window_is_hidden():
    ids = ",".join(["3"] * 20)
    args = ["--ids", ids, "--model", family_folder("mistral"), "--head", "0"]
    grid, *_ = parts("attention", *args)
    assert grid["values"][18][:4] == [None] * 3 + [pytest.approx(grid["values"][18][3])]
    assert grid["values"][18][3] is not None
    assert grid["values"][18][19] is None


@pytest.mark.parametrize(
    ("window", "words"),
    [(1, "itself alone"), (2, "itself and the one before"), (9, "itself and the 8 before it")],
)
def test_how_far_a_token_sees(window, words):
    assert sight(window) == words
