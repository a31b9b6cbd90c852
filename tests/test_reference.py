# What gptscope computes, against PyTorch and transformers, and the golden files against both.

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file

import gptscope
from gptscope.analysis.grammar import split, toy_grammar
from gptscope.engine.erf import erf
from gptscope.engine.ops import ACTIVATIONS
from gptscope.model.shipped import shipped_folders
from tests.helpers.close import REMADE, assert_close, scale

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
safetensors_torch = pytest.importorskip("safetensors.torch")
llama = pytest.importorskip("transformers.models.llama.modeling_llama")
bloom = pytest.importorskip("transformers.models.bloom.modeling_bloom")
twin = pytest.importorskip("tests.golden.twin")

GOLDEN = Path(__file__).parent / "golden"
MODELS = Path(__file__).parents[1] / "models"
TINY = MODELS / "tiny"
TOYS = ["toy", "toy-unmasked"]
WORDS = "the cat eats the fish and the dog sees the bird but the bird eats the seed"
TOY_TEXTS = ["words", *(f"{length} ids" for length in (1, 2, 7, 13, 18))]
TOY_FLOAT32 = 7e-6  # absolute, for every value of the toy on the sentences kept out of training
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
    written = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if written["model_type"] == "toy":
        exact = {name: w.double() for name, w in weights.items()}
        return exact, twin.Settings.from_toy(written)
    config = transformers.GPT2Config.from_pretrained(folder).to_dict()
    named = {name.removeprefix("transformer."): w.double() for name, w in weights.items()}
    return named, twin.Settings.from_hugging_face(config)


def first_ids(model, text, longest=128):
    return list(model.tokenizer.encode(text))[:longest]


def test_golden_files_are_what_their_script_writes(tmp_path):
    script = GOLDEN / "make_golden.py"
    subprocess.run([sys.executable, str(script), str(tmp_path)], check=True)
    remade = [path.relative_to(tmp_path) for path in sorted(tmp_path.glob("*/*"))]
    assert len({path.parent for path in remade}) >= 10
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
    ("name", "mistake"),
    [
        ("gpt2", {"activation": "gelu"}),
        ("gpt2", {"eps": 1e-6}),
        ("gpt2", {"divide_by_root": False}),
        ("gpt2", {"divide_by_layer": True}),
        ("toy", {"activation": "gelu_new"}),
        ("toy", {"positions": "none"}),
        ("toy", {"causal": False}),
        ("toy-post", {"activation": "gelu"}),
        ("toy-post", {"eps": 1e-5}),
        ("toy-post", {"positions": "sinusoidal"}),
        ("toy-unmasked", {"activation": "gelu_new"}),
        ("toy-unmasked", {"causal": True}),
        ("toy-unmasked", {"eps": 1e-6}),
        ("toy-rotary", {"eps": 1e-5}),
        ("toy-rotary", {"norm_type": "layer_norm"}),
        ("toy-rotary", {"positions": "none"}),
        ("toy-rotary", {"rope_theta": 10000.0}),
        ("toy-rotary", {"causal": False}),
    ],
)
def test_a_mistake_would_show_in_float32(name, mistake):
    golden = load_file(GOLDEN / name / "trace.safetensors")
    weights, settings = twin_of(GOLDEN / name)
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


def toy_ids(model, text):
    # The sentence, or random ids as many as the text says.
    if text == "words":
        return list(model.tokenizer.encode(WORDS))
    length = int(text.split()[0])
    return np.random.default_rng(length).integers(12, size=length).tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("text", TOY_TEXTS)
@pytest.mark.parametrize("name", TOYS)
def test_shipped_toys_agree_with_the_twin(name, text, dtype):
    model = gptscope.load(name, dtype=dtype)
    ids = toy_ids(model, text)
    trace = gptscope.trace(model, ids)
    expected = twin.run(*twin_of(MODELS / name), ids)
    assert set(trace.names()) == set(expected)
    for key, value in expected.items():
        assert_close(key, trace[key], value.numpy(), dtype)


def test_every_value_of_the_toy_on_every_sentence_kept_out_of_training():
    model, (weights, settings) = gptscope.load("toy"), twin_of(MODELS / "toy")
    grammar = toy_grammar()
    kept_out = grammar.ids(list(split(grammar)[1]))
    assert len(kept_out) == 3375
    for ids in kept_out[:, :-1].tolist():
        trace = gptscope.trace(model, ids)
        for key, value in twin.run(weights, settings, ids).items():
            assert_close(key, trace[key], value.numpy(), allowed=TOY_FLOAT32)


@pytest.mark.parametrize(("length", "width"), [(18, 8), (40, 6), (1, 2), (300, 64)])
def test_the_twins_sinusoids_are_those_of_the_paper(length, width):
    table = np.empty((length, width))
    for pos in range(length):
        for i in range(width // 2):
            table[pos, 2 * i] = math.sin(pos / 10000 ** (2 * i / width))
            table[pos, 2 * i + 1] = math.cos(pos / 10000 ** (2 * i / width))
    assert_close("table", twin.sinusoids(length, width).numpy(), table, "float64", allowed=1e-13)


@pytest.mark.parametrize("name", ["toy", "toy-post", "toy-unmasked"])
def test_the_twins_blocks_are_pytorchs_encoder_layers(name):
    weights, settings = twin_of(GOLDEN / name)
    golden = safetensors_torch.load_file(GOLDEN / name / "trace.safetensors")
    length, d = golden["embeddings"].shape
    ahead = torch.ones(length, length, dtype=torch.bool).triu(1) & settings.causal
    for layer in range(settings.n_layer):
        block = torch.nn.TransformerEncoderLayer(
            d,
            settings.n_head,
            dim_feedforward=golden[f"layers.{layer}.mlp_hidden"].shape[-1],
            activation=settings.activation,
            layer_norm_eps=settings.eps,
            norm_first=settings.norm == "pre",
            dtype=torch.float64,
        ).eval()
        for theirs, ours in [
            ("self_attn.in_proj_", "attn.c_attn."),
            ("self_attn.out_proj.", "attn.c_proj."),
            ("linear1.", "mlp.c_fc."),
            ("linear2.", "mlp.c_proj."),
            ("norm1.", "ln_1."),
            ("norm2.", "ln_2."),
        ]:
            for kind in ("weight", "bias"):
                w = weights[f"h.{layer}.{ours}{kind}"]
                block.get_parameter(f"{theirs}{kind}").data = w.T.contiguous() if w.ndim == 2 else w
        with torch.no_grad():
            out = block(golden[f"layers.{layer}.input"], src_mask=ahead)
        key = f"layers.{layer}.output"
        assert_close(key, out.numpy(), golden[key].numpy(), "float64")


def llama_like(settings, width):
    # What Llama's parts need to know of a toy; they turn and square in float32.
    return transformers.LlamaConfig(
        hidden_size=width,
        num_attention_heads=settings.n_head,
        num_key_value_heads=settings.n_head,
        max_position_embeddings=64,
        rope_theta=settings.rope_theta,
        attn_implementation="eager",
    )


def llamas_turns(config, length):
    # cos and sin for each place: [1, length, d_h].
    rotary = llama.LlamaRotaryEmbedding(config)
    return rotary(torch.zeros(1, dtype=torch.float64), torch.arange(length)[None])


def test_the_twins_rms_norm_is_llamas():
    weights, settings = twin_of(GOLDEN / "toy-rotary")
    golden = safetensors_torch.load_file(GOLDEN / "toy-rotary" / "trace.safetensors")
    norm = llama.LlamaRMSNorm(20, eps=settings.eps).double()
    for x, name, part in [
        ("embeddings", "layers.0.ln1", "h.0.ln_1"),
        ("layers.1.resid_after_attn", "layers.1.ln2", "h.1.ln_2"),
        ("layers.1.output", "ln_final", "ln_f"),
    ]:
        norm.weight.data = weights[f"{part}.weight"]
        out = norm(golden[x]).detach().float().numpy()
        assert_close(f"{name}.out", out, golden[f"{name}.out"].numpy())


@pytest.mark.parametrize("theta", [500.0, 10000.0])
def test_the_twin_turns_as_llama_does(theta):
    settings = twin.Settings(n_layer=1, n_head=2, rope_theta=theta)
    q, k = torch.from_numpy(np.random.default_rng(0).standard_normal((2, 1, 2, 30, 10)))
    turns = llamas_turns(llama_like(settings, 20), 30)
    turned = llama.apply_rotary_pos_emb(q, k, *turns)
    for x, expected in zip((q, k), turned, strict=True):
        for h in range(2):
            actual = twin.rotate(x[0, h], theta).float().numpy()
            assert_close(f"head {h}", actual, expected[0, h].numpy())


@pytest.mark.parametrize("layer", [0, 1])
def test_the_twins_rotary_attention_is_llamas(layer):
    weights, settings = twin_of(GOLDEN / "toy-rotary")
    golden = safetensors_torch.load_file(GOLDEN / "toy-rotary" / "trace.safetensors")
    x = golden[f"layers.{layer}.ln1.out"][None]  # [1, T, d]
    config = llama_like(settings, x.shape[-1])
    attention = llama.LlamaAttention(config, layer).double().eval()
    thirds = weights[f"h.{layer}.attn.c_attn.weight"].chunk(3, dim=-1)
    output = weights[f"h.{layer}.attn.c_proj.weight"]
    named = zip(("q_proj", "k_proj", "v_proj", "o_proj"), (*thirds, output), strict=True)
    attention.load_state_dict({f"{name}.weight": w.T for name, w in named})
    mask = torch.full((x.shape[1], x.shape[1]), -math.inf).double().triu(1)[None, None]
    with torch.no_grad():
        out, shares = attention(x, llamas_turns(config, x.shape[1]), mask)
    name = f"layers.{layer}"
    assert_close(f"{name}.attn_out", out[0].float().numpy(), golden[f"{name}.attn_out"].numpy())
    for h, share in enumerate(shares[0]):
        key = f"{name}.heads.{h}.weights"
        assert_close(key, share.float().numpy(), golden[key].numpy())


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


def test_llama_tiny_is_what_transformers_makes_of_it():
    folder = shipped_folders()["llama-tiny"]
    theirs = transformers.LlamaForCausalLM.from_pretrained(folder, attn_implementation="eager")
    model = gptscope.load("llama-tiny")
    ids = model.tokenizer.encode("Lily wanted to play with her")
    with torch.no_grad():
        expected = theirs.eval()(torch.tensor([ids])).logits[0].numpy()
    assert_close("logits", gptscope.trace(model, ids).logits, expected)
    greedy = theirs.generate(torch.tensor([ids]), max_new_tokens=20, do_sample=False)[0]
    ours = gptscope.generate(model, ids, max_new_tokens=20, temperature=0)
    assert list(ours.prompt + ours.ids) == greedy.tolist()


def steps(dtype):
    # From -30 to 30, and towards zero from both sides.
    small = np.geomspace(1e-12, 1, 500)
    return np.concatenate([np.linspace(-30, 30, 12001), small, -small, [0]]).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_transformers(name, dtype):
    x = steps(dtype)
    theirs = (
        bloom.bloom_gelu_forward if name == "gelu_bloom" else transformers.activations.ACT2FN[name]
    )
    expected = theirs(torch.from_numpy(x)).numpy()
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
