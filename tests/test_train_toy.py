import json
import math
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

MODELS = Path(__file__).parents[1] / "models"
sys.path.insert(0, str(MODELS))

from training.errors import InputError  # noqa: E402 - it lies beside the package, not in it
from training.grammar import nats_knowing, nats_per_word, read_grammar, split  # noqa: E402

ENTROPY = 0.526


@pytest.fixture(scope="module")
def grammar():
    return read_grammar(MODELS / "toy" / "grammar.json")


@pytest.fixture(scope="module")
def chances(grammar):
    return grammar.sentences()


# The grammar (no PyTorch needed)


def test_twelve_words(grammar, chances):
    assert len(set(grammar.words)) == len(grammar.words) == 12
    assert {"the", "cat", "eats"} <= set(grammar.words)
    assert {word for sentence in chances for word in sentence} == set(grammar.words)
    assert {len(sentence) for sentence in chances} == {18}
    assert {sentence[0] for sentence in chances} == {"the"}


def test_chances_add_up_to_one(grammar, chances):
    assert math.fsum(chances.values()) == pytest.approx(1, abs=1e-12)
    assert min(chances.values()) > 0
    for sentence in list(chances)[::100]:
        for at in range(len(sentence)):
            assert math.fsum(grammar.after(sentence[:at]).values()) == pytest.approx(1)


def test_entropy_per_word_by_enumeration(chances):
    assert round(nats_per_word(chances), 3) == ENTROPY
    assert nats_knowing(chances, lambda before: before) == pytest.approx(nats_per_word(chances))


def test_entropy_equals_a_monte_carlo_estimate(grammar, chances):
    rng = np.random.default_rng(0)
    drawn = [grammar.sample(rng) for _ in range(2000)]
    nats = np.array([-math.log(chances[sentence]) / 17 for sentence in drawn])
    error = nats.std(ddof=1) / math.sqrt(len(nats))
    assert error < 0.002
    assert abs(nats.mean() - nats_per_word(chances)) < 3 * error


def test_the_last_word_is_not_enough(chances):
    entropy = nats_per_word(chances)
    assert nats_knowing(chances, lambda before: before[-1]) > entropy + 0.5
    assert nats_knowing(chances, lambda before: (len(before), before[-1])) > entropy + 0.15
    assert nats_knowing(chances, lambda before: (len(before), before[-5:])) > entropy + 0.003


def information(chances, one, other, given):
    """I(one; other | given) in nats, of the words at three places."""
    counts = [defaultdict(float) for _ in range(4)]
    for sentence, p in chances.items():
        x, y, z = (sentence[at] for at in (one, other, given))
        for count, key in zip(counts, ((x, y, z), (x, z), (y, z), z), strict=True):
            count[key] += p
    joint, left, right, middle = counts
    return math.fsum(
        p * math.log(p * middle[z] / (left[x, z] * right[y, z])) for (x, y, z), p in joint.items()
    )


@pytest.mark.parametrize(("early", "late"), [(1, 4), (7, 10), (13, 16), (1, 7), (7, 13)])
def test_a_word_depends_on_one_several_words_back(chances, early, late):
    assert information(chances, early, late, given=late - 1) > 0.03
    assert information(chances, 5, 11, given=10) == pytest.approx(0, abs=1e-12)


def test_held_out_sentences_keep_the_entropy(grammar, chances):
    learned, held_out = split(grammar)
    assert learned.keys() | held_out.keys() == chances.keys()
    assert not learned.keys() & held_out.keys()
    assert math.fsum(held_out.values()) == pytest.approx(1 / 4)
    for side in (learned, held_out):
        assert nats_per_word(side) == pytest.approx(nats_per_word(chances), abs=1e-12)
    others = [sentence[:5] + sentence[6:11] + sentence[12:] for sentence in held_out]
    assert len(set(others)) == len(others) == len(chances) / 4


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"tables": {"animal": {"cat": 0.5, "dog": 0.4}}}, r"add up to 0\.9, not to 1"),
        ({"words": ["the", "cat"]}, r"does not say 'dog'"),
        ({"sentence": ["the", {"table": "verb"}]}, r"does not say 'verb'"),
        ({"sentence": 3}, r"cannot read .*grammar\.json"),
        ({"tables": {"animal": ["cat", "dog"]}}, r"cannot read .*grammar\.json"),
        ({"sentence": ["the", {"table": "animal", "given": [1]}]}, r"cannot read .*grammar\.json"),
    ],
)
def test_a_wrong_grammar_is_refused(tmp_path, change, match):
    right = {
        "words": ["the", "cat", "dog"],
        "sentence": ["the", {"table": "animal"}],
        "tables": {"animal": {"cat": 0.5, "dog": 0.5}},
        "held_out": [1],
    }
    path = tmp_path / "grammar.json"
    path.write_text(json.dumps(right), "utf-8")
    assert nats_per_word(read_grammar(path).sentences()) == pytest.approx(math.log(2))
    path.write_text(json.dumps(right | change), "utf-8")
    with pytest.raises(InputError, match=match):
        read_grammar(path)


def test_a_broken_grammar_is_refused(tmp_path):
    path = tmp_path / "grammar.json"
    with pytest.raises(InputError, match="No such file"):
        read_grammar(path)
    path.write_text("{", "utf-8")
    with pytest.raises(InputError, match="cannot read"):
        read_grammar(path)


# The models (PyTorch)


@pytest.fixture(scope="module")
def parts():
    torch = pytest.importorskip("torch")
    pytest.importorskip("tqdm")
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    names = ("toy", "mask", "gpt", "export", "stream")
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
    fresh = parts.mask.fresh(grammar)
    assert fresh.shape == (4000, 18)
    seen = {tuple(grammar.words[index] for index in row) for row in fresh}
    assert seen <= held_out.keys()


@pytest.mark.parametrize("name", ["toy", "toy-unmasked"])
def test_steps_lower_the_loss(parts, grammar, name):
    fresh = parts.mask.fresh(grammar, 200)
    losses = [
        parts.mask.loss_on(parts.toy.trained(grammar, name, steps, 0, "cpu"), fresh).mean
        for steps in (0, 10, 60)
    ]
    assert losses[0] - 0.5 > losses[1] > losses[2] + 0.5


def test_only_the_unmasked_model_sees_later_words(parts, grammar, shipped):
    toy, unmasked = shipped
    ids = parts.torch.from_numpy(parts.mask.fresh(grammar, 1))[:, :17]
    other = ids.clone()
    other[0, 9:] = 1
    with parts.torch.no_grad():
        changed = [
            (model(ids) - model(other))[0, :9].abs().max().item()
            for model in (toy, unmasked, parts.mask.masked(unmasked))
        ]
    assert changed[0] == 0
    assert changed[1] > 0.1
    assert changed[2] == 0


def test_a_masked_model_writes_as_it_is_measured(parts, grammar, shipped):
    fresh = parts.mask.fresh(grammar, 50)
    toy, _ = shipped
    measured = parts.mask.loss_on(toy, fresh)
    assert parts.mask.loss_when_writing(toy, fresh).mean == pytest.approx(measured.mean, abs=1e-5)


def test_standard_error_is_over_sentences(parts):
    nats = parts.torch.tensor([[1.0, 3.0], [2.0, 4.0], [4.0, 4.0]])
    loss = parts.mask.over_sentences(nats)
    assert (loss.mean, loss.error) == (3.0, pytest.approx(1 / math.sqrt(3)))
    assert str(loss) == "3.0000 +- 0.58 nats per word"


def test_the_lesson_of_the_mask(parts, grammar, shipped):
    toy, unmasked = shipped
    fresh = parts.mask.fresh(grammar)
    loss = parts.mask.loss_on(toy, fresh)
    assert abs(loss.mean - ENTROPY) < 0.01
    assert loss.error < 0.002
    assert parts.mask.loss_on(unmasked, fresh).mean < 0.1
    assert parts.mask.loss_on(parts.mask.masked(unmasked), fresh).mean > math.log(12)
    assert parts.mask.loss_when_writing(unmasked, fresh[:500]).mean > math.log(12)


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


def test_weights_compute_the_same_in_transformers(parts, grammar, shipped):
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
    ids = parts.torch.from_numpy(parts.mask.fresh(grammar, 20))
    with parts.torch.no_grad():
        parts.torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)


def test_training_prints_what_evaluate_prints(parts, folder, tmp_path, capsys):
    assert parts.command(["--out", str(tmp_path), "--steps", "20", "--seed", "3"]) == 0
    printed, progress = capsys.readouterr()
    assert "toy-unmasked" in progress
    assert "loss=" in progress
    assert parts.command(["--evaluate", str(folder)]) == 0
    assert capsys.readouterr().out == printed
    assert "entropy    0.5260" in printed
    assert "ln 12          2.4849" in printed
    for name in parts.toy.DESIGNS:
        weights = (folder / name / "model.safetensors").read_bytes()
        assert (tmp_path / name / "model.safetensors").read_bytes() == weights


def test_what_cannot_be_done_is_one_sentence(parts, folder, tmp_path, capsys):
    assert parts.command(["--evaluate", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"train_toy: cannot open {tmp_path / 'toy'}: ")
    file = tmp_path / "file"
    file.touch()
    assert parts.command(["--out", str(file)]) == 1
    assert capsys.readouterr().err.startswith("train_toy: cannot make the folder ")
    with pytest.raises(SystemExit, match="2"):
        parts.command(["--out", str(tmp_path), "--evaluate", str(folder)])


def test_an_interrupt_writes_nothing(parts, tmp_path, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("training.toy.shown", interrupted)
    assert parts.command(["--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err.endswith("train_toy: stopped, nothing written\n")
    assert not list(tmp_path.glob("*/*"))
