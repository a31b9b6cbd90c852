import pytest
from numpy.testing import assert_allclose
from rich.cells import cell_len

import gptscope
from gptscope.model.presets import PRESETS
from gptscope.model.shipped import shipped_folders
from tests.helpers.cli import asked, column, parts, refused, run_cli, spawn
from tests.helpers.families import family_folder
from tests.helpers.folders import GOLDEN

TOY = ["--d", "8", "--L", "2", "--V", "8", "--ctx", "4"]
TINY = ["--d", "128", "--L", "4", "--V", "4096", "--ctx", "128"]
NOTHING = ["--d", "8", "--L", "0", "--V", "0", "--ctx", "0"]
PARTS = ["embeddings", "attention", "network", "normalisations"]
OFF = "off, share of the total"


def table_of(*args):
    (table,) = (part for part in parts("params", *args) if part["kind"] == "table")
    return table


def facts_of(*args):
    found = [part for part in parts("params", *args) if part["kind"] == "facts"]
    return {part["title"]: part["facts"] for part in found}


def thumb_of(*args):
    (facts,) = (f for title, f in facts_of(*args).items() if title.startswith("The rule of thumb"))
    return facts


# Sizes


@pytest.mark.parametrize(
    ("sizes", "counts"),
    [
        (TOY, [96, 576, 1_104, 80, 1_856]),
        (["--d", "768", "--L", "12"], [40_170_240, 28_348_416, 56_669_184, 38_400, 125_226_240]),
        (["--d", "768", "--L", "12", "--ctx", "1024"], [39_383_808, *[None] * 3, 124_439_808]),
        (["--d", "12288", "--L", "96"], [*[None] * 4, 174_604_259_328]),
        (["--d", "8", "--L", "0", "--V", "3", "--ctx", "0"], [24, 0, 0, 16, 40]),
        ([*TOY, "--ff", "10"], [96, 576, 2 * (2 * 80 + 10 + 8), 80, 1_108]),
        (["--preset", "toy"], [96, 576, 1_104, 80, 1_856]),
        (["--preset", "gpt1"], [31_480_320, 28_348_416, 56_669_184, 36_864, 116_534_784]),
    ],
)
def test_counts(sizes, counts):
    table = table_of(*sizes)
    assert column(table, "part") == [*PARTS, "total"]
    pairs = zip(column(table, "parameters"), counts, strict=True)
    assert [(n, wanted) for n, wanted in pairs if wanted not in (n, None)] == []


@pytest.mark.parametrize(
    "sizes", [TOY, ["--d", "768", "--L", "12"], NOTHING, ["--preset", "gpt2", "--untied"]]
)
def test_parts_make_the_whole(sizes):
    table = table_of(*sizes)
    *counts, total = column(table, "parameters")
    *shares, whole = column(table, "share")
    assert sum(counts) == total
    assert_allclose([sum(shares), whole], [1, 1], rtol=1e-12)


@pytest.mark.parametrize("sizes", [NOTHING, ["--preset", "gpt1", *NOTHING]])
def test_nothing_is_divided_by_nothing(sizes):
    assert run_cli(["params", *sizes]).status == 0
    assert thumb_of(*sizes)["12 L d^2"] == 0
    if "gpt1" in sizes:  # not even a last norm
        assert set(column(table_of(*sizes), "share")) == {None}
        assert thumb_of(*sizes)[OFF] is None


@pytest.mark.parametrize(
    ("sizes", "part", "formula"),
    [
        (TOY, "network", "L (8 d^2 + 5 d)"),
        ([*TOY, "--ff", "9"], "network", "L (2 d ff + ff + d)"),
        (TOY, "normalisations", "(4 L + 2) d"),
        (["--preset", "gpt1"], "normalisations", "4 L d"),
        ([*TOY, "--untied"], "unembedding", "V d"),
    ],
)
def test_formulas(sizes, part, formula):
    (row,) = (row for row in table_of(*sizes)["rows"] if row["part"] == part)
    assert row["formula"] == formula


def test_an_output_of_its_own_is_a_part_of_its_own():
    table = table_of(*TOY, "--untied")
    assert column(table, "part") == [*PARTS, "unembedding", "total"]
    assert column(table, "parameters")[-2:] == [64, 1_856 + 64]


def test_sizes_are_repeated():
    assert facts_of("--d", "8", "--L", "2")["Sizes"] == {
        "d, width": 8,
        "L, blocks": 2,
        "V, vocabulary": 50_257,
        "ctx, rows of positions": 2_048,
        "ff, feed-forward width": 32,
    }


def test_the_rule_of_thumb():
    assert thumb_of(*TOY) == {
        "12 L d^2": 12 * 2 * 64,
        "all but the embeddings and the output": 1_760,
        "off, share of these": pytest.approx(1536 / 1760 - 1),
        OFF: pytest.approx(1536 / 1856 - 1),
    }


def test_the_rule_of_thumb_of_the_smallest_gpt2_is_a_third_below():
    assert round(thumb_of("--preset", "gpt2")[OFF], 3) == -0.317


def test_the_rule_of_thumb_of_another_feed_forward_width():
    assert thumb_of(*TOY, "--ff", "10")["L (4 d^2 + 2 d ff)"] == 2 * (4 * 64 + 2 * 8 * 10)


def test_it_is_that_of_the_library():
    assert gptscope.n_params(8, 2, V=8, ctx=4).total == 1_856


def test_there_is_no_model_and_no_input():
    answer = asked("params", *TOY)
    assert (answer["model"], answer["input"]) == (None, None)


def test_large_numbers_have_commas():
    assert "174,604,259,328" in run_cli(["params", "--d", "12288", "--L", "96"]).text


# Presets


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_counted_and_named(name):
    sizes, preset = facts_of("--preset", name)[f"Sizes of {name}"], PRESETS[name].sizes
    assert list(sizes.values()) == [preset.d, preset.L, preset.V, preset.ctx, 4 * preset.d]


@pytest.mark.parametrize(
    ("name", "paper", "number", "off"),
    [
        ("gpt2", "Radford et al. 2019, table 2", 117_000_000, -0.0598),
        ("gpt3-small", "Brown et al. 2020, table 2.1", 125_000_000, -0.0018),
        ("gpt3", "Brown et al. 2020, table 2.1", 175_000_000_000, 0.0023),
    ],
)
def test_what_the_paper_says(name, paper, number, off):
    facts = facts_of("--preset", name)[f"As published ({paper})"]
    assert facts == {"parameters": number, OFF: pytest.approx(off, abs=5e-5)}


@pytest.mark.parametrize("name", ["gpt1", "toy", "tiny"])
def test_what_no_paper_says_is_not_shown(name):
    assert len(facts_of("--preset", name)) == 2


@pytest.mark.parametrize(
    ("changes", "key", "value"),
    [
        (["--d", "16"], "d, width", 16),
        (["--L", "0"], "L, blocks", 0),
        (["--V", "0"], "V, vocabulary", 0),
        (["--ctx", "2048"], "ctx, rows of positions", 2_048),
        (["--ff", "9"], "ff, feed-forward width", 9),
    ],
)
def test_sizes_take_the_place_of_those_of_the_preset(changes, key, value):
    before, after = facts_of("--preset", "gpt2"), facts_of("--preset", "gpt2", *changes)
    sizes = after["Sizes of gpt2, changed"]
    assert sizes[key] == value
    others = {k for k in sizes if sizes[k] != before["Sizes of gpt2"][k]} - {key}
    assert others <= {"ff, feed-forward width"}  # 4 d follows d
    assert len(after) == 2  # what the paper says is not about this one


def test_a_preset_that_is_given_its_own_sizes_is_the_preset():
    assert asked("params", "--preset", "gpt2", "--d", "768") == asked("params", "--preset", "gpt2")


def test_the_shell_completes_presets():
    words = {"COMP_WORDS": "gptscope params --preset gpt2-", "COMP_CWORD": "3"}
    done = spawn([], env={"_GPTSCOPE_COMPLETE": "complete_bash", **words})
    assert done.text.split() == ["gpt2-medium", "gpt2-large", "gpt2-xl"]


# Models


def test_a_llama_has_formulas_of_its_own():
    table = next(
        part for part in asked("params", "--model", "llama-tiny")["parts"] if "rows" in part
    )
    assert column(table, "formula")[:3] == ["V d", "L (2 d G d_h + 2 d^2)", "3 L d F"]
    assert column(table, "parameters")[-1] == 1_250_432


@pytest.mark.parametrize("name", sorted(set(shipped_folders()) - {"llama-tiny"}))
def test_the_tensors_of_a_model_agree_with_the_formula(name):
    answer = asked("params", "--model", name)
    _, table, note, _ = answer["parts"]
    model = gptscope.load(name)
    assert answer["model"]["name"] == name
    assert column(table, "part") == [*PARTS, "total"]
    assert column(table, "parameters") == column(table, "by the formula")
    assert column(table, "parameters")[-1] == answer["model"]["n_params"] == model.n_params
    assert note["text"].startswith(
        "The formula agrees with the tensors in every part, and the tied"
    )


def test_the_count_is_that_of_a_real_model(tiny):
    assert table_of(*TINY)["rows"][-1]["parameters"] == tiny.n_params
    assert column(table_of("--model", "tiny"), "parameters") == column(
        table_of(*TINY), "parameters"
    )


def test_a_computed_table_of_positions_has_no_parameters():
    assert facts_of("--model", "toy")["Sizes of toy"]["ctx, rows of positions"] == 0


def test_an_untied_model_has_an_output_of_its_own():
    _, table, note, _ = parts("params", "--model", str(GOLDEN / "gpt2-variant"))
    spec = gptscope.load(GOLDEN / "gpt2-variant").spec
    row = table["rows"][-2]
    assert (row["part"], row["parameters"]) == ("unembedding", spec.n_vocab * spec.d_model)
    assert note["text"] == "The formula agrees with the tensors in every part."


def test_a_model_without_biases_is_told_apart():
    _, table, note, _ = parts("params", "--model", str(GOLDEN / "nanogpt"))
    model = gptscope.load(GOLDEN / "nanogpt")
    d, L, ff = model.spec.d_model, model.spec.n_layers, model.spec.d_ff
    off = {"attention": 4 * L * d, "network": L * (ff + d), "normalisations": (2 * L + 1) * d}
    for row in table["rows"][:-1]:
        assert row["by the formula"] - row["parameters"] == off.get(row["part"], 0)
    assert column(table, "parameters")[-1] == model.n_params
    where = ", ".join(f"{part} -{n}" for part, n in off.items())
    assert f"differ from the formula: {where}." in note["text"]
    assert note["text"].endswith("this model has no biases and norms without a shift.")


# What is refused


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        ([], "Missing options '--d' and '--L'."),
        (["--V", "3"], "Missing options '--d' and '--L'."),
        (["--L", "2"], "Missing option '--d'."),
        (["--d", "2"], "Missing option '--L'."),
        (["--preset", "gpt4"], "preset 'gpt4' is not one of: gpt1, gpt2, gpt2-medium, "),
        (["--preset", "gpt2", "--d", "0"], "Invalid value for '--d'"),
        (["-m", "tiny", "--d", "8"], "--model counts the tensors of a model: it takes no --preset"),
        (["-m", "tiny", "--untied"], "--model counts the tensors of a model: it takes no --preset"),
        (["-m", "tiny", "--preset", "gpt2"], "--model counts the tensors of a model"),
    ],
)
def test_what_is_refused(args, sentence):
    said, _ = refused(run_cli(["params", *args]), 2)
    assert said.startswith(sentence)


def test_the_default_model_of_other_commands_changes_nothing():
    env = {"GPTSCOPE_MODEL": "toy"}
    assert run_cli(["params", *TOY], env=env) == run_cli(["params", *TOY])


@pytest.mark.parametrize(
    "args", [["--preset", "gpt3"], ["--preset", "gpt2", "--untied", "--ff", "9"], ["-m", "tiny"]]
)
def test_nothing_is_wider_than_the_screen(args):
    result = run_cli(["params", *args], env={"COLUMNS": "40"})
    assert (result.status, result.err) == (0, "")
    assert [line for line in result.lines if cell_len(line) > 40] == []


@pytest.mark.parametrize(
    ("case", "formulas", "why"),
    [
        (
            "llama-grouped",
            {"attention": "L (2 d G d_h + 2 d H d_h + 2 G d_h + H d_h + d)"},
            "shared keys and values",
        ),
        ("gptj", {"attention": "4 L d^2", "normalisations": "2 L d + 2 d"}, "one norm in a block"),
        ("gemma2", {"normalisations": "4 L d + d"}, "gates and four norms in a block"),
        ("opt-350m", {"embeddings": "V d_e + ctx d + 2 d d_e"}, "tables that are widened"),
        ("bloom", {"normalisations": "4 L d + 4 d"}, "a norm of the embeddings"),
    ],
)
def test_other_models_have_formulas_of_their_own(case, formulas, why):
    folder = family_folder(case)
    _, table, letters, note, _ = parts("params", "--model", folder)
    rows = {row["part"]: row for row in table["rows"]}
    assert {part: rows[part]["formula"] for part in formulas} == formulas
    assert column(table, "by the formula") == column(table, "parameters")
    assert rows["total"]["parameters"] == gptscope.load(folder).n_params
    assert letters["text"].startswith("The formulas are those of this very model, with L = 2, ")
    assert why in note["text"]
