from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from gptscope.analysis.heads.composition import composition
from gptscope.analysis.heads.copying import Copying, copying
from gptscope.analysis.heads.eigen import Eigen, eigen
from gptscope.analysis.heads.random_tokens import repeated
from gptscope.analysis.heads.scores import SCORES, SHARES, Repeated, over_seeds, scores, unread
from gptscope.commands import heads_words
from gptscope.commands.heads import How
from gptscope.commands.heads_asked import Asked, Draw, draw_of
from gptscope.commands.heads_choice import WITH_VERDICT, in_order
from gptscope.commands.heads_found import Found, Weights, by_weights, measured
from gptscope.commands.heads_view import check_input, composed, lists, maps
from gptscope.commands.heads_weights import copies
from gptscope.commands.heads_words import ALONE
from gptscope.commands.heads_words import TWICE as TWICE_NEVER
from gptscope.commands.session import Run
from gptscope.errors import UsageError
from gptscope.view import Grid, Note
from tests.helpers.cli import SENTENCE, asked, column, parts, refused, rows, run_cli
from tests.helpers.families import family_folder
from tests.helpers.folders import GOLDEN, tensors_of
from tests.helpers.micro import micro_model, sizes
from tests.helpers.variants import windowed

TWICE = "Lily wanted to play with her dog. Lily wanted"
LLAMA = ("--model", "llama-tiny")


@pytest.fixture(scope="module")
def llama():
    return gptscope.load("llama-tiny")


@pytest.fixture(scope="module")
def drawn(llama):
    every = [repeated(llama, 50, seed, bos=False) for seed in range(5)]
    return over_seeds([scores(llama, gptscope.trace(llama, ids, "weights")) for ids in every])


@pytest.fixture(scope="module")
def on_text(llama):
    ids = llama.tokenizer.encode(TWICE)
    return scores(llama, gptscope.trace(llama, ids, "weights"))


@pytest.fixture(scope="module")
def answer():
    return parts("heads", TWICE, *LLAMA)


def of_kind(kind, answer):
    return [part for part in answer if part["kind"] == kind]


def notes(answer):
    return " ".join(part["text"] for part in of_kind("note", answer))


def test_a_row_for_each_head_and_one_for_chance(answer, drawn, on_text, llama):
    random, text = of_kind("grid", answer)
    every = [f"{layer}.{head}" for layer in range(4) for head in range(4)]
    assert random["rows"] == text["rows"] == [*every, "chance"]
    assert random["columns"] == [*SHARES, "entropy", "eigen"]
    assert text["columns"] == [*SHARES, "entropy"]
    for grid, values, even in (
        (random, drawn.mean, drawn.even),
        (text, on_text.values, on_text.even),
    ):
        shown = np.array(grid["values"])
        expected = values[: len(SHARES)].reshape(len(SHARES), -1).T
        assert_allclose(shown[:-1, : len(SHARES)], expected, rtol=1e-6)
        assert_allclose(shown[-1, : len(SHARES)], even[: len(SHARES), 0], rtol=1e-6)
        at = SCORES.index("entropy")
        assert_allclose(shown[:-1, len(SHARES)], (values[at] / even[at, 0]).ravel(), rtol=1e-6)
        assert_allclose(shown[-1, len(SHARES)], 1)
    copied = eigen(llama)
    shown = np.array(random["values"])[:, -1]
    assert_allclose(shown, [*copied.eigenvalues.ravel(), 0], rtol=1e-6)


def test_heads_far_beyond_chance_come_first_with_a_word(answer, drawn, on_text):
    table = answer[0]
    assert [rows(table)[i][:3] for i in (0, 1)] == [["previous", 1, 0], ["previous", 1, 2]]
    assert column(table, "verdict") == ["previous token"] * 2 + [None] * 4
    assert column(table, "score") == ["previous", *SHARES]
    for row in table["rows"]:
        at = SCORES.index(row["score"]), row["layer"], row["head"]
        assert_allclose(row["share"], drawn.mean[at], rtol=1e-6)
        assert_allclose(row["standard error"], drawn.error[at], rtol=1e-6)
        assert_allclose(row["chance"], drawn.even[at[:2]], rtol=1e-6)
        assert_allclose(row["this text"], on_text.values[at], rtol=1e-6)
    induction = table["rows"][SHARES.index("induction") + 1]
    best = drawn.mean[SCORES.index("induction")]
    assert (induction["layer"], induction["head"]) == np.unravel_index(best.argmax(), best.shape)


def test_how_many_rows_count_is_told(answer):
    said = "Rows of this text that count: previous 9, itself 9, first 9, duplicate 1, induction 1."
    assert said in notes(answer)


def test_nothing_to_measure_is_said():
    answer = parts("heads", "Lily", "--seeds", "0")
    (grid,) = of_kind("grid", answer)
    assert (grid["title"], grid["columns"]) == ("By the weights", ["eigen"])
    assert ALONE in notes(answer)
    assert "Rows of this text" not in notes(answer)
    assert "Without random tokens there is no verdict on where heads look." in notes(answer)
    assert not of_kind("table", answer)


def test_a_heat_map_of_one_score(drawn, on_text):
    answer = parts("heads", TWICE, *LLAMA, "--score", "induction")
    random, text = of_kind("grid", answer)
    at = SCORES.index("induction")
    assert_allclose(random["values"], drawn.mean[at], rtol=1e-6)
    assert_allclose(text["values"], on_text.values[at], rtol=1e-6)
    assert random["title"].startswith("induction, random tokens (chance 0.0138): a row for each")
    assert (random["rows"], random["columns"]) == (list("0123"), list("0123"))
    assert f"standard errors up to {drawn.error[at].max():.2g}." in notes(answer)
    (one,) = of_kind("grid", parts("heads", TWICE, "--score", "copying", "--layer", "-2"))
    assert (one["rows"], len(one["values"][0])) == (["2"], 4)


@pytest.mark.parametrize(
    ("text", "score", "said"),
    [(SENTENCE, "induction", TWICE_NEVER), (SENTENCE, "duplicate", TWICE_NEVER)]
    + [("a", score, ALONE) for score in ("induction", "previous", "entropy")],
)
def test_a_text_that_has_nothing_for_a_score_is_told(text, score, said):
    answer = parts("heads", text, "--score", score, "--seeds", "2")
    assert [grid["name"] for grid in of_kind("grid", answer)] == ["random_tokens"]
    assert said in [part["text"] for part in of_kind("note", answer)]


def test_heads_that_see_too_little_are_told():
    run = Run(windowed(micro_model()), (1, 2, 3, 1), None)
    found = measured(run, Draw(2, 6, bos=False), composed=False, raising=())
    said = [part.text for part in maps(found, Asked(), "duplicate") if isinstance(part, Note)]
    assert said == [
        "What heads see is too short: there is nothing to measure on random tokens",
        "What heads see is too short: there is nothing to measure on this text",
        heads_words.MEANING,
    ]
    assert not [part for part in maps(found, Asked(), "duplicate") if isinstance(part, Grid)]
    assert [part.name for part in maps(found, Asked(), "first") if isinstance(part, Grid)]


def test_the_heat_map_of_eigenvalues_is_signed(llama):
    answer = parts("heads", TWICE, *LLAMA, "--score", "eigen", "--seeds", "0")
    (grid,) = of_kind("grid", answer)
    assert_allclose(grid["values"], eigen(llama).eigenvalues, rtol=1e-6)
    assert grid["title"] == "eigen: a row for each layer, a column for each head"
    assert "Eigen: sum of the eigenvalues" in notes(answer)


def test_the_heat_map_of_copying_counts_tokens(llama):
    answer = parts("heads", TWICE, *LLAMA, "--score", "copying", "--seeds", "0")
    (grid,) = of_kind("grid", answer)
    assert_allclose(grid["values"], copying(llama).top, rtol=1e-6)
    assert grid["title"].startswith("copying (chance 0.00122): a row for each layer")
    assert "of 256 random tokens, how many are among the 5 of all 4,096" in notes(answer)
    assert "eigenvalues" not in notes(answer)
    assert "Copying (among 5): of 256 random tokens" in notes(answer)


def test_one_head_in_every_number(drawn, on_text):
    answer = parts("heads", TWICE, *LLAMA, "--layer", "1", "--head", "-2")
    *tables, copied = of_kind("table", answer)
    found = [row for table in tables for row in table["rows"]]
    assert [row["score"] for row in found] == list(SCORES)
    for i, row in enumerate(found):
        assert (row["layer"], row["head"]) == (1, 2)
        expected = drawn.mean[i, 1, 2], drawn.error[i, 1, 2], drawn.even[i, 1]
        shown = row["random tokens"], row["standard error"], row["chance"]
        assert_allclose(shown, expected, rtol=1e-5)
        assert_allclose(row["this text"], on_text.values[i, 1, 2], rtol=1e-5)
        assert_allclose(row["its chance"], on_text.even[i, 1], rtol=1e-5)
        assert (row["rows"], row["its rows"]) == (drawn.rows[i, 1], on_text.rows[i, 1])
    assert len(copied["rows"]) == 1
    named = answer[0]["title"], answer[0]["facts"]
    assert named == ("Head 1.2 (layer.head)", {"verdict": "previous token"})
    assert "else the strongest head" not in notes(answer)
    other = parts("heads", TWICE, *LLAMA, "--layer", "0", "--head", "1")[0]
    assert other["facts"] == {"verdict": "none"}


def test_one_head_alone_has_its_layer_alone_rated(monkeypatch):
    asked_for = []

    def rated(model, tick, *, layers):
        asked_for.append([*layers])
        return copying(model, tick, layers=layers)

    monkeypatch.setattr("gptscope.analysis.heads.copying.copying", rated)
    for options in (["--layer", "1", "--head", "0"], ["--layer", "-1", "--details"], ["--details"]):
        parts("heads", TWICE, "--seeds", "2", *options)
    assert asked_for == [[1], [3], [0, 1, 2, 3]]


def test_details_have_every_head():
    answer = parts("heads", TWICE, "--details", "--seeds", "2", "--random-tokens", "5")
    _, shares, widths, copied = of_kind("table", answer)
    sizes = [len(table["rows"]) for table in (shares, widths, copied)]
    assert sizes == [16 * len(SHARES), 16 * 2, 16]


@pytest.mark.parametrize("score", ["previous", "entropy", "copying", "eigen"])
def test_sorted_by_a_score(score):
    grids = of_kind("grid", parts("heads", TWICE, *LLAMA, "--sort", score, "--top", "5"))
    assert [len(grid["rows"]) for grid in grids] == [6, 6]
    at = grids[0]["columns"].index(score)
    values = [row[at] for row in grids[0]["values"][:-1]]
    assert values == sorted(values, reverse=True)
    assert grids[0]["rows"] == grids[1]["rows"]
    told = f"5 of 16 heads: the largest {score} first; --top 16 shows all"
    assert told in notes(parts("heads", TWICE, *LLAMA, "--sort", score, "--top", "5"))


def test_what_is_left_out_is_told():
    answer = parts("heads", TWICE, *LLAMA, "--top", "1")
    assert "Shown are 1 of 2 heads for previous token; --top 2 shows all." in notes(answer)
    assert f"1 of 16 heads: {WITH_VERDICT}; --top 16 shows all" in notes(answer)
    assert of_kind("grid", answer)[0]["rows"] == ["1.0", "chance"]
    for enough in ("2", "16"):
        assert "Shown are" not in notes(parts("heads", TWICE, *LLAMA, "--top", enough))


def test_the_farthest_above_chance_are_shown_in_the_order_of_the_model(drawn):
    answer = parts("heads", TWICE, *LLAMA, "--top", "11")
    telling = [i for i, name in enumerate(SHARES) if name != "first"]
    above = (drawn.mean[telling] - drawn.even[telling][:, :, None]).max(0)
    order = sorted(sorted(np.ndindex(4, 4), key=lambda at: -above[at])[:11])
    for grid in of_kind("grid", answer):
        assert grid["rows"] == [*(f"{layer}.{head}" for layer, head in order), "chance"]


def many(named, n_layers=5, n_heads=8):
    """Heads that are all sinks, most of all those in layer 1, and some are strong in a score."""
    model = micro_model(sizes(n_layers=n_layers, n_heads=n_heads, d_head=1))
    empty = unread(model)
    mean = np.full(empty.values.shape, 0.1)
    mean[SCORES.index("first")] = 0.9
    mean[SCORES.index("first"), 1] = 0.95
    for (name, value), heads in named.items():
        for rank, at in enumerate(heads):
            mean[SCORES.index(name)][at] = value - rank / 1000
    even, rows = np.full(empty.even.shape, 0.05), np.full(empty.rows.shape, 9)
    random = Repeated(mean, np.full(mean.shape, 0.001), even, rows)
    weights = by_weights(model, composed=False, raising=())
    return Found(weights, (1, 2), empty, random, Draw(5, 9, bos=False))


def test_of_many_heads_those_with_a_verdict_are_shown_and_not_the_sinks():
    induced = [(4, h) for h in range(3)]
    found = many({("previous", 0.8): [(0, h) for h in range(8)], ("induction", 0.45): induced})
    heads, said = in_order(found, Asked(top=5))
    assert heads == [(0, 0), (0, 1), (0, 2), (4, 0), (4, 1)]
    heads, said = in_order(found, Asked())
    assert len(heads) == 24
    assert heads == sorted(heads)
    assert {*induced, *((0, h) for h in range(8))} <= {*heads}
    assert said == (
        f"24 of 40 heads: {WITH_VERDICT}. --layer N shows a whole layer, on this text too; --score "
        "NAME all heads in one score; --details --top 40 -f csv every number."
    )
    assert in_order(found, Asked(top=40))[1] == in_order(found, Asked(layer=1))[1] == ""


def test_of_many_heads_the_shares_on_the_text_are_left_out():
    found = many({})
    shown = {part.name for part in lists(found, Asked(), How()) if isinstance(part, Grid)}
    assert shown == {"random_tokens"}
    read = replace(found, text=replace(found.text, rows=found.random.rows))
    wide = many({}, n_layers=2, n_heads=30)
    wide = replace(wide, text=replace(wide.text, rows=wide.random.rows))
    for one, asked_for, names in (
        (read, Asked(), {"random_tokens"}),
        (read, Asked(layer=2), {"random_tokens", "this_text"}),
        (wide, Asked(layer=1), {"random_tokens", "this_text"}),
        (replace(read, random=None, draw=None), Asked(), {"this_text"}),
    ):
        made = lists(one, asked_for, How())
        assert {part.name for part in made if isinstance(part, Grid)} == names
    (table,) = [part for part in lists(read, Asked(), How(details=True)) if part_is(part, "shares")]
    assert len(table.rows) == 24 * len(SHARES)


def part_is(part, name):
    return getattr(part, "name", None) == name


def test_all_heads_of_a_wide_layer_are_shown():
    spec = sizes(n_heads=30, d_head=1)
    found = by_weights(micro_model(spec), composed=False, raising=(0, 1))
    assert [len(in_order(found, Asked(layer=layer))[0]) for layer in (None, 1)] == [24, 30]


def test_weights_alone_need_no_text(llama):
    answer = asked("heads", *LLAMA, "--weights-only", "--top", "20")
    assert (answer["input"], answer["model"]["name"]) == (None, "llama-tiny")
    copied, pairs = of_kind("table", answer["parts"])
    assert copied["title"] == "Copying: how often a token raises itself (256 of 4,096 tokens)"
    assert "the share is that of tokens among 5." in notes(answer["parts"])
    expected = copying(llama)
    for name, values in {
        "eigen": eigen(llama).eigenvalues,
        "itself most": expected.most,
        "among 5": expected.top,
        "above mean": expected.above_mean,
    }.items():
        assert_allclose(column(copied, name), values.ravel(), rtol=1e-5)
    made = composition(llama)
    for way, found in made.scores.items():
        shown = [row for row in pairs["rows"] if row["composition"] == way]
        flat = np.sort(found[~np.isnan(found)])[::-1][:20]
        assert_allclose([row["score"] for row in shown], flat, rtol=1e-5)
        assert_allclose([row["times chance"] for row in shown], flat / made.level, rtol=1e-5)
        for row in shown:
            writes, reads = (tuple(map(int, row[end].split("."))) for end in ("writes", "reads"))
            assert_allclose(found[writes + reads], row["score"], rtol=1e-5)


def test_weights_alone_are_sorted_by_either_score(llama):
    for score, name, values in (
        ("eigen", "eigen", eigen(llama).eigenvalues),
        ("copying", "among 5", copying(llama).top),
    ):
        shown = parts("heads", *LLAMA, "--weights-only", "--sort", score, "--top", "3")[1]
        assert_allclose(column(shown, name), np.sort(values.ravel())[:-4:-1], rtol=1e-5)


def test_eigenvalues_earn_no_verdict(answer, llama):
    found = eigen(llama)
    assert found.eigenvalues.max() > 0.9
    assert {row["score"] for row in answer[0]["rows"]} == {*SHARES}
    assert answer[0]["title"] == "The strongest heads on random tokens"
    said = f"Random heads have 0 on the whole, with a standard deviation of {found.spread:.2g}."
    assert said in notes(answer)
    assert "random tokens, how many" not in notes(answer)


def test_copying_is_the_share_of_tokens_wherever_it_stands(llama):
    best = copying(llama).top
    at = tuple(int(i) for i in np.unravel_index(best.argmax(), best.shape))
    for options in (["--sort", "copying"], ["--details"]):
        answer = parts("heads", TWICE, *LLAMA, "--seeds", "2", *options)
        row = answer[0]["rows"][-1]
        assert (row["score"], row["layer"], row["head"]) == ("copying", *at)
        assert_allclose(row["share"], best.max(), rtol=1e-6)
    answer = parts("heads", TWICE, *LLAMA, "--seeds", "2", "--sort", "copying")
    assert "Eigen" not in notes(answer)
    grids = of_kind("grid", answer)
    shown = dict(zip(grids[0]["rows"], grids[0]["values"], strict=True))
    assert grids[0]["columns"][-1] == "copying"
    assert_allclose(shown[f"{at[0]}.{at[1]}"][-1], best.max(), rtol=1e-6)


def test_a_head_copies_by_its_tokens_alone():
    eigenvalues = np.array([[1.0, -1.0], [1.0, np.nan]])
    top = np.array([[0.39, 0.4], [0.0, np.nan]])
    model = micro_model()
    own = Copying(top / 2, top, top * 2, 256, 4096)
    table, facts = copies(Weights(model, Eigen(eigenvalues, 0.25), own), Asked().every(model.spec))
    assert [row[-1] for row in table.rows] == [None, "copies", None, None]
    assert table.rows[1][:-1] == (0, 1, -1.0, 0.2, 0.4, 0.8)
    values = [value for _, value in facts.pairs]
    assert_allclose(values, [0, 0.25, 1 / 4096, 5 / 4096, 0.5])


def test_what_chance_gives_is_left_unsaid_where_it_is_no_number():
    model = micro_model()
    eigenvalues = np.full((2, 2), np.nan)
    (said,) = heads_words.of_weights(Weights(model, Eigen(eigenvalues, np.nan)), both=True)
    assert said.startswith("Eigen: sum of the eigenvalues")
    assert said.endswith("that writes nothing. It earns no verdict.")


def test_composition_of_one_head():
    answer = parts("heads", TWICE, "--composition", "--layer", "2", "--head", "3", "--seeds", "2")
    table = of_kind("table", answer)[-1]
    assert len(table["rows"]) == 3 * 8
    assert all("2.3" in (row["writes"], row["reads"]) for row in table["rows"])


def test_one_layer_alone_has_no_composition():
    model = micro_model(sizes(n_layers=1))
    (note,) = composed(by_weights(model, composed=True, raising=()), Asked())
    assert note.text == "No head has an earlier one to read."


def test_edits_change_every_pass():
    plain = parts("heads", TWICE, "--seeds", "2", "--random-tokens", "9")
    edited = asked(
        *("heads", TWICE, "--seeds", "2", "--random-tokens", "9"),
        *("--edit", "layers.1.output=zero"),
    )
    assert edited["edits"] == ["layers.1.output=zero"]
    for one, two in zip(of_kind("grid", plain), of_kind("grid", edited["parts"]), strict=True):
        before, after = np.array(one["values"], float), np.array(two["values"], float)
        assert_allclose(after[:8], before[:8])
        assert np.abs(after[8:12, 0] - before[8:12, 0]).max() > 0.01


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--seeds", "1"], "--seeds 1 has no standard error"),
        (["--seeds", "1001"], "--seeds 1001 is more than the 1,000 passes that are made at the"),
        (["--seeds", "0", "--random-tokens", "9"], "--seeds 0 reads no random tokens: --random-t"),
        (["--score", "first", "--details"], "--score shows a map of all heads: --details does"),
        (["--score", "first", "--sort", "first"], "--score shows a map of all heads: --sort does"),
        (["--score", "first", "--top", "2"], "--score shows a map of all heads: --top does not"),
        (["--random-tokens", "65"], "--random-tokens 65 do not fit twice into the context of 128"),
        (["--layer", "4"], "layer 4 is out of range: this one has layers 0 to 3"),
        (["--head", "4"], "head 4 is out of range: this one has heads 0 to 3"),
        (["--weights-only"], "--weights-only runs nothing: a text does not go with it"),
    ],
)
def test_what_cannot_be_met_is_refused(options, said):
    assert refused(run_cli(["heads", SENTENCE, *options]), 2)[0].startswith(said)


def test_a_map_may_stand_with_the_top_of_compositions():
    answer = parts("heads", TWICE, "--score", "eigen", "--composition", "--top", "1")
    assert len(of_kind("table", answer)[0]["rows"]) == 3


@pytest.mark.parametrize(
    "option",
    [
        ["--edit", "layers.0.output=zero"],
        ["--score", "first"],
        ["--details"],
        ["--sort", "first"],
        ["--seeds", "3"],
        ["--random-tokens", "20"],
        ["--no-bos"],
    ],
    ids=" ".join,
)
def test_weights_alone_run_nothing(option):
    said, _ = refused(run_cli(["heads", "--weights-only", *option]), 2)
    assert said.startswith(f"--weights-only runs nothing: {option[0]}")


def test_more_random_tokens_than_there_are_are_refused():
    args = ["heads", "--model", "toy", "the cat", "--random-tokens", "9"]
    answer = parts(*args[:-1], "8", "--seeds", "2")
    assert "(8 random tokens and the same again" in of_kind("grid", answer)[0]["title"]
    said, _ = refused(run_cli(["heads", "--ids", "1", *args[1:3], "--random-tokens", "10"]), 2)
    assert said == "--random-tokens 10 do not fit twice into the context of 18"


def test_random_tokens_must_be_there_and_fit():
    small = Run(micro_model(sizes(n_vocab=5)), (1,), None)
    assert draw_of(small, 3, None, bos=None) == Draw(3, 4, bos=False)
    assert draw_of(small, 3, 4, bos=True) == Draw(3, 4, bos=True)
    with pytest.raises(UsageError, match="--random-tokens 5 are more than the 4 that are not"):
        draw_of(small, 3, 5, bos=None)
    short = Run(micro_model(sizes(n_ctx=4)), (1,), None)
    assert draw_of(short, 3, None, bos=True) is None
    with pytest.raises(UsageError, match="--random-tokens 2 do not fit twice"):
        draw_of(short, 3, 2, bos=True)
    found = measured(short, None, composed=False, raising=())
    said = [part.text for part in lists(found, Asked(), How()) if isinstance(part, Note)]
    assert (
        "There is no room for random tokens, so that there is no verdict on where heads look."
        in said
    )


@pytest.fixture
def without_tokenizer():
    return str(GOLDEN / "toy-rotary")


@pytest.mark.parametrize("bos", [[], ["--no-bos"]])
def test_random_tokens_alone_need_no_text(without_tokenizer, bos):
    answer = asked("heads", "--model", without_tokenizer, "--seeds", "3", *bos)
    assert answer["input"] is None
    first, table, *rest = answer["parts"]
    assert first["text"] == heads_words.NO_TEXT
    assert [c["name"] for c in table["columns"]][-2:] == ["chance", "verdict"]
    assert [grid["name"] for grid in of_kind("grid", rest)] == ["random_tokens"]
    assert "this text" not in notes(rest)
    given = parts("heads", "--model", without_tokenizer, "--seeds", "3", "--ids", "1,2", *bos)
    (grid,) = of_kind("grid", rest)
    assert grid == of_kind("grid", given)[0]


@pytest.mark.parametrize("more", [["--details"], ["--layer", "0", "--head", "1"]])
def test_numbers_of_a_head_without_a_text(without_tokenizer, more):
    answer = parts("heads", "--model", without_tokenizer, "--seeds", "2", *more)
    for table in of_kind("table", answer):
        assert not {"this text", "its chance", "its rows"} & {c["name"] for c in table["columns"]}
    maps = parts("heads", "--model", without_tokenizer, "--seeds", "2", "--score", "induction")
    assert [grid["name"] for grid in of_kind("grid", maps)] == ["random_tokens"]


def test_edits_change_random_tokens_alone(without_tokenizer):
    plain, edited = (
        asked("heads", "--model", without_tokenizer, "--seeds", "2", *edit)
        for edit in ([], ["--edit", "layers.0.output=zero"])
    )
    assert edited["edits"] == ["layers.0.output=zero"]
    one, two = (of_kind("grid", made["parts"])[0]["values"] for made in (plain, edited))
    assert one != two


def test_nothing_at_all_is_refused(without_tokenizer):
    said, hint = refused(run_cli(["heads", "--model", without_tokenizer, "--seeds", "0"]), 2)
    assert said == "there is no text, and --seeds 0 reads no random tokens"
    assert hint == "give ids: --ids 1,2,1"
    short = Run(micro_model(sizes(n_ctx=3)), (), None)
    with pytest.raises(UsageError, match="a context of 3 has no room for random tokens"):
        check_input(short, None, How())


def test_an_empty_text_is_not_no_text():
    said, _ = refused(run_cli(["heads", ""]), 2)
    assert said == "the text is empty: there is no token to look at"


def test_bos_stands_first_where_the_rules_or_the_option_put_it():
    for option, words in ((["--bos"], "BOS first"), ([], "without BOS")):
        answer = parts("heads", SENTENCE, "--seeds", "2", *option)
        assert words in of_kind("grid", answer)[0]["title"]


def test_layers_that_see_less_have_a_chance_of_their_own():
    answer = parts("heads", "--model", family_folder("gpt_neo"), "--ids", "1,2,3,4,1,2,3,4,5,6")
    chances = [name for name in of_kind("grid", answer)[0]["rows"] if name.startswith("chance")]
    assert chances == ["chance in 0", "chance in 1"]


@pytest.mark.parametrize("case", ["toy-post", "toy-rotary", "toy-unmasked"])
def test_other_models(case):
    answer = parts("heads", "--model", str(GOLDEN / case), "--ids", "1,2,3,1,2")
    assert "Chance is a head that spreads evenly" in notes(answer)
    assert ("norms in the stream" in notes(answer)) == (case == "toy-post")


def test_a_number_that_went_wrong_is_not_nothing(folder):
    gain = np.full_like(tensors_of("gpt2")["transformer.h.1.ln_1.weight"], np.nan)
    path = str(folder(tensors={"transformer.h.1.ln_1.weight": gain}))
    answer = parts("heads", "--model", path, "--ids", "1,2,1,2")
    for grid in of_kind("grid", answer):
        last = grid["values"][-2]
        assert set(last) == {"NaN"}
    table = answer[0]
    assert {row["layer"] for row in table["rows"]} == {0}
