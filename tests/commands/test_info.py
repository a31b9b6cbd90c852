import json
import time
from pathlib import Path

import numpy as np
import pytest
from rich.cells import cell_len

import gptscope
from gptscope.analysis.tensors import by_pattern
from gptscope.commands.info_built import PAIRS, WIRINGS
from gptscope.engine import forward
from gptscope.model.checkpoint import open_checkpoint
from gptscope.model.dtypes import DTYPES
from gptscope.model.find import find_weights
from gptscope.model.params import count_tensors
from gptscope.render import BINARY, RENDERERS
from tests.golden.transformers.cases import CASES as FAMILIES
from tests.golden.transformers.weights import write_folder
from tests.helpers.cli import asked, column, parts, rows, run_cli
from tests.helpers.folders import CASES, GOLDEN, changed_copy, config_of, tensors_of, write_model
from tests.test_contract import CONTROL

TITLES = [
    "The model tiny",
    "How it is built",
    "Layers; the window is how many tokens are seen, - is all",
    "Parameters",
    "How numbers are stored",
    "Memory",
    "Files",
    "Tokenizer",
    "",
    "What was read",
    "Where the tensors went; a star stands for the number of a layer",
]
HOSTILE = "[b]x[/b]\x1b[31m\u202e\n,=1\ud800"


def by_title(*args):
    return {part.get("title"): part for part in parts("info", *args)}


def built(*args):
    return by_title(*args)["How it is built"]["facts"]


def layers(*args):
    return by_title(*args)[TITLES[2]]["rows"]


@pytest.fixture(scope="module")
def tiny_parts():
    return by_title("tiny")


@pytest.fixture
def case(tmp_path):
    return lambda name: str(write_folder(name, tmp_path / name))


def test_what_is_told_of_a_model(tiny_parts):
    assert list(tiny_parts) == TITLES
    sizes = tiny_parts["The model tiny"]["facts"]
    assert list(sizes.values()) == ["gpt2", 1334016, 128, 4, 4, 4, 32, 512, 4096, 128]


def test_a_model_is_named_in_either_way():
    expected = asked("info", "toy")
    assert asked("info", "--model", "toy") == expected
    result = run_cli(["info", "-f", "json"], env={"GPTSCOPE_MODEL": "toy"})
    assert json.loads(result.out) == expected
    assert asked("info", "toy", "--model", "tiny") == expected


def test_parameters_add_up_to_those_of_the_model(tiny_parts, tiny):
    table = tiny_parts["Parameters"]
    *counted, total = column(table, "parameters")
    assert sum(counted) == total == tiny.n_params
    assert column(table, "formula")[1] == "L (4 d^2 + 4 d)"


def test_memory_is_that_of_the_formulas(tiny_parts, tiny):
    stored, widened, _, token, full = column(tiny_parts["Memory"], "bytes")
    assert stored == widened == 4 * tiny.n_params
    assert (token, full) == (4 * 2 * 4 * 4 * 32, 4 * 2 * 4 * 4 * 32 * 128)
    assert column(tiny_parts["Memory"], "size")[::4] == ["5.3 MB", "524.3 kB"]


def test_files_and_special_tokens_are_named(tiny_parts):
    (file,) = tiny_parts["Files"]["rows"]
    assert file["file"] == "model.safetensors"
    assert file["bytes"] > 4 * 1334016
    assert rows(tiny_parts[""]) == [
        ["begins a text", 0, "<|endoftext|>"],
        ["ends a text", 0, "<|endoftext|>"],
    ]


def test_what_was_read_is_told(tiny_parts):
    facts = tiny_parts["What was read"]["facts"]
    assert list(facts.values())[:3] == [52, 52, 0]
    assert facts["all names begin with"] == "transformer."
    assert "attn_pdrop" in facts["config keys that change nothing"]
    assert "bos_token_id" not in facts["config keys that change nothing"]


def test_tensors_that_are_passed_over_are_named(folder):
    mask = np.ones((1, 1, 2, 2), "float32")
    names = [f"transformer.h.{i}.attn.bias" for i in range(2)]
    path = folder(tensors=dict.fromkeys(names, mask))
    found = by_title(str(path))
    assert found["What was read"]["facts"]["passed over"] == 2
    (row,) = (row for row in found[TITLES[-1]]["rows"] if row["tensor"] == "h.*.attn.bias")
    assert (row["how many"], row["goes to"]) == (2, "nowhere: it holds no parameters")


PARTS = {
    "token table": "embeddings",
    "token table, output": "embeddings",
    "table of positions": "embeddings",
    "widening of the token table": "embeddings",
    "attention": "attention",
    "feed-forward": "network",
    "norms": "normalisations",
    "output": "unembedding",
}


@pytest.mark.parametrize("name", [one.name for one in FAMILIES])
def test_every_tensor_goes_to_its_part(case, name):
    path = case(name)
    arrays, begun = tensors_sizes(path), by_title(path)["What was read"]["facts"]
    sums = dict.fromkeys(PARTS.values(), 0)
    for row in by_title(path)[TITLES[-1]]["rows"]:
        pattern = begun.get("all names begin with", "") + row["tensor"]
        assert len(arrays[pattern]) == row["how many"]
        sums[PARTS[row["goes to"]]] += sum(arrays[pattern])
    model = gptscope.load(path)
    expected = {part: getattr(count_tensors(model), part) for part in sums}
    if model.spec.family == "opt":
        sums["embeddings"] -= 2 * model.spec.d_model  # rows that are never read
    if name == "opt-plain":
        expected["normalisations"] = 0  # a gain of 1 and a shift of 0, which no file has
    assert sums == expected


def tensors_sizes(path):
    arrays = open_checkpoint(find_weights(path)).arrays
    return {
        pattern: [arrays[name].size for name in names]
        for pattern, names in by_pattern(arrays).items()
    }


def test_every_wiring_of_the_engine_is_told():
    assert WIRINGS.keys() == forward.WIRINGS.keys()


@pytest.mark.parametrize(
    ("name", "interleaved", "pairs"),
    [
        ("gptj", None, "neighbours"),
        ("llama", None, "halves"),
        ("llama", False, "halves"),
        ("llama", True, "neighbours"),
    ],
)
def test_how_the_file_pairs_what_turns_is_told(case, name, interleaved, pairs):
    path = case(name)
    if interleaved is not None:
        config = Path(path, "config.json")
        said = json.loads(config.read_text("utf-8")) | {"rope_interleaved": interleaved}
        config.write_text(json.dumps(said), "utf-8")
    assert gptscope.load(path).spec.pairs == pairs
    assert built(path)["rotary pairs, P of them"] == PAIRS[pairs]


def test_only_a_rotary_model_has_pairs(tiny_parts):
    assert "rotary pairs, P of them" not in tiny_parts["How it is built"]["facts"]


def test_a_layer_without_positions_says_so(case):
    found = layers(case("smollm3"))
    assert [row["positions"] for row in found] == ["rotary", "no positions"]
    assert "positions" not in layers(case("llama"))[0]


@pytest.mark.parametrize("name", CASES)
def test_every_golden_model_is_told(name):
    sizes = next(iter(by_title(str(GOLDEN / name)).values()))["facts"]
    assert sizes["parameters"] == gptscope.load(GOLDEN / name).n_params


@pytest.mark.parametrize("name", [one.name for one in FAMILIES])
def test_every_family_is_told_on_a_narrow_screen(name, case):
    result = run_cli(["info", case(name)], env={"COLUMNS": "40"})
    assert (result.status, result.err) == (0, "")
    assert [line for line in result.lines if cell_len(line) > 40] == []


@pytest.mark.parametrize(
    ("name", "key", "words"),
    [
        ("llama-grouped", "heads", "heads 0-2 share key-value head 0, 3-5 head 1"),
        ("llama-one-group", "heads", "all share one key-value head"),
        ("llama-heads", "heads", "each has keys and values of its own"),
        ("llama", "activation", "silu, gated"),
        ("llama", "norm", "RMS norm, with a gain"),
        ("gemma2", "scores, soft cap", 3),
        ("gemma2", "blocks", "a norm before and after each part: x + norm(part(norm(x)))"),
        ("qwen2-window", "biases", "queries, keys, values"),
        ("qwen3", "queries and keys", "normed before their product"),
        ("bloom", "embeddings", "normed before the first block"),
        ("opt-350m", "tables", "narrower than the stream, widened"),
        ("phi", "output", "a table of its own, with a bias"),
        ("olmo2", "blocks", "a norm after each part, before the sum: x + norm(part(x))"),
    ],
)
def test_how_a_model_is_built_is_told_in_words(case, name, key, words):
    assert built(case(name))[key] == words


def test_layers_that_differ_have_rows_of_their_own(case):
    found = layers(case("gemma2"))
    assert [(row["layers"], row["window"]) for row in found] == [("0", 16), ("1", None)]
    (row,) = layers(case("bloom"))
    assert (row["steepest slope"], row["flattest slope"]) == (0.25, 2**-8)


def test_a_partly_turned_head_says_how_much_of_it_turns(case):
    (row,) = layers(case("gpt_neox"))
    assert (row["rotary dimensions of d_h"], row["base"]) == (4, 700)


def test_what_stretches_a_rotary_model_is_told(case):
    found = by_title(case("llama-dynamic"))["Rotary positions, as the config says them"]["facts"]
    assert '"rope_type": "dynamic"' in found["rope_parameters"]
    assert "in longer texts" in found


@pytest.mark.parametrize("kind", ["F16", "BF16", "F32", "F64"])
def test_kinds_of_numbers_are_shared_out(tmp_path, kind):
    stored = {name: x.astype("f8") for name, x in tensors_of("gpt2").items()}
    name = "transformer.wte.weight"
    dtype = DTYPES[kind]
    plain = stored[name].astype(dtype if dtype.names is None else "f2")
    bits = plain.view("u2") if kind == "BF16" else plain
    tensors = {key: x.astype("f4") for key, x in stored.items()} | {name: bits}
    write_model(tmp_path, tensors, config_of("gpt2"), kinds={name: kind})
    found = {row["stored as"]: row for row in by_title(str(tmp_path))[TITLES[4]]["rows"]}
    assert sum(row["share of the numbers"] for row in found.values()) == pytest.approx(1)
    if kind != "F32":
        assert found[kind]["numbers"] == plain.size


# Models that are not understood, or broken


def unknown(tmp_path, **config):
    return str(changed_copy(tmp_path / "m", config={"model_type": "mixtral", **config}))


def test_an_unknown_family_is_told_as_far_as_its_files_speak(tmp_path):
    answer = asked("info", unknown(tmp_path))
    note, guess, config, tensors, *_ = answer["parts"]
    assert answer["model"] is None
    assert note["text"].startswith("The family is not understood: the model type is mixtral")
    assert "gpt2" in note["text"]
    sizes = config_of("gpt2")
    assert guess["facts"]["blocks, at a guess"] == sizes["n_layer"]
    assert guess["facts"]["width, at a guess"] == sizes["n_embd"]
    assert guess["facts"]["vocabulary, at a guess"] == sizes["vocab_size"]
    assert {row["key"]: row["value"] for row in config["rows"]}["model_type"] == "mixtral"
    shapes = {row["tensors"]: row["shape"] for row in tensors["rows"]}
    assert shapes["transformer.h.*.ln_1.weight"] == f"[{sizes['n_embd']}]"
    assert sum(column(tensors, "numbers")) == guess["facts"]["numbers in them"]


def test_a_broken_model_is_told_and_is_a_fault(folder):
    path = folder(without=["transformer.h.1.ln_1.weight"])
    result = run_cli(["info", str(path), "-f", "json"])
    assert result.status == 1
    assert result.err.startswith("error: model.safetensors lacks the tensor h.1.ln_1.weight")
    first = json.loads(result.out)["parts"][0]
    assert first["text"].startswith("The model cannot be run: model.safetensors lacks the tensor")


def test_weights_without_a_config_are_told_and_are_a_fault(tmp_path):
    write_model(tmp_path, tensors_of("gpt2"))
    result = run_cli(["info", str(tmp_path)])
    assert result.status == 1
    assert "config.json is missing" in result.err
    assert "transformer.h.*.attn.c_attn.weight" in result.text


@pytest.mark.parametrize("name", ["nowhere", "tests"])
def test_where_nothing_can_be_opened_nothing_is_told(name):
    result = run_cli(["info", name])
    assert (result.status, result.out) == (1, b"")


@pytest.mark.parametrize("fmt", RENDERERS)
def test_hostile_names_are_shown_not_sent(tmp_path, fmt):
    path = unknown(tmp_path, **{HOSTILE: HOSTILE, "long": "x" * 9999, "deep": [[[{}]]]})
    named = tensors_of("gpt2") | {HOSTILE.replace("\ud800", ""): np.zeros(3, "float32")}
    write_model(tmp_path / "m", named)
    out = tmp_path / "out"
    result = run_cli(["info", path, "-f", fmt, "-o", str(out)], env={"COLUMNS": "40"})
    assert (result.status, result.err) == (0, "")
    if fmt not in BINARY:
        assert CONTROL.findall(out.read_text("utf-8")) == []
    shown = run_cli(["info", path], env={"COLUMNS": "40"})
    assert [line for line in shown.lines if cell_len(line) > 40] == []


def test_a_large_file_is_not_read(tmp_path):
    config = {"model_type": "gpt2", "n_embd": 1024, "n_layer": 2, "n_head": 16}
    config |= {"vocab_size": 1 << 20, "n_positions": 16}
    d = 1024
    shapes = {"wte.weight": (1 << 20, d), "wpe.weight": (16, d), "ln_f.weight": (d,)}
    shapes |= {"ln_f.bias": (d,)}
    for i in range(2):
        inner = {"ln_1": (d,), "ln_2": (d,)}
        matrices = {"attn.c_attn": 3 * d, "attn.c_proj": d, "mlp.c_fc": 4 * d, "mlp.c_proj": d}
        for name, shape in inner.items():
            shapes |= {f"h.{i}.{name}.weight": shape, f"h.{i}.{name}.bias": shape}
        for name, n in matrices.items():
            n_in = 4 * d if name == "mlp.c_proj" else d
            shapes |= {f"h.{i}.{name}.weight": (n_in, n), f"h.{i}.{name}.bias": (n,)}
    sparse(tmp_path, shapes, config)
    begun = time.process_time()
    found = by_title(str(tmp_path))
    assert time.process_time() - begun < 1
    assert next(iter(found.values()))["facts"]["parameters"] > 1e9


def sparse(folder, shapes, config):
    header, at = {}, 0
    for name, shape in shapes.items():
        end = at + 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, end]}
        at = end
    head = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        file.truncate(8 + len(head) + at)
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
