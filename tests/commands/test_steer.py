import json
import re
import shlex

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from safetensors import safe_open

import gptscope
from tests.helpers.cli import asked, column, refused, rows, run_cli
from tests.helpers.families import family_folder

HAPPY = ["Tom was happy", "Lily felt very happy", "The dog was happy", "Her mom was happy"]
SAD = [text.replace("happy", "sad") for text in HAPPY]
PAIRS = [word for a, b in zip(HAPPY, SAD, strict=True) for word in ("--from", a, "--to", b)]
FEW = ["--from", "Tom was happy", "--to", "Tom was sad"]
PARK = "Lily went to the park. She was very"


def row(tiny, text, name="layers.1.output"):
    return gptscope.trace(tiny, tiny.tokenizer.encode(text))[name].astype(float)


def difference(tiny, name="layers.1.output", tokens="last"):
    of = (lambda x: x[-1]) if tokens == "last" else (lambda x: x.mean(axis=0))
    means = [np.mean([of(row(tiny, text, name)) for text in side], axis=0) for side in (HAPPY, SAD)]
    return means[1] - means[0]


def facts(made):
    (part,) = (p for p in made["parts"] if p["kind"] == "facts")
    return part["facts"]


def tables(made):
    return {p["title"]: p for p in made["parts"] if p["kind"] == "table"}


def saved(tmp_path, *args, name="steer.npz"):
    path = tmp_path / name
    result = run_cli(["steer", *args, "-o", str(path)])
    assert result.status == 0, result.err
    return path, result


# The file


@pytest.mark.parametrize("tokens", ["last", "all"])
def test_the_direction_is_in_the_file(tmp_path, tiny, tokens):
    path, result = saved(tmp_path, *PAIRS, "--tokens", tokens)
    held = np.load(path, allow_pickle=False)
    expected = difference(tiny, tokens=tokens)
    assert_allclose(held["direction"], expected, atol=1e-5)
    assert held["direction"].dtype == "float32"
    words = [str(held[name]) for name in ("value", "model", "tokens")]
    assert words == ["layers.1.output", "tiny", tokens]
    assert (held["from"].tolist(), held["to"].tolist()) == (HAPPY, SAD)
    assert result.err == f"a direction of 128 numbers -> {path}\n"
    assert "told apart, the same texts" in result.text


def test_safetensors(tmp_path, tiny):
    path, _ = saved(tmp_path, *PAIRS, name="steer.safetensors")
    with safe_open(path, "numpy") as held:
        assert list(held.keys()) == ["direction"]
        assert_allclose(held.get_tensor("direction"), difference(tiny), atol=1e-5)
        about = held.metadata()
    assert (about["value"], about["tokens"]) == ("layers.1.output", "last")
    assert (json.loads(about["from"]), json.loads(about["to"])) == (HAPPY, SAD)


def test_the_other_way_round_is_the_opposite(tmp_path):
    one, _ = saved(tmp_path, *FEW, name="one.npz")
    turned = ["--to", "Tom was happy", "--from", "Tom was sad"]
    other, _ = saved(tmp_path, *turned, name="other.npz")
    assert_array_equal(np.load(one)["direction"], -np.load(other)["direction"])


def test_float64(tmp_path):
    path, _ = saved(tmp_path, *FEW, "--dtype", "float64")
    assert np.load(path)["direction"].dtype == "float64"


def test_a_file_is_not_overwritten(tmp_path):
    path, _ = saved(tmp_path, *FEW)
    before = path.read_bytes()
    said, hint = refused(run_cli(["steer", *PAIRS, "-o", str(path)]), 2)
    assert (said, hint) == (f"{path} is there already", "--force overwrites it")
    assert path.read_bytes() == before
    saved(tmp_path, *PAIRS, "--force")
    assert path.read_bytes() != before


def test_a_pipe_gets_the_direction_and_nothing_else(tmp_path):
    path, _ = saved(tmp_path, *FEW)
    result = run_cli(["steer", *FEW, "-f", "npz"])
    assert (result.status, result.err) == (0, "")
    assert result.out == path.read_bytes()


def test_the_format_is_of_what_is_shown_beside_a_file(tmp_path):
    path, result = saved(tmp_path, *FEW, "--format", "json")
    assert json.loads(result.out)["command"] == "steer"
    assert "direction" in np.load(path)
    view, result = saved(tmp_path, *FEW, "--format", "json", name="view.json")
    assert (result.text, json.loads(view.read_text())["command"]) == ("", "steer")


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.json", "a.svg", "a"])
def test_a_file_without_the_direction_must_be_asked_for(tmp_path, name):
    path = tmp_path / name
    said, hint = refused(run_cli(["steer", *FEW, "-o", str(path)]), 2)
    assert said == f"{path} would hold what is shown, and not the direction"
    assert not path.exists()
    fmt = re.search(r"--format (\w+) writes", hint)[1]
    saved(tmp_path, *FEW, "--format", fmt, name=name)
    assert b"layers.1.output" in path.read_bytes()


# What is shown


def test_facts(tiny):
    made = asked("steer", *PAIRS, "--layer", "2")
    found, v = facts(made), difference(tiny, "layers.2.output")
    assert (found["model"], found["value"]) == ("tiny", "layers.2.output")
    assert found["length of the direction"] == pytest.approx(np.linalg.norm(v), rel=1e-5)
    ends = {text: row(tiny, text, "layers.2.output")[-1] for text in HAPPY + SAD}
    whole = np.mean([np.linalg.norm(x) for x in ends.values()])
    assert found["mean length of the value"] == pytest.approx(whole, rel=1e-5)
    assert found["direction / value"] == pytest.approx(np.linalg.norm(v) / whole, rel=1e-5)
    assert found["told apart, the same texts"] == "8 of 8"
    assert found["told apart, each left out"] == "8 of 8"
    pairs = [ends[b] - ends[a] for a, b in zip(HAPPY, SAD, strict=True)]
    cosines = [x @ v / np.linalg.norm(x) / np.linalg.norm(v) for x in pairs]
    assert found["cosine of the pairs, mean"] == pytest.approx(np.mean(cosines), rel=1e-5)
    assert found["cosine of the pairs, smallest"] == pytest.approx(min(cosines), rel=1e-5)
    lies = {text: x @ v / np.linalg.norm(v) for text, x in ends.items()}
    for side, texts in zip(
        tables(made)["Where the texts lie along the direction"]["rows"], (HAPPY, SAD), strict=True
    ):
        each = [lies[text] for text in texts]
        assert side["texts"] == 4
        assert side["mean along it"] == pytest.approx(np.mean(each), rel=1e-5)
        assert side["standard deviation"] == pytest.approx(np.std(each, ddof=1), rel=1e-4)
    named = tables(made)["The texts"]
    assert column(named, "text") == [t for pair in zip(HAPPY, SAD, strict=True) for t in pair]
    assert column(named, "along it") == pytest.approx([lies[t] for t in column(named, "text")])


def test_tokens_that_it_raises(tiny):
    made = asked("steer", *PAIRS, "--layer", "3", "--top", "5")
    (table,) = (t for name, t in tables(made).items() if name.startswith("Tokens"))
    v = difference(tiny, "layers.3.output")
    given = ((v - v.mean()) * tiny.ln_final.gain) @ np.asarray(tiny.output_table).T
    given -= given.mean()
    order = np.argsort(-given)
    text = tiny.tokenizer.text_of
    assert column(table, "raised") == [text(int(i)) for i in order[:5]]
    assert column(table, "lowered") == [text(int(i)) for i in order[::-1][:5]]
    assert column(table, "raised by") == pytest.approx(given[order[:5]], rel=1e-4)


def test_texts_that_are_no_pairs():
    made = asked("steer", *FEW, "--to", "Lily cried")
    assert [list(r)[-1] for r in tables(made)["The texts"]["rows"]] == ["along it"] * 3
    found = facts(made)
    told = [found[f"told apart, {how}"] for how in ("the same texts", "each left out")]
    assert told == [None, None]
    assert any("always told apart" in p.get("text", "") for p in made["parts"])
    assert not [name for name in found if "pairs" in name]


def test_one_text_on_either_side_has_no_spread():
    made = asked("steer", *FEW)
    sides = tables(made)["Where the texts lie along the direction"]
    assert column(sides, "standard deviation") == [None, None]
    assert "The texts" not in tables(made)


def test_the_same_texts_on_both_sides():
    made = asked("steer", "--from", "Tom ran", "--to", "Tom ran")
    assert facts(made)["length of the direction"] == 0
    assert any("the direction is 0" in p.get("text", "") for p in made["parts"])
    assert column(tables(made)["Where the texts lie along the direction"], "mean along it") == [
        None,
        None,
    ]


def test_the_line_to_copy_works(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run_cli(["steer", *PAIRS, "-o", "my file's.npz", "--layer", "2", "-f", "json"])
    said = json.loads(result.out)["parts"][-1]["text"]
    line = shlex.split(re.search(r"gptscope (generate TEXT .*)", said)[1])
    assert line == ["generate", "TEXT", "--edit", "layers.2.output=+my file's.npz*1"]
    line[1] = PARK
    assert run_cli([*line, "-n", "1", "--greedy"]).text == f"{PARK} sad\n"


# Which value, which tokens


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ([], "layers.1.output"),
        (["--layer", "-1"], "layers.3.output"),
        (["--value", "mlp_out", "--layer", "0"], "layers.0.mlp_out"),
        (["--value", "heads.2.out"], "layers.1.heads.2.out"),
        (["--value", "embeddings"], "embeddings"),
        (["--value", "layers.3.mlp_act"], "layers.3.mlp_act"),
        (["--value", "blocks.2.hook_resid_post"], "layers.2.output"),
        (["--value", "ln_final.out"], "ln_final.out"),
    ],
)
def test_any_list_can_be_looked_at(options, name, tmp_path, tiny):
    path, _ = saved(tmp_path, *PAIRS, *options)
    held = np.load(path)
    assert str(held["value"]) == name
    assert_allclose(held["direction"], difference(tiny, name), atol=2e-5)
    answer = asked("next", "Tom was", "--edit", f"{name}=+{path}*0.5")
    assert answer["edits"] == [f"{name}=+{path}*0.5"]


def test_what_is_no_part_of_the_stream_raises_no_token():
    made = asked("steer", *FEW, "--value", "heads.0.out")
    assert any("is no part of the stream" in p.get("text", "") for p in made["parts"])


def test_bos_never_counts(tmp_path):
    found = []
    for name, tokens in (("a", "all"), ("b", "last")):
        args = ["--from", "a", "--to", "b", "--bos", "--tokens", tokens]
        path, _ = saved(tmp_path, *args, name=f"{name}.npz")
        found.append(np.load(path)["direction"])
    assert_array_equal(*found)  # one token is left of either text
    assert found[0].any()


def test_edits_hold_and_are_told():
    made = asked("steer", *FEW, "--edit", "layers.0.output=zero")
    assert made["edits"] == ["layers.0.output=zero"]
    assert facts(made)["length of the direction"] == 0


def test_a_model_without_a_tokenizer_takes_ids():
    args = ["--model", family_folder("gpt2"), "--from", "ids:1,2", "--to", "ids:3"]
    assert facts(asked("steer", *args))["length of the direction"] > 0
    said, hint = refused(run_cli(["steer", "--from", "x", *args]), 2)
    assert said.startswith("--from 1: ")
    assert hint == "--from ids:643,414"


# Files of texts


def test_a_text_in_each_line(tmp_path, tiny):
    (tmp_path / "happy").write_bytes("\n".join(HAPPY).encode() + b"\n\n")
    (tmp_path / "sad").write_bytes("\r\n".join(SAD[1:]).encode())
    args = ["--from-file", f"{tmp_path}/happy", "--to", SAD[0], "--to-file", f"{tmp_path}/sad"]
    path, _ = saved(tmp_path, *args)
    held = np.load(path)
    assert (held["from"].tolist(), held["to"].tolist()) == (HAPPY, SAD)
    assert_allclose(held["direction"], difference(tiny), atol=1e-5)


def test_standard_input_once():
    result = run_cli(["steer", "--from-file", "-", "--to", "b", "-f", "json"], stdin=b"a\nc\n")
    assert column(tables(json.loads(result.out))["The texts"], "text") == ["a", "c", "b"]
    said, _ = refused(run_cli(["steer", "--from-file", "-", "--to-file", "-"]), 2)
    assert said.startswith("standard input is read once")


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ([], "steer needs a text on either side: there is no --from"),
        (["--from", "a"], "steer needs a text on either side: there is no --to"),
        (["--from", "", "--to", "b"], "--from 1: the text is empty"),
        (["--from", "a", "--to", "b", "--to", ""], "--to 2: the text is empty"),
        (["--from", "a\udcff", "--to", "b"], "--from 1: character 1 of the text"),
        (["--from", "word " * 200, "--to", "b"], "--from 1: the text is 2.. tokens long"),
        ([*FEW, "--layer", "4"], "layer 4 is out of range"),
        ([*FEW, "--value", "nonsense"], r"no value is called layers\.1\.nonsense"),
        ([*FEW, "--value", "heads.4.out"], "head 4 is out of range"),
        ([*FEW, "--value", "heads.0.weights"], "--value .* is no list of one width"),
        ([*FEW, "--value", "ln1.variance"], "--value .* is no list of one width"),
        ([*FEW, "--value", "mlp_gate"], "--value mlp_gate: .* have no gates"),
        ([*FEW, "--value", "blocks.0.attn.hook_z"], "--value .* is of all heads"),
        ([*FEW, "--value", "layers.0.output", "-l", "1"], "--value .* is a whole name"),
        ([*FEW, "--edit", "layers.1.output=*1e38"], r"layers\.1\.output holds NaN or infinity"),
    ],
)
def test_what_is_refused(args, sentence):
    said, _ = refused(run_cli(["steer", *args]), 2)
    assert re.match(sentence, said)


@pytest.mark.parametrize("content", [b"", b"\n \n\r\n"])
def test_a_file_without_texts(tmp_path, content):
    (tmp_path / "none").write_bytes(content)
    said, _ = refused(run_cli(["steer", "--from-file", f"{tmp_path}/none", "--to", "b"]), 2)
    assert said == f"{tmp_path}/none holds no text: one is wanted in each line"


def test_a_file_that_is_no_text(tmp_path):
    (tmp_path / "bytes").write_bytes(b"\xff")
    refused(run_cli(["steer", "--from-file", f"{tmp_path}/bytes", "--to", "b"]), 1)
    refused(run_cli(["steer", "--from-file", f"{tmp_path}/nothing", "--to", "b"]), 1)


@pytest.mark.parametrize("fmt", ["table", "csv", "html", "svg", "markdown"])
def test_hostile_texts_are_shown_not_sent(fmt):
    texts = ["[/b] \u202e\u6f22<a>\n", "a\x1b[31m", "=1+1"]
    args = [word for text in texts for word in ("--from", text)]
    result = run_cli(["steer", *args, "--to", "\x00b", "-f", fmt])
    assert result.status == 0
    assert not re.search("[\x00-\x09\x0b-\x1f\u202e]", result.text)


def test_hostile_texts_in_files(tmp_path):
    path, _ = saved(tmp_path, "--from", "a\x1b[31m\u202e", "--to", "nul\x00")
    held = np.load(path, allow_pickle=False)
    assert (held["from"].tolist(), held["to"].tolist()) == (["a\x1b[31m\u202e"], ["nul<0x00>"])


# Steering


def test_steering_what_is_drawn(tmp_path):
    path, _ = saved(tmp_path, *PAIRS, "--layer", "2")
    edit = f"layers.2.output=+{path}*0.5"
    plain = asked("next", PARK, "--top", "1")["parts"][0]
    steered = asked("next", PARK, "--top", "1", "--edit", edit)["parts"][0]
    assert (column(plain, "token"), column(steered, "token")) == ([" happy"], [" sad"])
    assert (
        run_cli(["generate", PARK, "-n", "1", "--greedy", "--edit", edit]).text == f"{PARK} sad\n"
    )


def test_a_stream_and_a_table_say_what_was_changed(tmp_path):
    path, _ = saved(tmp_path, *PAIRS, "--layer", "2")
    edit = f"layers.2.output=+{path}*0.5"
    streamed = run_cli(["generate", PARK, "-n", "3", "--edit", edit])
    assert f"changed: {edit}\n" in streamed.err
    assert "changed" not in streamed.text
    steps = run_cli(["generate", PARK, "-n", "3", "--steps", "--edit", edit])
    assert f"changed: {edit}" in steps.text
    assert asked("generate", PARK, "-n", "3", "--edit", edit)["edits"] == [edit]


@pytest.mark.parametrize("form", ["npz", "safetensors"])
@pytest.mark.parametrize(
    ("edit", "model", "told"),
    [
        ("layers.2.output", "tiny", False),
        ("layers.2:3.output[-1]", "tiny", False),
        ("blocks.2.hook_resid_post", "tiny", False),
        ("layers.1.output", "tiny", True),
        ("layers.*.output", "tiny", True),
        ("blocks.1.hook_resid_post", "tiny", True),
        ("layers.2.output", "llama-tiny", True),
        ("embeddings", "tiny", True),
    ],
)
def test_a_direction_of_another_value_or_model_is_told(tmp_path, edit, model, told, form):
    path, _ = saved(tmp_path, *FEW, "--layer", "2", name=f"s.{form}")
    result = run_cli(["next", "Tom was", "-m", model, "--edit", f"{edit}=+{path}*2"])
    assert result.status == 0
    place = edit.removesuffix("[-1]")
    said = f"note: {path} was made of layers.2.output of tiny, and is added to {place} of {model}\n"
    assert result.err == (said if told else "")


def test_one_name_in_transformer_lens_is_one_value(tmp_path):
    path, _ = saved(tmp_path, *FEW, "--layer", "2", "--value", "mlp_out")
    result = run_cli(["next", "Tom was", "--edit", f"blocks.2.hook_mlp_out=+{path}"])
    assert (result.status, result.err) == (0, "")


def test_a_direction_that_does_not_say_what_it_was_made_of(tmp_path):
    np.savez(tmp_path / "own.npz", direction=np.zeros(128), value=np.array("x"))
    result = run_cli(["next", "Tom was", "--edit", f"layers.0.output=+{tmp_path}/own.npz"])
    assert (result.status, result.err) == (0, "")


def test_what_a_file_says_is_shown_not_sent(tmp_path):
    hostile = np.array("\x1b[31m\u202e\n")
    np.savez(tmp_path / "own.npz", direction=np.zeros(128), value=hostile, model=hostile)
    result = run_cli(["next", "Tom was", "--edit", f"layers.0.output=+{tmp_path}/own.npz"])
    assert result.status == 0
    assert result.err.count("\n") == 1
    assert not {"\x1b", "\u202e"} & set(result.err)


def test_the_parts_have_names():
    named = [p["name"] for p in asked("steer", *PAIRS)["parts"] if p["kind"] != "note"]
    assert named == ["direction", "sides", "texts", "tokens"]


def test_a_direction_of_another_width(tmp_path):
    path, _ = saved(tmp_path, *FEW)
    result = run_cli(["generate", "Tom", "-n", "2", "--edit", f"layers.0.heads.0.out=+{path}"])
    assert (result.status, result.out) == (2, b"")
    why = "error: layers.0.heads.0.out: 128 does not fit where there is 1 x 32\n"
    assert result.err.endswith(why)


def test_rows_of_the_table_of_tokens_are_numbered():
    (table,) = (t for n, t in tables(asked("steer", *FEW, "--top", "3")).items() if "Tokens" in n)
    assert [r[0] for r in rows(table)] == [1, 2, 3]
