import numpy as np
import pytest
from numpy.testing import assert_allclose
from rich.cells import cell_len

import gptscope
from gptscope.engine.ops import turn
from gptscope.model.positions import sinusoidal_positions
from tests.helpers.cli import asked, column, parts, refused, run_cli
from tests.helpers.families import family_folder
from tests.helpers.folders import changed_copy

TOY = ["--model", "toy"]
LEARNED = ["facts", "table", "note", "grid", "note", "table", "note"]
COMPUTED = [*LEARNED[:3], "table", "note", *LEARNED[3:]]
TABLE_NAME = "transformer.wpe.weight"
TABLE = sinusoidal_positions(18, 8)


def grid_of(found):
    (grid,) = (part for part in found if part["kind"] == "grid")
    return grid


def cosines(table):
    lengths = np.sqrt((table**2).sum(-1))
    return np.array([[a @ b for b in table] for a in table]) / np.outer(lengths, lengths)


@pytest.mark.parametrize(("model", "kinds"), [("toy", COMPUTED), ("tiny", LEARNED)])
def test_what_is_shown(model, kinds):
    answer = asked("positions", "--model", model)
    assert [part["kind"] for part in answer["parts"]] == kinds
    assert (answer["command"], answer["model"]["name"]) == ("positions", model)
    assert answer["input"] is None


def test_the_small_model_is_looked_at_unless_another_is_named():
    assert asked("positions") == asked("positions", "--model", "tiny")
    env = {"GPTSCOPE_MODEL": "toy"}
    assert run_cli(["positions"], env=env).out == run_cli(["positions", *TOY]).out


@pytest.mark.parametrize(
    ("model", "facts"),
    [
        ("toy", {"kind": "sinusoidal, computed", "positions": 18, "width d": 8}),
        ("tiny", {"kind": "learned", "positions": 128, "width d": 128}),
    ],
)
def test_which_table_it_is(model, facts):
    assert parts("positions", "--model", model)[0]["facts"] == facts


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], range(16)),
        (["--first", "3"], range(3)),
        (["--first", "99"], range(18)),
        (["--at", "0,5,17"], [0, 5, 17]),
        (["--at", "-1,2"], [17, 2]),
    ],
)
def test_rows_of_the_table(options, shown):
    table = parts("positions", *TOY, *options)[1]
    assert column(table, "position") == list(shown)
    assert_allclose(column(table, "values"), TABLE[list(shown)], atol=1e-6)
    assert_allclose(column(table, "length"), 2, rtol=1e-6)  # four pairs of length 1


def test_rows_of_a_learned_table(tiny):
    table = parts("positions", "--model", "tiny", "--at", "0,127")[1]
    assert np.array_equal(np.float32(column(table, "values")), tiny.position_table[[0, 127]])


def test_a_table_of_half_precision_is_widened(tmp_path):
    stored = np.float16(np.random.default_rng(0).normal(size=(24, 16)))
    folder = changed_copy(tmp_path / "half", tensors={TABLE_NAME: stored})
    found = parts("positions", "--model", str(folder), "--first", "2")
    assert np.array_equal(np.float32(column(found[1], "values")), np.float32(stored[:2]))
    assert_allclose(grid_of(found)["values"], cosines(np.float64(stored[:2])), atol=1e-12)


def test_the_waves():
    waves, words = parts("positions", *TOY)[3:5]
    expected = 2 * np.pi * np.array([1, 10, 100, 1000])
    assert column(waves, "pair") == [0, 1, 2, 3]
    assert column(waves, "dims") == ["0, 1", "2, 3", "4, 5", "6, 7"]
    assert_allclose(column(waves, "wavelength"), expected, rtol=1e-12)
    assert_allclose(column(waves, "waves in the table"), 18 / expected, rtol=1e-12)
    for number in ("6.2832", "10000^(6/8) = 6283.2", "62831.9"):
        assert number in words["text"]


@pytest.mark.parametrize(
    ("options", "shown"),
    [([], range(0, 18, 2)), (["--first", "5"], range(5)), (["--at", "0,7,17"], [0, 7, 17])],
)
def test_similarity(options, shown):
    grid = grid_of(parts("positions", *TOY, *options))
    assert grid["rows"] == grid["columns"] == [str(p) for p in shown]
    assert_allclose(grid["values"], cosines(TABLE[list(shown)]), atol=1e-6)


def test_similarity_of_many_positions_is_that_of_evenly_spaced_ones(tiny):
    grid = grid_of(parts("positions"))
    assert grid["rows"] == [str(p) for p in range(0, 128, 16)]
    assert_allclose(grid["values"], cosines(np.float64(tiny.position_table[::16])), atol=1e-6)


@pytest.mark.parametrize("model", ["toy", "tiny"])
def test_similarity_by_distance(model):
    table, words = parts("positions", "--model", model)[-2:]
    alike = cosines(np.float64(gptscope.load(model).position_table))
    n = len(alike)
    doubles = [k for k in (16, 32, 64) if k < n]
    assert column(table, "distance") == [*range(1, 9), *doubles]
    for row in table["rows"]:
        of = np.diagonal(alike, row["distance"])
        expected = [of.mean(), of.min(), of.max()]
        assert_allclose([row["mean"], row["least"], row["most"]], expected, atol=1e-6)
    assert ("depends only on how far apart" in words["text"]) == (model == "toy")


def test_a_computed_table_knows_only_distances():
    table = parts("positions", *TOY)[-2]
    assert_allclose(column(table, "least"), column(table, "most"), atol=1e-6)


@pytest.mark.parametrize(("model", "who"), [("toy", "positions 6 apart"), ("tiny", "neighbours")])
def test_who_is_most_alike(model, who):
    table, words = parts("positions", "--model", model)[-2:]
    best = max(table["rows"], key=lambda row: row["mean"])
    assert best["distance"] == (6 if model == "toy" else 1)
    assert words["text"].startswith(f"Of these, {who} are most alike (mean {best['mean']:.3f})")


def test_exact_numbers():
    grid, words = parts("positions", *TOY, "--dims", "2:4", "--at", "3,5")
    assert (grid["rows"], grid["columns"]) == (["3", "5"], ["2", "3"])
    assert_allclose(grid["values"], TABLE[[3, 5]][:, 2:4], atol=1e-6)
    assert "2 of 18 positions" in words["text"]
    assert "2 of 8 dimensions" in words["text"]


def test_exact_numbers_of_as_many_positions_as_strips():
    assert grid_of(parts("positions", *TOY, "--dims", "0"))["rows"] == [str(p) for p in range(16)]


def test_what_is_left_out_is_said():
    left, all_of_them = (
        [part["text"] for part in parts("positions", *TOY, *more) if part["kind"] == "note"]
        for more in ([], ["--first", "18"])
    )
    counts = [text.partition(" positions; --first 18 shows all")[0] for text in left]
    assert counts[::2] == ["16 of 18", "9 of 18"]
    assert [text for text in all_of_them if "of 18 positions" in text] == []


@pytest.mark.parametrize("n", [1, 2, 3])
def test_short_tables(tmp_path, n):
    folder = changed_copy(
        tmp_path / "short",
        config={"n_positions": n, "n_ctx": n},
        tensors={TABLE_NAME: np.eye(n, 16, dtype=np.float32)},
    )
    found = parts("positions", "--model", str(folder))
    assert grid_of(found)["values"] == np.eye(n).tolist()
    assert [part["kind"] for part in found][-1] == ("grid" if n == 1 else "note")


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_broken_table_is_told_so(tmp_path, value):
    table = np.ones((24, 16), np.float32)
    table[20] = value
    folder = changed_copy(tmp_path / "broken", tensors={TABLE_NAME: table})
    assert parts("positions", "--model", str(folder))[-1]["text"] == (
        "The table holds NaN or infinity."
    )


# Models without a table


def without_table(tmp_path, **config):
    config = {"model_type": "toy", "activation_function": "gelu", **config}
    folder = changed_copy(tmp_path / "bare", config=config, without=[TABLE_NAME])
    return refused(run_cli(["positions", "--model", str(folder)]), 2)


@pytest.mark.parametrize(
    ("config", "how"),
    [
        ({"positions": "none"}, "it knows the order from the mask alone"),
        ({"positions": "none", "causal": False}, "it does not know the order"),
    ],
)
def test_a_model_without_a_table_is_told_so(tmp_path, config, how):
    sentence, hint = without_table(tmp_path, **config)
    assert sentence.startswith(f"bare has no table of positions: {how}")
    assert "--model toy" in hint


# What is refused


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--first", "2", "--at", "0"], "give one of --first and --at, not both"),
        (["--at", "0,x"], "--at takes 0:10 or 3,4,9, not '0,x'"),
        (["--at", ""], "--at takes 0:10 or 3,4,9, not ''"),
        (["--at", "18"], "position 18 is out of range: this one has positions 0 to 17"),
        (["--dims", "8"], "dimension 8 is out of range: this one has dimensions 0 to 7"),
        (["--first", "0"], "Invalid value for '--first'"),
    ],
)
def test_what_is_refused(options, sentence):
    said, _ = refused(run_cli(["positions", *TOY, *options]), 2)
    assert said.startswith(sentence)


@pytest.mark.parametrize("options", [[], ["--dims", "0:8"], ["--first", "18"]])
@pytest.mark.parametrize("model", ["toy", "tiny"])
@pytest.mark.parametrize("columns", [40, 80])
def test_nothing_is_wider_than_the_screen(model, options, columns):
    result = run_cli(["positions", "--model", model, *options], env={"COLUMNS": str(columns)})
    assert (result.status, result.err) == (0, "")
    assert [line for line in result.lines if cell_len(line) > columns] == []


# Positions in the heads


def titles(found):
    return [part.get("title") for part in found if part["kind"] != "note"]


def test_turns_are_those_of_the_engine():
    model = gptscope.load(family_folder("gptj"))
    facts, _, table, note, grid, _ = parts("positions", "--model", family_folder("gptj"))
    turning = model.blocks[0].attention.turning
    assert facts["facts"]["numbers of a head that turn"] == "6 of 10"
    assert facts["facts"]["rotary pairs, P of them"].startswith("(0, 1), (2, 3), ... in the file")
    assert column(table, "numbers") == ["0, 3", "1, 4", "2, 5"]
    speeds = np.array(column(table, "speed"))
    assert_allclose(speeds, turning.speeds)
    assert_allclose(column(table, "wavelength"), 2 * np.pi / speeds)
    assert_allclose(column(table, "turns"), 96 * speeds / (2 * np.pi))
    assert "96 tokens, the longest text" in note["text"]
    distances = np.array(grid["columns"], int)
    cosines = np.cos(np.outer(speeds, distances))
    assert_allclose(grid["values"], [*cosines, cosines.mean(axis=0)], atol=1e-6)
    assert grid["rows"] == ["pair 0", "pair 1", "pair 2", "mean"]


def test_a_turned_list_is_as_alike_as_the_mean_says():
    model = gptscope.load(family_folder("llama"))
    *_, grid, _ = parts("positions", "--model", family_folder("llama"))
    turning = model.blocks[0].attention.turning
    ones = np.ones((1, 9, 2 * len(turning.speeds)))
    turned = turn(ones, np.arange(9), turning.speeds)[0]
    shown = grid["values"][-1][grid["columns"].index("8")]
    assert turned[0] @ turned[8] / ones.shape[-1] == pytest.approx(shown)


@pytest.mark.parametrize(
    ("case", "name"),
    [
        ("llama-linear", "speed before stretching"),
        ("llama-yarn", "speed before stretching"),
        ("llama-llama3", "speed before stretching"),
        ("llama-dynamic", "speed in the longest text"),
        ("llama-longrope", "speed in the longest text"),
    ],
)
def test_what_is_stretched_has_a_speed_before_and_after(case, name):
    _, said, table, *_ = parts("positions", "--model", family_folder(case))
    assert said["title"] == "Rotary positions, as the config says them"
    slow, fast = sorted((column(table, "speed"), column(table, name)))
    assert slow[-1] < fast[-1]
    assert all(a <= b for a, b in zip(slow, fast, strict=True))


def test_layers_of_each_kind_have_tables_of_their_own():
    found = parts("positions", "--model", family_folder("gemma3"))
    tables = [title for title in titles(found) if "How fast" in title]
    assert [title.partition(":")[0] for title in tables] == ["Layers 0-1", "Layer 2"]
    layers = next(part for part in found if part.get("title", "").startswith("Layers; the window"))
    assert column(layers, "window") == [16, None]


def test_layers_that_do_not_turn_are_seen():
    found = parts("positions", "--model", family_folder("smollm3"))
    assert any("Layers 0, 2: How fast" in title for title in titles(found))


def test_slopes_are_what_is_taken_off():
    model = gptscope.load(family_folder("bloom"))
    _, table, note = parts("positions", "--model", family_folder("bloom"))
    slopes = np.array(model.blocks[0].attention.slopes)
    assert_allclose(column(table, "slope"), slopes)
    assert_allclose(column(table, "at distance 100"), -100 * slopes)
    assert_allclose(np.exp(-slopes * column(table, "halved every")), 0.5)
    assert note["text"].startswith("ALiBi (Press, Smith and Lewis 2022)")


def test_windows_stand_beside_a_table():
    *_, layers = parts("positions", "--model", family_folder("gpt_neo"))
    assert column(layers, "window") == [None, 16]


@pytest.mark.parametrize("option", ["--first", "--at", "--dims"])
def test_what_chooses_of_a_table_needs_one(option):
    args = ["positions", "--model", family_folder("llama"), option, "1"]
    sentence, _ = refused(run_cli(args), 2)
    assert sentence.startswith(f"{option} chooses of a table, and llama has none: it turns")
