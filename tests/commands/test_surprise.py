import json
import math
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

import gptscope
from gptscope.commands import reading
from gptscope.commands import surprise as module
from tests.helpers.cli import SENTENCE, asked, column, parts, refused, rows, run_cli
from tests.helpers.families import family_folder
from tests.helpers.folders import GOLDEN

STORY = (
    "Once upon a time, there was a little girl named Lily. She loved to play in the park. One day, "
    "she saw a big red ball under a tree. She ran to the ball and picked it up. "
) * 5
HOSTILE = "[/b] \u202e\u6f22<a>\x1b\x9b31m\n"


def of_kind(found, kind):
    return [part for part in found if part["kind"] == kind]


def notes(found):
    return " ".join(part["text"] for part in of_kind(found, "note"))


def sums(found):
    return of_kind(found, "facts")[0]["facts"]


def table(found):
    return of_kind(found, "table")[0]


def story(tmp_path, text=STORY):
    path = tmp_path / "story.txt"
    path.write_text(text, "utf-8")
    return ["--file", str(path)]


# One text


def test_every_token_of_a_short_text(tiny, ids, labels, trace):
    found = parts("surprise", SENTENCE)
    logits = trace.logits[:-1].astype(np.float64)
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    own = p[np.arange(len(ids) - 1), ids[1:]]
    each = table(found)
    assert each["title"] == "Every token, in order"
    assert column(each, "position") == list(range(1, len(ids)))
    assert column(each, "token") == labels[1:]
    assert_allclose(column(each, "probability"), own, rtol=1e-5)
    assert_allclose(column(each, "bits"), -np.log2(own), rtol=1e-5)
    assert column(each, "rank") == [
        int((row > row[i]).sum()) + 1 for row, i in zip(logits, ids[1:], strict=True)
    ]
    best = [tiny.tokenizer.text_of(int(i)) for i in p.argmax(1)]
    assert column(each, "best guess") == best
    assert_allclose(column(each, "its probability"), p.max(1), rtol=1e-5)
    assert_allclose(column(each, "entropy"), -(p * np.log2(p)).sum(1), rtol=1e-5)


def test_it_says_of_every_token_what_next_says():
    each = table(parts("surprise", SENTENCE))
    after = table(parts("next", SENTENCE, "--at", "all"))
    assert column(each, "rank") == column(after, "its rank")[:-1]
    assert_allclose(column(each, "probability"), column(after, "its probability")[:-1], rtol=1e-6)
    assert column(each, "best guess") == column(after, "best guess")[:-1]


def test_the_text_in_colours_and_the_sums(labels):
    found = parts("surprise", SENTENCE)
    (text,) = of_kind(found, "passage")
    assert text["tokens"] == labels
    bits = column(table(found), "bits")
    assert text["values"] == [None, *bits]
    n, told = len(bits), sums(found)
    assert told["tokens counted"] == n
    assert told["bits of all together"] == pytest.approx(sum(bits))
    assert told["bits per token"] == pytest.approx(sum(bits) / n)
    assert told["nats per token"] == pytest.approx(sum(bits) / n * math.log(2))
    assert told["perplexity"] == pytest.approx(2 ** (sum(bits) / n))
    assert told["bytes of these tokens"] == len(SENTENCE) - len("Lily")
    assert told["bits per byte"] == pytest.approx(sum(bits) / (len(SENTENCE) - len("Lily")))
    entropy = column(table(found), "entropy")
    assert told["entropy per token, in bits"] == pytest.approx(sum(entropy) / n)
    assert "The first token Lily has nothing before it, so that it is not counted" in notes(found)


def test_with_a_token_before_it_the_first_is_counted(tiny, ids):
    found = parts("surprise", SENTENCE, "--bos")
    logits = gptscope.trace(tiny, [0, *ids]).logits[0].astype(np.float64)
    first = table(found)["rows"][0]
    assert (first["position"], first["token"]) == (1, "Lily")
    expected = np.log2(np.exp(logits - logits[ids[0]]).sum())
    assert first["bits"] == pytest.approx(expected, rel=1e-5)
    assert sums(found)["tokens counted"] == len(ids)
    assert sums(found)["bytes of these tokens"] == len(SENTENCE)
    assert "<|endoftext|> stands before the text and has no number" in notes(found)


def test_the_worst_come_first_and_what_is_left_out_is_said(labels):
    every = table(parts("surprise", SENTENCE))["rows"]
    found = parts("surprise", SENTENCE, "--top", "2")
    worst = sorted(every, key=lambda row: -row["bits"])[:2]
    assert table(found)["title"] == "The 2 tokens that surprised it most"
    assert column(table(found), "position") == [row["position"] for row in worst]
    assert column(table(found), "bits") == [row["bits"] for row in worst]
    places = column(table(found), "position")
    before = ["".join(labels[max(0, at - 3) : at]) for at in places]
    assert column(table(found), "just before") == before
    assert "3 more in the table with --top 5; in order with --all." in notes(found)
    assert "--no-color puts each number under its token" in notes(found)
    assert "--no-color" not in notes(parts("surprise", SENTENCE))
    assert len(of_kind(found, "passage")[0]["tokens"]) == 6
    assert sums(found) == sums(parts("surprise", SENTENCE))


def test_a_longer_text_lists_the_worst_alone(tmp_path):
    found = parts("surprise", *story(tmp_path))
    n = sums(found)["tokens counted"]
    assert len(table(found)["rows"]) == 10
    assert f"{n - 10:,} more in the table with --top {n}" in notes(found)
    every = parts("surprise", *story(tmp_path), "--all")
    assert column(table(every), "position") == list(range(1, n + 1))
    assert "more in the table" not in notes(every)


def test_a_part_of_the_text():
    found = parts("surprise", SENTENCE, "--range", "2:4")
    (text,) = of_kind(found, "passage")
    assert text["title"] == "Surprise of tokens 2 to 3, in bits"
    assert text["tokens"] == [" to", " play"]
    assert column(table(found), "position") == [2, 3]
    assert "Only tokens 2 to 3 are shown; the sums are those of all 6." in notes(found)
    assert sums(found) == sums(parts("surprise", SENTENCE))
    (first,) = of_kind(parts("surprise", SENTENCE, "--range", "0"), "passage")
    assert (first["title"], first["values"]) == ("Surprise of tokens 0, in bits", [None])


def test_a_long_text_is_shown_up_to_a_place_that_is_said(monkeypatch):
    monkeypatch.setattr("gptscope.commands.surprise_view.LONGEST_PASSAGE", 4)
    found = parts("surprise", SENTENCE, "--top", "3")
    (text,) = of_kind(found, "passage")
    assert len(text["tokens"]) == 4
    assert text["title"] == "Surprise of tokens 0 to 3, in bits"
    assert "The text is shown up to token 3 of 5; the sums are of all" in notes(found)
    (text,) = of_kind(parts("surprise", SENTENCE, "--all"), "passage")
    assert len(text["tokens"]) == 6


def test_one_token_has_nothing_to_be_rated_by():
    found = parts("surprise", "Lily")
    assert of_kind(found, "passage")[0]["values"] == [None]
    assert of_kind(found, "table") == []
    assert sums(found) == {"tokens counted": 0}


def test_ids_without_a_tokenizer_have_no_bytes():
    found = parts("surprise", "--ids", "1,2,3", "--model", family_folder("llama"))
    assert column(table(found), "token") == ["<id 2>", "<id 3>"]
    assert "bits per byte" not in sums(found)


def test_what_sees_the_token_is_no_prediction():
    said = notes(parts("surprise", "the cat eats", "--model", "toy-unmasked"))
    assert "no causal mask" in said
    assert "no predictions" in said
    assert "predicted unseen" not in said  # all three are fed
    some = notes(parts("surprise", "the cat eats", "--model", "toy-unmasked", "--window", "2"))
    assert "Only a token just after a window is not fed, and is predicted unseen." in some
    assert "causal" not in notes(parts("surprise", "the cat eats", "--model", "toy"))


@pytest.mark.parametrize(
    ("args", "expected"),
    [([], True), (["--window", "48"], False), (["--window", "49"], True)],
)
def test_speeds_that_depend_on_the_length_are_said(args, expected):
    ids = ",".join(str(2 + i % 40) for i in range(60))
    found = parts("surprise", "--model", family_folder("llama-dynamic"), "--ids", ids, *args)
    told = "tokens are read at once, and" in notes(found)
    assert told == expected
    assert ("are enough to change them" in notes(found)) == expected


def test_edits_change_the_numbers_and_are_said():
    edit = "layers.0.heads.0.out=zero"
    answer = asked("surprise", SENTENCE, "--edit", edit)
    assert answer["edits"] == [edit]
    plain = column(table(parts("surprise", SENTENCE)), "bits")
    assert np.abs(np.subtract(column(table(answer["parts"]), "bits"), plain)).max() > 0.01


def test_a_broken_model_is_shown(folder):
    gain = np.full(16, np.nan, "float32")
    path = str(folder(tensors={"transformer.h.1.ln_1.weight": gain}))
    result = run_cli(["surprise", "--model", path, "--ids", "3,1,2", "--format", "json"])
    assert (result.status, result.err.count("\n")) == (0, 1)
    found = json.loads(result.out)["parts"]
    assert column(table(found), "bits") == ["NaN", "NaN"]
    for name in ("rank", "probability", "best guess", "its probability"):
        assert column(table(found), name) == [None, None]
    assert sums(found)["bits of all together"] == "NaN"
    assert "The logits before every token are not numbers (NaN): there is no rank" in notes(found)
    pair = parts("surprise", "--model", path, "--ids", "3,1,2", "--against", str(GOLDEN / "gpt2"))
    each = of_kind(pair, "table")[1]
    guesses = [[row[n] for n in row if "guess" in n] for row in each["rows"]]
    assert [(one is None, other is None) for one, other in guesses] == [(True, False)] * 2


def test_only_where_logits_are_no_numbers_nothing_is_told():
    found = parts("surprise", SENTENCE, "--edit", "layers.3.ln2.variance[2]=-1")
    assert [rank is None for rank in column(table(found), "rank")] == [False] * 2 + [True] + [
        False
    ] * 2
    assert "The logits before 1 of 5 tokens are not numbers (NaN)" in notes(found)


# Long texts


def test_a_long_file_goes_through_in_windows(tiny, tmp_path):
    args = [*story(tmp_path), "--all"]
    found = parts("surprise", *args)
    ids = tiny.tokenizer.encode(STORY)
    assert len(ids) > 128
    told = re.search(
        r"in (\d+) windows of 128 tokens that overlap by 64; .* at least 65", notes(found)
    )
    assert int(told[1]) == 1 + math.ceil((len(ids) - 129) / 64)
    bits = dict(zip(column(table(found), "position"), column(table(found), "bits"), strict=True))
    for at, start in ((5, 0), (128, 0), (129, 64), (192, 64), (193, 128)):
        logits = gptscope.trace(tiny, ids[start:at]).logits[-1].astype(np.float64)
        expected = np.log2(np.exp(logits - logits[ids[at]]).sum())
        assert bits[at] == pytest.approx(expected, rel=1e-4), at


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--window", "40"], "windows of 40 tokens that overlap by 20"),
        (["--window", "40", "--overlap", "7"], "windows of 40 tokens that overlap by 7"),
        (["--window", "40", "--overlap", "0"], "overlap by 0; .* after at least 1 token of"),
        (["--overlap", "127"], "overlap by 127; .* after at least 128 tokens of the text"),
        (["--window", "40", "--bos"], "overlap by 20, each begun as the text is"),
        (["--edit", "layers.0.mlp_out=0"], "The edits are made in each window"),
    ],
)
def test_windows_are_said(tmp_path, args, words):
    found = parts("surprise", *story(tmp_path), *args)
    assert re.search(words, notes(found))
    assert ("larger --overlap" in notes(found)) == (args[-1] != "127")


def test_more_overlap_surprises_less(tmp_path):
    few, many = (
        sums(parts("surprise", *story(tmp_path), "--window", "40", "--overlap", n))
        for n in ("0", "39")
    )
    assert few["tokens counted"] == many["tokens counted"]
    assert few["bits per token"] > many["bits per token"]


def test_a_file_that_other_commands_do_not_read(tmp_path, monkeypatch):
    expected = parts("surprise", *story(tmp_path))
    monkeypatch.setattr(reading, "LONGEST", 300)  # so that it is read in pieces
    seen = []
    monkeypatch.setattr("gptscope.tokens.in_pieces", spy(seen))
    assert parts("surprise", *story(tmp_path)) == expected
    assert seen == [len(STORY)]


def spy(seen):
    from gptscope.tokens.long import in_pieces  # noqa: PLC0415 - before it is replaced

    def run(tokenizer, text, tick):
        seen.append(len(text))
        return in_pieces(tokenizer, text, tick, (500, 200))

    return run


def test_there_is_an_end_to_what_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST", 100)
    said, _ = refused(run_cli(["surprise", *story(tmp_path)]), 2)
    assert said == "the text is longer than 100 bytes, and is not read"


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--window", "129"], "--window 129: tiny reads 128 tokens at most"),
        (["--window", "8", "--overlap", "8"], "an overlap of 8 tokens cannot be met"),
        (
            ["--window", "4", "--overlap", "1", "--edit", "layers.0.output[3]=0"],
            "window 2 of 2 has 3 tokens: layers.",
        ),
        (["--window", "1", "--bos"], "a window of 1 tokens is too short"),
        (["--top", "3", "--all"], "give one of --top and --all, not both"),
        (["--range", "0,4"], "--range takes tokens in a row, as 100:200, not '0,4'"),
        (["--range", "9"], "token 9 is out of range"),
        (["--against", "nothing-of-the-kind"], "no model"),
        (["--against", "toy"], "this model cannot read the text"),
    ],
)
def test_what_cannot_be_is_refused(args, said):
    result = run_cli(["surprise", SENTENCE, *args])
    assert result.status in (1, 2)
    assert said in result.err
    assert result.out == b""


# Two models


def test_the_same_model_differs_nowhere(labels):
    found = parts("surprise", SENTENCE, "--against", "tiny")
    (text,) = of_kind(found, "passage")
    assert text["tokens"] == labels[1:]
    assert text["values"] == [0.0] * 5
    total, each = of_kind(found, "table")
    assert column(each, "bits more") == [0.0] * 5
    assert rows(total)[0][1:] == rows(total)[1][1:]
    assert column(total, "model") == ["tiny (first)", "tiny (second)"]
    assert "Both models have the same tokens." in notes(found)
    alone = sums(parts("surprise", SENTENCE))
    assert column(total, "bits")[0] == pytest.approx(alone["bits of all together"])
    assert column(total, "perplexity")[0] == pytest.approx(alone["perplexity"])
    assert column(total, "bits per byte")[0] == pytest.approx(alone["bits per byte"])
    assert column(total, "nats per token")[0] == pytest.approx(alone["nats per token"])


def test_two_models_with_the_same_tokens():
    found = parts("surprise", SENTENCE, "--against", "llama-tiny")
    alone = [table(parts("surprise", SENTENCE, "--model", m)) for m in ("tiny", "llama-tiny")]
    total, each = of_kind(found, "table")
    meaning = "bits, and how many more llama-tiny needs"
    assert each["title"] == f"Every token, in order: {meaning}"
    assert column(total, "model") == ["tiny", "llama-tiny"]
    for one, model in zip(alone, ("tiny", "llama-tiny"), strict=True):
        assert_allclose(column(each, f"{model}, bits"), column(one, "bits"), rtol=1e-12)
        assert column(each, f"{model}, guess") == column(one, "best guess")
    more = np.subtract(column(each, "llama-tiny, bits"), column(each, "tiny, bits"))
    assert_allclose(column(each, "bits more"), more)
    assert_allclose(of_kind(found, "passage")[0]["values"], more)
    assert_allclose(column(total, "bits"), [sum(column(one, "bits")) for one in alone])


def test_positions_count_what_stands_before_the_text():
    found = parts("surprise", SENTENCE, "--against", "llama-tiny", "--bos")
    alone = [table(parts("surprise", SENTENCE, "--bos", "-m", m)) for m in ("tiny", "llama-tiny")]
    total, each = of_kind(found, "table")
    assert column(each, "position") == list(range(1, 7))
    assert column(each, "token") == column(alone[0], "token")
    assert column(each, "llama-tiny, guess") == column(alone[1], "best guess")
    assert column(each, "just before")[:2] == ["<|endoftext|>", "<|endoftext|>Lily"]
    bits = np.array(column(total, "bits"))
    assert_allclose(column(total, "bits per byte"), bits / len(SENTENCE))


def test_which_tokens_count_in_both_is_said(tmp_path):
    said = notes(parts("surprise", SENTENCE, "--against", "llama-tiny"))
    assert "Nothing stands before the text, so that its first token has no number" in said
    assert "of the tokens that both have numbers for: 5 of 6 tokens." in said
    assert "tiny:" not in said
    with_bos = notes(parts("surprise", SENTENCE, "--against", "llama-tiny", "--bos"))
    assert "The sums are of all tokens of the text, in both." in with_bos
    other = other_tokens(tmp_path)
    found = parts("surprise", SENTENCE, "--against", other)
    n, m = column(table(found), "tokens")
    every = sums(parts("surprise", SENTENCE, "--model", other))["tokens counted"] + 1
    told = f"the pieces that both have numbers for: {n} of 6 tokens of tiny and {m} of "
    assert f"{told}{every} tokens of other." in notes(found)


@pytest.mark.parametrize("turned", [False, True])
def test_a_token_that_one_alone_has_no_number_for_counts_in_neither(tmp_path, turned):
    other = with_frame(tmp_path)
    pair = ["--against", "tiny", "--model", other] if turned else ["--against", other]
    found = parts("surprise", SENTENCE, *pair)
    total, each = of_kind(found, "table")
    assert column(total, "tokens") == [5, 5]
    assert column(total, "bits per byte") == [b / 24 for b in column(total, "bits")]
    assert column(each, "token")[0] == " wanted"
    said = notes(found)
    begin = "other: <|endoftext|> stands before the text and has no number."
    assert begin in said
    assert "tiny: Nothing stands before the text, so that its first" in said
    assert "other: What the tokenizer puts after the text (1) is not" in said
    assert "of the tokens that both have numbers for: 5 of 6 tokens." in said
    assert "counted as well" not in said
    assert "first token has one" not in said
    alone = notes(parts("surprise", SENTENCE, "--model", other))
    assert "What the tokenizer puts after the text (1) is counted as well." in alone


def with_frame(tmp_path):
    """The model tiny with a tokenizer that puts a token before a text and one after it."""
    path = copy_of_tiny(tmp_path) / "tokenizer.json"
    made = Tokenizer.from_file(str(path))
    end = "<|endoftext|>"
    made.post_processor = TemplateProcessing(single=f"{end} $A {end}", special_tokens=[(end, 0)])
    made.save(str(path))
    return str(path.parent)


def test_where_two_differ_most():
    every = of_kind(parts("surprise", SENTENCE, "--against", "llama-tiny"), "table")[1]
    found = parts("surprise", SENTENCE, "--against", "llama-tiny", "--top", "2")
    far = sorted(every["rows"], key=lambda row: -abs(row["bits more"]))[:2]
    shown = of_kind(found, "table")[1]
    assert shown["title"].startswith("Where the two differ most: bits, and how many more ")
    assert shown["rows"] == far
    assert "3 more in the table with --top 5" in notes(found)
    assert "--no-color puts each number under its token" in notes(found)
    part = parts("surprise", SENTENCE, "--against", "llama-tiny", "--range", "2:4")
    assert of_kind(part, "table")[1]["rows"] == every["rows"][1:3]
    assert of_kind(part, "table")[0] == of_kind(found, "table")[0]


def test_on_a_page_the_table_is_narrower():
    args = ["surprise", SENTENCE, "--against", "llama-tiny"]
    every, few = (
        next(
            line for line in run_cli([*args, *more], env={"COLUMNS": "200"}).lines if "pos" in line
        )
        for more in ([], ["--top", "2"])
    )
    assert ("guess" in every, "just before" in every) == (True, False)
    assert ("guess" in few, "just before" in few) == (False, True)


def test_programs_are_told_what_the_second_model_is():
    args = ["surprise", SENTENCE, "--against", "llama-tiny"]
    (about,) = of_kind(parts(*args), "facts")
    assert about["name"] == "second_model"
    assert about["facts"] == asked("surprise", SENTENCE, "-m", "llama-tiny")["model"]
    assert "n_heads" not in run_cli(args).text


def copy_of_tiny(tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(Path(gptscope.__file__).parents[1] / "models" / "tiny", folder)
    return folder


def other_tokens(tmp_path):
    """The model tiny with a tokenizer that merges less, so that some words are cut otherwise."""
    folder = copy_of_tiny(tmp_path)
    made = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    made["model"]["merges"] = made["model"]["merges"][:150]
    (folder / "tokenizer.json").write_text(json.dumps(made), "utf-8")
    return str(folder)


def test_two_models_that_cut_the_text_otherwise(tmp_path):
    other = other_tokens(tmp_path)
    found = parts("surprise", SENTENCE, "--against", other)
    total, each = of_kind(found, "table")
    assert each["title"].startswith("Every piece, in order: ")
    assert "".join(column(each, "text")) == SENTENCE.removeprefix("Lily")
    tokens = table(parts("surprise", SENTENCE, "--model", other, "--all"))
    many = sum(column(tokens, "bits")[-len(tokens["rows"]) :])
    assert len(tokens["rows"]) > len(each["rows"])
    assert column(total, "tokens")[0] == 5
    assert column(total, "tokens")[1] < len(tokens["rows"])  # those within Lily are left out
    assert column(total, "bits")[1] < many
    assert column(total, "bits per byte") == [b / 24 for b in column(total, "bits")]
    assert_allclose(np.sum(column(each, "other, bits")), column(total, "bits")[1])
    assert "Compared are 5 pieces at whose ends both cut" in notes(found)
    assert "bits per byte are comparable" in notes(found)


def test_ids_are_fed_to_both():
    found = parts("surprise", "--ids", "3,4,5", "--against", "toy")
    assert "the same ids, which are not the same tokens to both" in notes(found)
    total, each = of_kind(found, "table")
    assert column(each, "position") == [1, 2]
    assert column(total, "bits per byte") == [None, None]
    alone = table(parts("surprise", "--ids", "3,4,5", "--model", "toy"))
    assert_allclose(column(each, "toy, bits"), column(alone, "bits"))


def test_edits_are_of_the_first_model_alone():
    edit = ["--edit", "layers.0.heads.0.out=zero"]
    found = parts("surprise", SENTENCE, "--against", "tiny", *edit)
    each = of_kind(found, "table")[1]
    assert "The edits change tiny (edited) alone." in notes(found)
    plain, edited = (table(parts("surprise", SENTENCE, *more)) for more in ([], edit))
    assert column(each, "tiny (edited), bits") == column(edited, "bits")
    assert column(each, "tiny, bits") == column(plain, "bits")


def test_one_token_of_two_models():
    found = parts("surprise", "Lily", "--against", "llama-tiny")
    assert of_kind(found, "passage") == []
    (total,) = of_kind(found, "table")
    assert column(total, "tokens") == [0, 0]
    assert column(total, "perplexity") == [None, None]


@pytest.mark.parametrize("fmt", ["table", "json", "csv", "markdown", "html", "svg"])
def test_hostile_text_is_harmless(tmp_path, fmt):
    for more in (["--top", "2"], ["--against", other_tokens(tmp_path / fmt)]):
        result = run_cli(["surprise", "--format", fmt, *more, "--", HOSTILE], env={"COLUMNS": "40"})
        assert result.status == 0
        assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", result.text) == []


def test_a_golden_model_without_a_tokenizer_against_itself():
    path = str(GOLDEN / "toy-rotary")
    found = parts("surprise", "--model", path, "--ids", "3,1,4", "--against", path)
    assert column(of_kind(found, "table")[1], "bits more") == [0.0, 0.0]
