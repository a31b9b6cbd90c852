import json
import sys
from importlib import import_module
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace

import numpy as np
import pytest

import gptscope
from gptscope.analysis.grammar import split, toy_grammar
from gptscope.analysis.mask import fresh, losses, with_mask
from tests.helpers.cli import run_cli

MODELS = Path(__file__).parents[1] / "models"
sys.path.insert(0, str(MODELS))


@pytest.fixture(scope="module")
def grammar():
    return toy_grammar()


@pytest.fixture(scope="module")
def sentences(grammar):
    return fresh(grammar, 200, seed=2017).sentences


@pytest.fixture(scope="module")
def parts():
    torch = pytest.importorskip("torch")
    pytest.importorskip("tqdm")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    names = ("toy", "loop", "gpt", "export", "stream")
    modules = {name: import_module(f"training.{name}") for name in names}
    yield SimpleNamespace(torch=torch, command=import_module("train_toy").main, **modules)
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def folder(parts, tmp_path_factory):
    out = tmp_path_factory.mktemp("toys")
    assert parts.command(["--out", str(out), "--steps", "20", "--seed", "3"]) == 0
    return out


@pytest.fixture(scope="module")
def shipped(parts):
    return [parts.export.read_folder(MODELS / name)[0] for name in parts.toy.DESIGNS]


def test_1856_parameters(shipped):
    for model in shipped:
        assert sum(weight.numel() for weight in model.parameters()) == 1856


def test_both_models_begin_alike(parts, grammar):
    toy, unmasked = (parts.toy.trained(grammar, name, 0, 5, "cpu") for name in parts.toy.DESIGNS)
    assert (toy.design.causal, unmasked.design.causal) == (True, False)
    for name, weight in unmasked.state_dict().items():
        assert parts.torch.equal(toy.state_dict()[name], weight)


def test_sentences_are_a_law_of_seed_and_place(parts, grammar):
    learned, held_out = split(grammar)
    one, other = (parts.toy.drawn_from(grammar, learned, seed) for seed in (0, 1))
    batches = one.batches(parts.stream.Place())
    first, place = next(batches)
    assert first.shape == (32, 18)
    assert not np.array_equal(first, next(other.batches(parts.stream.Place()))[0])
    np.testing.assert_array_equal(next(batches)[0], next(one.batches(place))[0], strict=True)
    seen = {tuple(grammar.words[index] for index in row) for row in first}
    assert seen <= learned.keys()
    assert not seen & held_out.keys()


@pytest.mark.parametrize("name", ["toy", "toy-unmasked"])
def test_steps_lower_the_loss(parts, grammar, sentences, name):
    losses = [
        parts.loop.loss_of(parts.toy.trained(grammar, name, steps, 0, "cpu"), sentences).item()
        for steps in (0, 10, 60)
    ]
    assert losses[0] - 0.5 > losses[1] > losses[2] + 0.5


@pytest.mark.parametrize("name", ["toy", "toy-unmasked"])
def test_the_loss_is_the_same_without_pytorch(parts, sentences, name):
    model = gptscope.load(name)
    theirs, _ = parts.export.read_folder(MODELS / name)
    nats = losses(model, sentences, lambda _: None)
    assert nats.mean() == pytest.approx(parts.loop.loss_of(theirs, sentences).item(), rel=1e-4)


def test_the_loss_with_the_mask_put_on_is_the_same_without_pytorch(parts, sentences):
    theirs, _ = parts.export.read_folder(MODELS / "toy-unmasked")
    masked = parts.gpt.GPT(theirs.sizes, parts.toy.DESIGNS["toy"])
    masked.load_state_dict(theirs.state_dict())
    nats = losses(with_mask(gptscope.load("toy-unmasked")), sentences, lambda _: None)
    assert nats.mean() == pytest.approx(parts.loop.loss_of(masked, sentences).item(), rel=1e-4)


def test_positions_are_sinusoids(parts):
    table = parts.gpt.Sinusoids(parts.gpt.Sizes(ctx=18, width=8)).weight.numpy()
    pos, pair = np.arange(18)[:, None], np.arange(4)
    angles = pos / 10000 ** (2 * pair / 8)
    np.testing.assert_allclose(table[:, 0::2], np.sin(angles), atol=1e-7)
    np.testing.assert_allclose(table[:, 1::2], np.cos(angles), atol=1e-7)


# The files


def test_export_has_the_layout_of_the_toy(parts, folder):
    safetensors = pytest.importorskip("safetensors.numpy")
    for name in parts.toy.DESIGNS:
        config = json.loads((folder / name / "config.json").read_text("utf-8"))
        assert config == {
            "model_type": "toy",
            "vocab_size": 12,
            "n_positions": 18,
            "n_embd": 8,
            "n_layer": 2,
            "n_head": 2,
            "n_inner": 32,
            "activation_function": "gelu",
            "layer_norm_epsilon": 1e-5,
            "positions": "sinusoidal",
            "norm": "pre",
            "causal": name == "toy",
            "tie_word_embeddings": True,
            "eos_token_id": 0,
        }
        tensors = safetensors.load_file(folder / name / "model.safetensors")
        assert {str(tensor.dtype) for tensor in tensors.values()} == {"float32"}
        assert len(tensors) == 1 + 2 * 12 + 2
        assert tensors["wte.weight"].shape == (12, 8)
        assert tensors["h.1.attn.c_attn.weight"].shape == (8, 24)
        assert tensors["h.1.mlp.c_fc.weight"].shape == (8, 32)
        assert tensors["ln_f.bias"].shape == (8,)


def test_the_tokenizer_knows_twelve_words(parts, grammar, folder):
    tokenizer = parts.export.read_folder(folder / "toy")[1]
    assert tokenizer.get_vocab() == {word: index for index, word in enumerate(grammar.words)}
    ids = tokenizer.encode("the cat eats the fish.").ids
    assert ids == [1, 2, 5, 1, 7, 0]
    assert tokenizer.decode(ids) == "the cat eats the fish ."
    with pytest.raises(Exception, match="UNK"):
        tokenizer.encode("the lion")


def test_weights_compute_the_same_in_transformers(parts, sentences, shipped):
    transformers = pytest.importorskip("transformers")
    ours = shipped[0]
    config = transformers.GPT2Config(
        vocab_size=12,
        n_positions=18,
        n_embd=8,
        n_layer=2,
        n_head=2,
        n_inner=32,
        activation_function="gelu",
        bos_token_id=0,
        eos_token_id=0,
    )
    theirs = transformers.GPT2LMHeadModel(config).eval()
    tensors = parts.export.tensors_of(ours) | {"wpe.weight": ours.positions.weight}
    theirs.transformer.load_state_dict(tensors)
    ids = parts.torch.from_numpy(sentences[:20])
    with parts.torch.no_grad():
        parts.torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)


def test_training_again_gives_the_same_files(parts, folder, tmp_path, capsys):
    assert parts.command(["--out", str(tmp_path), "--steps", "20", "--seed", "3"]) == 0
    printed, progress = capsys.readouterr()
    assert "toy-unmasked" in progress
    assert "loss=" in progress
    assert printed.endswith(f"measure them: gptscope experiment mask --models {tmp_path}\n")
    for name in parts.toy.DESIGNS:
        weights = (folder / name / "model.safetensors").read_bytes()
        assert (tmp_path / name / "model.safetensors").read_bytes() == weights


def test_the_experiment_trains_and_measures(parts, folder):  # noqa: ARG001 - PyTorch is there
    mask = ["experiment", "mask", "--sentences", "30", "--format", "json"]
    result = run_cli([*mask, "--retrain", "--steps", "20", "--train-seed", "3"])
    assert result.status == 0
    anew, there = (
        json.loads(r.out)["parts"] for r in (result, run_cli([*mask, "--models", str(folder)]))
    )
    assert anew[:3] == there[:3]


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        SystemExit, match=r'^train_toy needs torch: pip install "gptscope\[train\]"$'
    ):
        run_path(str(MODELS / "train_toy.py"))


def test_what_cannot_be_done_is_one_sentence(parts, tmp_path, monkeypatch, capsys):
    file = tmp_path / "file"
    file.touch()
    assert parts.command(["--out", str(file)]) == 1
    assert capsys.readouterr().err.startswith("train_toy: cannot make the folder ")
    monkeypatch.setattr("train_toy.GRAMMAR", tmp_path / "none.json")
    assert parts.command(["--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("train_toy: cannot read ")
    with pytest.raises(SystemExit, match="2"):
        parts.command([])


def test_an_interrupt_writes_nothing(parts, tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("training.toy.shown", interrupted)
    assert parts.command(["--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err.endswith("train_toy: stopped, nothing written\n")
    assert not list(tmp_path.glob("*/*"))
