import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from gptscope.analysis.lens import came_next, lens
from gptscope.commands.lens import APART
from gptscope.commands.lens_words import on_top
from gptscope.glyphs import token_glyphs
from tests.helpers.cli import SENTENCE, asked, column, parts, refused, run_cli
from tests.helpers.families import family_folder
from tests.helpers.folders import GOLDEN, tensors_of

OUTPUTS = ("embeddings", *(f"layers.{i}.output" for i in range(4)))
LONG = " ".join([SENTENCE] * 4)  # 24 tokens
POST_NORM = ["--model", str(GOLDEN / "toy-post"), "--ids", "3,1,4"]
UNTIED = ["--model", str(GOLDEN / "gpt2-variant"), "--ids", "3,1,4"]
PARALLEL = ["--model", family_folder("gptj"), "--ids", "3,1,4"]


@pytest.fixture(scope="module")
def kept(tiny, ids):
    return gptscope.trace(tiny, ids, ("embeddings", "output", "logits"))


@pytest.fixture(scope="module")
def made(tiny, kept):
    return lens(tiny, kept, came_next(kept))


def notes(shown):
    return [part["text"] for part in shown if part["kind"] == "note"]


def values(grid):
    return np.array(grid["values"], float)


# The grid


def test_a_grid_of_states_and_tokens(tiny, made, labels):
    grid, *rest = parts("lens", SENTENCE)
    assert grid["rows"] == list(OUTPUTS)
    assert grid["columns"] == labels
    assert grid["tokens"] == [
        [tiny.tokenizer.text_of(i) for i in row] for row in made.top_ids[..., 0]
    ]
    assert_allclose(values(grid), made.top_probabilities[..., 0], rtol=1e-5)
    assert [part["kind"] for part in rest] == ["table", "note", "note"]
    assert rest[0]["name"] == "asked"
    best = int(made.top_ids[-1, -1, 0])
    assert column(rest[0], "position") == [*range(6)]
    assert column(rest[0], "asked") == [*["came next"] * 5, "likeliest"]
    assert column(rest[0], "id") == [*tiny.tokenizer.encode(SENTENCE)[1:], best]
    assert column(rest[0], "token") == [*labels[1:], tiny.tokenizer.text_of(best)]
    for name in ("logit", "probability", "rank"):
        assert_allclose(column(rest[0], name), getattr(made, name)[-1], rtol=1e-5)


def test_the_answer_is_named_where_it_is_rated():
    table = next(p for p in parts("lens", SENTENCE, "-a", "<id 5>") if p.get("name") == "asked")
    assert [(row["asked"], row["id"]) for row in table["rows"]] == [("answer", 5)] * 6


def test_what_is_asked_has_the_same_columns_everywhere():
    edit, text, rest = ["--edit", "layers.1.heads.0.out=zero"], SENTENCE, ["-a", "<id 5>"]
    calls = ["attribute", text], ["neurons", text], ["sweep", text], ["compare", text, *edit]
    for call in (*calls, ["lens", text]):
        table = next(p for p in parts(*call, *rest) if p.get("name") == "asked")
        names = [one["name"] for one in table["columns"]]
        assert names == ["position", "asked", "token", "id", "logit", "probability", "rank"], call


@pytest.mark.parametrize(
    ("what", "field", "told"),
    [
        ("prob", "probability", "the probability of the token that came next"),
        ("rank", "rank", "the rank of the token that came next, 1 is the likeliest"),
        ("entropy", "entropy", "the entropy in bits"),
        ("kl", "kl", "KL(last row || row) in bits"),
    ],
)
def test_what_a_grid_shows(made, what, field, told):
    grid, *_ = parts("lens", SENTENCE, "--show", what)
    assert grid["title"].endswith(f": {told}")
    assert "tokens" not in grid
    assert_allclose(values(grid), getattr(made, field), rtol=1e-5, atol=1e-12)


def test_the_last_row_is_what_next_says():
    grid, *_ = parts("lens", SENTENCE)
    (table,) = parts("next", SENTENCE, "--at", "all")
    assert grid["tokens"][-1] == column(table, "best guess")
    assert grid["values"][-1] == column(table, "probability")
    ranks, *_ = parts("lens", SENTENCE, "--show", "rank")
    assert ranks["values"][-1][:-1] == column(table, "its rank")[:-1]
    assert all(isinstance(n, int) for row in ranks["values"] for n in row)


@pytest.mark.parametrize("what", ["prob", "rank"])
def test_an_answer_is_rated_everywhere(tiny, kept, what):
    answer = tiny.tokenizer.encode(" mom")[-1]
    grid, *_ = parts("lens", SENTENCE, "--show", what, "--answer", f"<id {answer}>")
    rated = lens(tiny, kept, answer)
    expected = rated.probability if what == "prob" else rated.rank
    assert "\u00b7mom" in grid["title"]
    assert_allclose(values(grid), expected, rtol=1e-5)


def test_what_stands_between_attention_and_feed_forward(tiny, ids):
    keep = ("embeddings", "resid_after_attn", "output", "logits")
    found = lens(tiny, gptscope.trace(tiny, ids, keep))
    grid, *_ = parts("lens", SENTENCE, "--mid", "--show", "entropy")
    assert grid["rows"] == list(found.rows)
    assert len(grid["rows"]) == 9
    assert_allclose(values(grid), found.entropy, rtol=1e-5)


def test_the_last_tokens():
    grid, *_ = parts("lens", LONG, "--last", "2")
    whole, *_ = parts("lens", LONG)
    assert len(whole["columns"]) == 24
    assert grid["column_positions"] == [22, 23]
    assert grid["tokens"] == [row[22:] for row in whole["tokens"]]
    assert_allclose(values(grid), values(whole)[:, 22:], rtol=1e-5)


def test_a_screen_shows_the_end_of_a_long_text_and_says_so():
    result = run_cli(["lens", LONG], terminal=True, env={"NO_COLOR": "1", "COLUMNS": "80"})
    words = " ".join(result.text.split())
    assert "These are the tokens 8 to 23 of 0 to 23; --last 24 shows all" in words
    whole = run_cli(["lens", LONG, "--last", "24"], terminal=True, env={"COLUMNS": "80"})
    assert "These are" not in whole.text
    assert whole.text.count("embeddings") > result.text.count("embeddings") > 1


def test_many_tokens_without_an_edge_tell_how_to_see_fewer():
    told = "These are 24 tokens: --last 8 shows the last ones alone, --at one of them as a table"
    assert told in " ".join(run_cli(["lens", LONG]).text.split())
    assert "These are" not in run_cli(["lens", LONG, "--last", "17"]).text
    assert "These are" not in run_cli(["lens", SENTENCE]).text
    assert "Rated after" not in run_cli(["lens", LONG]).text
    assert not any("These are" in text for text in notes(parts("lens", LONG)))


# One position


def test_one_position_as_data(tiny, kept):
    answer = tiny.tokenizer.encode(" mom")[-1]
    found = lens(tiny, kept, answer, [4], top=2)
    best, rated, *_ = parts("lens", SENTENCE, "--at", "4", "--top", "2", "--answer", " mom")
    assert column(best, "after") == [name for name in OUTPUTS for _ in range(2)]
    assert column(best, "rank") == [1, 2] * 5
    assert column(best, "id") == found.top_ids[:, 0].ravel().tolist()
    assert_allclose(column(best, "probability"), found.top_probabilities[:, 0].ravel(), rtol=1e-5)
    assert column(rated, "after") == list(OUTPUTS)
    fields = ("rank", "probability", "logit", "entropy", "kl")
    names = ("rank", "probability", "logit", "entropy, bits", "KL, bits")
    for field, name in zip(fields, names, strict=True):
        assert_allclose(column(rated, name), getattr(found, field)[:, 0], rtol=1e-5, atol=1e-9)
    (every, _), last = parts("next", SENTENCE, "--at", "4", "--top", "4096"), rated["rows"][-1]
    (said,) = [row for row in every["rows"] if row["id"] == answer]
    assert (last["rank"], last["logit"]) == (said["rank"], said["logit"])
    assert_allclose(last["probability"], said["probability"], rtol=1e-12)


def test_one_position_in_words(tiny, made):
    result = run_cli(["lens", SENTENCE, "--at", "-1"])
    ids = made.top_ids[-1, -1, :1]
    p = made.top_probabilities[-1, -1, 0]
    token = token_glyphs(tiny.tokenizer.text_of(int(ids[0])))
    line = next(line for line in result.lines if line.startswith("layers.3.output"))
    assert f" {token} {p:.3f} " in line
    assert len(line.split()) == 7
    assert "rank 4" not in result.text
    assert "rank 4" in run_cli(["lens", SENTENCE, "--at", "-1", "--top", "4"]).text


def test_without_an_answer_the_token_that_came_is_rated(labels):
    _, middle, *_ = parts("lens", SENTENCE, "--at", "2")
    assert middle["title"].startswith(f"How each layer rates {token_glyphs(labels[3])} after")
    _, last, *_ = parts("lens", SENTENCE, "--at", "-1")
    assert column(last, "rank")[-1] == 1


# Words


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        ([1, 1, 1], "on top in every row"),
        ([2, 1, 1], "on top from b on"),
        ([2, 3, 1], "on top in the last row alone"),
        ([1, 3, 1], "on top in the last row alone, and before at a"),
        ([2, 1, 5], "on top at b, but does not stay so: at the end it has rank 5"),
        ([9, 3, 1200], "never on top: its best rank is 3, at b, and at the end it has rank 1,200"),
    ],
)
def test_where_an_answer_comes_up(ranks, told):
    assert on_top(ranks, "abc") == told


def test_it_is_said_of_the_last_token_that_is_shown(made, labels):
    expected = on_top(made.rank[:, -1].tolist(), OUTPUTS)
    first, _ = notes(parts("lens", SENTENCE))
    assert first.startswith(f"After token 5 {token_glyphs(labels[-1])}, ")
    assert first.endswith(f" is {expected}")
    first, *_ = notes(parts("lens", SENTENCE, "--answer", "<id 5>"))
    assert " is never on top: its best rank is " in first
    first, *_ = notes(parts("lens", SENTENCE, "--at", "3"))
    assert first.startswith(f"After token 3 {token_glyphs(labels[3])}, ")


def test_what_is_rated_after_the_last_token_is_said():
    def says(*options):
        return any(
            "Nothing came after" in text for text in notes(parts("lens", SENTENCE, *options))
        )

    assert says("--show", "rank")
    assert says("--show", "prob")
    assert not says("--show", "kl")
    assert not says("--show", "rank", "--answer", "<id 5>")


def test_tied_tables_explain_the_first_row():
    assert "The first row repeats the tokens" in notes(parts("lens", SENTENCE))[-1]
    assert "repeats" not in notes(parts("lens", *UNTIED))[-1]


def test_a_model_without_a_last_norm():
    grid, *rest = parts("lens", *POST_NORM)
    assert len(grid["rows"]) == gptscope.load(POST_NORM[1]).spec.n_layers + 1
    assert "own output matrix read" in notes(rest)[-1]
    assert "own last norm and output matrix read" in notes(parts("lens", SENTENCE))[-1]


def test_an_answer_of_several_tokens_is_pointed_out():
    result = run_cli(["lens", SENTENCE, "--answer", "xylophones"])
    assert result.status == 0
    assert "tokens" in result.err
    assert "the first is looked at" in result.err


# Refused


@pytest.mark.parametrize("pair", APART)
def test_what_does_not_go_together(pair):
    options = {"--at": ["--at", "1"], "--show": ["--show", "kl"], "--last": ["--last", "2"]}
    said, hint = refused(run_cli(["lens", SENTENCE, *options[pair[0]], *options[pair[1]]]), 2)
    assert said == f"{pair[0]} and {pair[1]} do not go together"
    assert hint == APART[pair]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--top", "3", SENTENCE], "--top needs --at"),
        (["--at", "6", SENTENCE], "token 6 is out of range: this one has tokens 0 to 5"),
        (["--answer", "", SENTENCE], "--answer is empty"),
        (
            ["--mid", *PARALLEL],
            "--mid: in this model both parts read the same stream, and there is none between them",
        ),
    ],
)
def test_what_cannot_be_shown(options, why):
    said, _ = refused(run_cli(["lens", *options]), 2)
    assert said == why


# A model that is broken


@pytest.mark.parametrize("options", [[], ["--at", "-1"], ["--show", "rank"]], ids=str)
@pytest.mark.parametrize("fmt", ["json", "table", "csv"])
def test_the_row_where_numbers_go_wrong_is_seen(folder, fmt, options):
    gain = tensors_of("gpt2")["transformer.h.1.ln_1.weight"] * np.nan
    path = str(folder(tensors={"transformer.h.1.ln_1.weight": gain}))
    result = run_cli(["lens", "--model", path, "--ids", "3,1", "-f", fmt, *options])
    assert result.status == 0
    if fmt != "csv":
        assert "the logits of layers.1.output are not numbers" in " ".join(result.text.split())
    if fmt == "json" and not options:
        grid, *_ = json.loads(result.out)["parts"]
        assert grid["values"][2] == ["NaN", "NaN"]
        assert grid["tokens"][2] == ["", ""]
        assert all(grid["tokens"][1])


def broken(folder, *options):
    gain = tensors_of("gpt2")["transformer.h.1.ln_1.weight"] * np.nan
    path = str(folder(tensors={"transformer.h.1.ln_1.weight": gain}))
    result = run_cli(["lens", "--model", path, "--ids", "3,1", "-f", "json", *options])
    return json.loads(result.out)["parts"]


def test_where_nothing_is_likeliest_nothing_is_rated(folder):
    _, rated, of, *rest = broken(folder, "--at", "-1")
    assert rated["title"] == "How sure each layer is after token 1 <id 1>"
    for name in ("rank", "probability", "logit"):
        assert column(rated, name) == [None] * 3
    assert all(isinstance(x, float) for x in column(rated, "entropy, bits")[:2])
    assert (of["name"], of["rows"]) == ("asked", [])
    assert notes(rest)[0].endswith(
        "layers.1.output are not numbers, and no answer can be rated there"
    )
    grid, of, *rest = broken(folder, "--show", "rank")
    assert column(of, "position") == [0]
    for name in ("logit", "probability", "rank"):
        assert column(of, name) == ["NaN"]
    assert [row[1] for row in grid["values"]] == ["NaN"] * 3
    assert "NaN" not in [row[0] for row in grid["values"][:2]]
    assert "Nothing came after" not in " ".join(notes(rest))
    _, rated, *rest = broken(folder, "--at", "-1", "--answer", "<id 5>")
    assert [n is None for n in column(rated, "rank")] == [False, False, True]
    assert "can be rated" not in notes(rest)[0]


# A change of the model


def test_a_change_shows_in_the_rows_after_it():
    edit = "layers.1.mlp_out=zero"
    plain, changed = (parts("lens", SENTENCE, *more)[0] for more in ([], ["--edit", edit]))
    same = np.isclose(values(plain), values(changed), rtol=1e-5).all(axis=1)
    assert same.tolist() == [True, True, False, False, False]


def test_a_change_after_the_last_block_is_one_of_the_last_row():
    answer = asked("lens", SENTENCE, "--edit", "logits[:,7]=99")
    assert any("of the last row alone" in text for text in notes(answer["parts"]))
    (plain, *_), (changed, *_) = parts("lens", SENTENCE), answer["parts"]
    same = np.isclose(values(plain), values(changed), rtol=1e-5).all(axis=1)
    assert same.tolist() == [True] * 4 + [False]
