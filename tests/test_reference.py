# What gptscope computes, against PyTorch and transformers, and the golden files against both.

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import gptscope
from gptscope.engine.erf import erf
from gptscope.engine.ops import ACTIVATIONS
from tests.helpers.close import REMADE, assert_close, scale

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")
twin = pytest.importorskip("tests.golden.twin")

GOLDEN = Path(__file__).parent / "golden"
TINY = Path(__file__).parents[1] / "models" / "tiny"
HUGGING_FACE = ["gpt2", "gpt2-variant", "gpt2-unscaled"]
STORY = """Once upon a time, there was a little girl named Lily. She had a red ball and a small dog.
One day, Lily and her dog went to the park. "Look!" said Lily. "A big tree!" The dog ran to the
tree and barked. A bird sat on it, and the bird was sad. "Why are you sad?" Lily asked. "I lost my
nest," said the bird. Lily wanted to help. She took some grass and some sticks, and she made a new
nest for the bird. The bird was very happy. "Thank you, Lily," it said, and it sang a song. Then
Lily, her dog and the bird played with the ball until the sun went down, and they all went home."""
TEXTS = ["A", "Lily wanted to play with her", "caf\u00e9 \u2603 123", STORY[:200], STORY]


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def tiny():
    return gptscope.load("tiny")


@pytest.fixture(scope="module")
def tiny_in_transformers():
    return opened(TINY)


def opened(folder):
    model, info = transformers.GPT2LMHeadModel.from_pretrained(
        folder, attn_implementation="eager", output_loading_info=True
    )
    assert not info["missing_keys"]
    assert not info["mismatched_keys"]
    return model.eval()


def answers(model, ids):
    # Every value that transformers shows, under its name; its last hidden state is after the norm.
    with torch.no_grad():
        out = model(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
    values = {"logits": out.logits[0]}
    for layer, weights in enumerate(out.attentions):
        values |= {f"layers.{layer}.heads.{h}.weights": w for h, w in enumerate(weights[0])}
    names = ["embeddings", *(f"layers.{i}.output" for i in range(len(out.attentions) - 1))]
    states = zip([*names, "ln_final.out"], out.hidden_states, strict=True)
    values |= {name: state[0] for name, state in states}
    return {name: value.numpy() for name, value in values.items()}


def twin_of(folder):
    weights = safetensors_torch.load_file(folder / "model.safetensors")
    config = transformers.GPT2Config.from_pretrained(folder).to_dict()
    named = {name.removeprefix("transformer."): w.double() for name, w in weights.items()}
    return named, twin.Settings.from_hugging_face(config)


def first_ids(model, text, longest=128):
    return list(model.tokenizer.encode(text))[:longest]


def test_golden_files_are_what_their_script_writes(tmp_path):
    script = GOLDEN / "make_golden.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    remade = [path.relative_to(tmp_path) for path in sorted(tmp_path.glob("*/*"))]
    assert len({path.parent for path in remade}) >= 6
    for path in remade:
        if path.name != "trace.safetensors":
            assert (tmp_path / path).read_bytes() == (GOLDEN / path).read_bytes(), path
            continue
        again, golden = load_file(tmp_path / path), load_file(GOLDEN / path)
        assert again.keys() == golden.keys(), path
        assert again.pop("ids").tolist() == golden.pop("ids").tolist(), path
        for name, value in golden.items():
            assert_close(name, again[name], value, "float64", allowed=REMADE * scale(value))


@pytest.mark.parametrize("name", HUGGING_FACE)
def test_transformers_opens_golden_folders_and_agrees(name):
    golden = load_file(GOLDEN / name / "trace.safetensors")
    for key, value in answers(opened(GOLDEN / name).double(), golden["ids"].tolist()).items():
        assert_close(key, value, golden[key], "float64")


@pytest.mark.parametrize(
    "mistake",
    [{"activation": "gelu"}, {"eps": 1e-6}, {"divide_by_root": False}, {"divide_by_layer": True}],
)
def test_a_mistake_would_show_in_float32(mistake):
    golden = load_file(GOLDEN / "gpt2" / "trace.safetensors")
    weights, settings = twin_of(GOLDEN / "gpt2")
    wrong = twin.run(weights, replace(settings, **mistake), golden["ids"].tolist())
    with pytest.raises(AssertionError, match="logits: largest error"):
        assert_close("logits", wrong["logits"].float().numpy(), golden["logits"])


def test_the_longest_text_fills_the_context(tiny):
    assert len(tiny.tokenizer.encode(STORY)) >= 128


@pytest.mark.parametrize("text", TEXTS)
def test_tiny_agrees_with_transformers(tiny, tiny_in_transformers, text):
    ids = first_ids(tiny, text)
    trace = gptscope.trace(tiny, ids)
    for name, value in answers(tiny_in_transformers, ids).items():
        assert_close(name, trace[name], value)


@pytest.mark.parametrize("longest", [6, 128])
def test_tiny_agrees_with_the_twin_in_float64(longest):
    model = gptscope.load("tiny", dtype="float64")
    ids = first_ids(model, STORY, longest)
    trace = gptscope.trace(model, ids)
    expected = twin.run(*twin_of(TINY), ids)
    assert set(trace.names()) == set(expected)
    for name, value in expected.items():
        assert_close(name, trace[name], value.numpy(), "float64")


def test_greedy_generation_agrees_with_transformers(tiny, tiny_in_transformers):
    ids = first_ids(tiny, "Once upon a time")
    prompt = torch.tensor([ids])
    expected = tiny_in_transformers.generate(
        prompt,
        attention_mask=torch.ones_like(prompt),
        do_sample=False,
        max_new_tokens=40,
        pad_token_id=0,
    )[0, len(ids) :].tolist()
    assert len(expected) == 40
    assert list(gptscope.generate(tiny, ids, max_new_tokens=40, temperature=0).ids) == expected


def steps(dtype):
    # From -30 to 30, and towards zero from both sides.
    small = np.geomspace(1e-12, 1, 500)
    return np.concatenate([np.linspace(-30, 30, 12001), small, -small, [0]]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_transformers(name, dtype):
    x = steps(dtype)
    expected = transformers.activations.ACT2FN[name](torch.from_numpy(x)).numpy()
    actual = ACTIVATIONS[name](x)
    assert actual.dtype == dtype
    allowed = 8 * np.finfo(dtype).eps * np.maximum(np.abs(x), np.abs(expected))
    worst = np.argmax(np.abs(actual - expected) - allowed)
    assert (np.abs(actual - expected) <= allowed).all(), (x[worst], actual[worst], expected[worst])


def test_erf_is_that_of_torch():
    x = np.concatenate([steps("float64"), np.linspace(-7, 7, 100_001)])
    np.testing.assert_allclose(
        erf(x), torch.erf(torch.from_numpy(x)).numpy(), rtol=4e-16, atol=4e-16, strict=True
    )
