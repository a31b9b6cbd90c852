# Every family against transformers itself: each value of a pass, in every row.

import json

import pytest

import gptscope
from tests.golden.transformers.cases import CASES
from tests.golden.transformers.old_names import OLD_NAMES
from tests.golden.transformers.weights import HERE, golden, rows, write_folder
from tests.helpers.close import REMADE, assert_close, scale

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
capture = pytest.importorskip("tests.golden.transformers.capture")
make = pytest.importorskip("tests.golden.transformers.make")
meaning = pytest.importorskip("tests.golden.transformers.meaning")
measure = pytest.importorskip("tests.golden.transformers.measure")
identities = pytest.importorskip("tests.golden.transformers.identities")

SPELLINGS = sorted(HERE.glob("*/config-*.json"))
BY_NAME = {case.name: case for case in CASES}
MISTAKES = [
    ("gpt2", {"activation_function": "gelu"}),
    ("gpt2", {"layer_norm_epsilon": 1e-5}),
    ("gpt2-untied", {"scale_attn_by_inverse_layer_idx": False}),
    ("openai-gpt", {"afn": "silu"}),
    ("openai-gpt", {"layer_norm_epsilon": 1e-5}),
    ("gpt_neo", {"window_size": 17}),
    ("gpt_neo", {"attention_layers": ["global", "global"]}),
    ("gpt_neox", {"use_parallel_residual": False}),
    ("gpt_neox", {"hidden_act": "gelu_new"}),
    ("opt", {"activation_function": "gelu"}),
    ("bloom-6-heads", {"apply_residual_connection_post_layernorm": True}),
    ("llama", {"rms_norm_eps": 1e-6}),
    ("llama", {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}}),
    ("llama-linear", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
    ("llama-dynamic", {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}),
    ("mistral", {"sliding_window": 15}),
    ("mistral", {"sliding_window": None}),
    ("qwen2-window", {"layer_types": ["full_attention"] * 3}),
    ("gemma", {"hidden_act": "gelu_python"}),
    ("gemma2", {"query_pre_attn_scalar": 10}),
    ("gemma2", {"attn_logit_softcapping": None}),
    ("gemma2", {"final_logit_softcapping": None}),
    ("gemma2", {"sliding_window": 17}),
    ("gemma3", {"layer_types": ["sliding_attention"] * 3}),
    ("granite", {"residual_multiplier": 1.0}),
    ("granite", {"embedding_multiplier": 1.0}),
    ("granite", {"attention_multiplier": 0.35}),
    ("granite", {"logits_scaling": 1.0}),
    ("smollm3", {"no_rope_layers": [1, 1, 1]}),
]
OWN_FLOAT32 = 2e-5  # of the scale: transformers' own logits in float32


@pytest.fixture(autouse=True, scope="module")
def _one_quiet_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    transformers.logging.disable_progress_bar()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=BY_NAME)
def passed(request, tmp_path_factory):
    case = BY_NAME[request.param]
    folder = tmp_path_factory.mktemp("micro") / case.name
    return case.name, folder, *measure.truth(case, folder)


def test_golden_values_are_what_transformers_computes(passed):
    name, _, ids, values = passed
    kept_ids, kept = golden(name)
    assert ids == kept_ids
    assert kept.keys() == values.keys()
    for key, value in kept.items():
        remade = values[key][rows(key)]
        assert_close(key, remade, value, "float64", allowed=REMADE * scale(value))


def test_identities_hold_in_every_row(passed):
    _, folder, _, values = passed
    identities.check(values, transformers.AutoConfig.from_pretrained(folder))


def test_transformers_loads_the_folder_and_agrees_in_float32(passed):
    _, folder, ids, values = passed
    logits = measure.own_logits(folder, ids)
    allowed = OWN_FLOAT32 * scale(values["logits"])
    assert_close("logits", logits, values["logits"], allowed=allowed)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_every_row_of_every_value_is_that_of_transformers(passed, dtype):
    _, folder, ids, values = passed
    trace = gptscope.trace(gptscope.load(folder, dtype=dtype), ids)
    assert set(trace.names()) == set(values)
    for key, value in values.items():
        assert_close(key, trace[key], value, dtype)


@pytest.mark.parametrize("path", SPELLINGS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_transformers_reads_the_same_from_another_spelling(path):
    meaning.assert_same_meaning(path)


@pytest.mark.parametrize("name", BY_NAME)
def test_config_and_tensors_are_what_transformers_writes(name, tmp_path, monkeypatch):
    monkeypatch.setattr(make.weights, "HERE", tmp_path)
    make.write_model(BY_NAME[name])
    for path in sorted((tmp_path / name).iterdir()):
        again, kept = (json.loads(p.read_text()) for p in (path, HERE / name / path.name))
        for config in (again, kept):
            config.pop("transformers_version", None)
        assert again == kept


@pytest.mark.parametrize("name", OLD_NAMES)
def test_transformers_takes_tensors_of_older_files(name, tmp_path):
    folder = write_folder(name, tmp_path, layout=OLD_NAMES[name])
    ids, kept = golden(name)
    logits = measure.own_logits(folder, ids, allowed={"unexpected"})[rows("logits")]
    assert_close("logits", logits, kept["logits"])


@pytest.mark.parametrize(("name", "mistake"), MISTAKES)
def test_a_mistake_would_show_in_float32(name, mistake, tmp_path):
    folder = write_folder(name, tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | mistake))
    ids, kept = golden(name)
    wrong = capture.capture(folder, ids)["logits"][rows("logits")]
    with pytest.raises(AssertionError, match="logits: largest error"):
        assert_close("logits", wrong.astype("float32"), kept["logits"])
