# ruff: noqa: E402 - the tests are skipped before the imports that need PyTorch
import json
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import gptscope

torch = pytest.importorskip("torch")
pytest.importorskip("tqdm")
sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

import train_tiny
from training import loop
from training.data import END
from training.design import LLAMA, PRESETS, Sizes
from training.errors import InputError
from training.export import read_folder
from training.gpt import GPT, Rotary
from training.options import options_of
from training.recipe import optimizers

from tests.test_train_tiny import IDS, STEPS, command, refusal, story

SIZES = ["--preset", "llama", "--heads", "4", "--kv-heads", "2"]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("text") / "stories.txt"
    path.write_text(f"\n{END}\n".join(story(rng) for _ in range(300)), "utf-8")
    return path


@pytest.fixture(scope="module")
def folder(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "micro"
    assert train_tiny.main(command(text, out, *SIZES)) == 0
    return out


def sizes(*options):
    return train_tiny.sizes_of(
        options_of("", "").parse_args(["--data", "stories.txt", "--out", "model", *options])
    )


# The design


def test_1250432_parameters():
    model = GPT(PRESETS["llama"].sizes, LLAMA)
    assert sum(weight.numel() for weight in model.parameters()) == 1_250_432
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())


def test_a_preset_gives_the_sizes_that_no_option_gives():
    assert sizes() == Sizes()
    assert sizes("--preset", "llama") == Sizes(ff=344, kv_heads=2)
    assert sizes("--preset", "llama", "--ff", "40", "--kv-heads", "1").ff == 40
    assert sizes("--preset", "llama", "--kv-heads", "1", "--vocab", "300") == Sizes(
        vocab=300, ff=344, kv_heads=1
    )


def test_scores_depend_on_distance_alone():
    turn = Rotary(Sizes(ctx=32, width=8, heads=1))
    q, k = torch.randn(2, 1, 1, 1, 8, generator=torch.Generator().manual_seed(9)).expand(
        2, 1, 1, 32, 8
    )
    scores = (turn(q) @ turn(k).mT)[0, 0]
    for distance in (0, 5):
        along = scores.diagonal(-distance)
        torch.testing.assert_close(along, along[:1].expand_as(along))
    assert scores[5, 0] != pytest.approx(scores[0, 0].item(), abs=1e-3)


def test_later_tokens_change_nothing_before():
    torch.manual_seed(10)
    model = GPT(Sizes(vocab=300, ctx=8, width=16, blocks=2, heads=4, ff=24, kv_heads=2), LLAMA)
    ids = torch.tensor([IDS])
    with torch.no_grad():
        torch.testing.assert_close(model(ids)[:, :4], model(ids[:, :4]))


def test_every_weight_has_one_optimizer():
    model = GPT(Sizes(vocab=300, ctx=8, width=16, blocks=2, heads=4, ff=24, kv_heads=2), LLAMA)
    muon, adam = optimizers(model)
    tables, gains = (group["params"] for group in adam.param_groups)
    matrices = muon.param_groups[0]["params"]
    assert {id(weight) for weight in (*matrices, *tables, *gains)} == set(
        map(id, model.parameters())
    )
    assert (len(matrices), len(tables), len(gains)) == (2 * 7, 1, 2 * 2 + 1)


# The command


def test_loss_falls_and_evaluate_prints_it_again(text, tmp_path, capsys):
    losses = []
    for steps in ("1", "20"):
        out = tmp_path / steps
        assert train_tiny.main(command(text, out, *SIZES, "--steps", steps)) == 0
        printed = capsys.readouterr().out
        assert train_tiny.main(["--data", str(text), "--evaluate", str(out)]) == 0
        assert capsys.readouterr().out == printed
        losses.append(float(printed.split()[2]))
    assert losses[1] < losses[0] - 0.5


@pytest.mark.parametrize("stop", [4, 10])
def test_resumed_equals_uninterrupted(text, folder, tmp_path, monkeypatch, capsys, stop):
    update, calls = loop.update, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == stop:
            signal.raise_signal(signal.SIGINT)
        return update(*arguments)

    monkeypatch.setattr(loop, "update", interrupted)
    assert train_tiny.main(command(text, tmp_path, *SIZES)) == 130
    assert f"stopped and saved at step {stop} of {STEPS}" in capsys.readouterr().err
    assert train_tiny.main(command(text, tmp_path, *SIZES)) == 0
    assert len(calls) == STEPS
    for name in ("config.json", "model.safetensors", "tokenizer.json", "text.json"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_a_checkpoint_of_another_preset_is_refused(text, folder, capsys):
    error = refusal(capsys, *command(text, folder, "--heads", "4"))
    assert "made with another kv_heads, preset;" in error


def test_a_tokenizer_can_be_given(text, folder, tmp_path):
    other, given = tmp_path / "other.txt", folder / "tokenizer.json"
    other.write_text(text.read_text("utf-8").replace("kite", "boat"), "utf-8")
    arguments = command(other, tmp_path / "out", *SIZES, "--steps", "1")
    assert train_tiny.main([*without_vocab(arguments), "--tokenizer", str(given)]) == 0
    assert (tmp_path / "out" / "tokenizer.json").read_bytes() == given.read_bytes()


def without_vocab(arguments):
    at = arguments.index("--vocab")
    return arguments[:at] + arguments[at + 2 :]


def test_sizes_that_do_not_fit_are_one_sentence(text, tmp_path, capsys):
    llama = ("--preset", "llama")
    for options, error in (
        ((*llama, "--kv-heads", "3", "--heads", "4"), "4 heads cannot share 3 key-value heads"),
        ((*llama, "--heads", "16"), "a head of width 1 cannot be turned in pairs"),
        (("--kv-heads", "1"), "gpt2 has 2 key-value heads for its 2 heads, not 1"),
    ):
        assert error in refusal(capsys, *command(text, tmp_path, *options))


@pytest.mark.parametrize("content", ["", '{"model": 1}'])
def test_a_bad_tokenizer_is_a_usage_error(text, tmp_path, capsys, content):
    path = tmp_path / "tokenizer.json"
    path.write_text(content, "utf-8")
    arguments = without_vocab(command(text, tmp_path, *SIZES))
    with pytest.raises(SystemExit, match="2"):
        train_tiny.main([*arguments, "--tokenizer", str(path)])
    assert "argument --tokenizer: cannot read" in capsys.readouterr().err


def test_a_tokenizer_without_the_end_token_is_refused(text, tmp_path, capsys):
    toy = Path(train_tiny.__file__).parent / "toy" / "tokenizer.json"
    arguments = without_vocab(command(text, tmp_path, *SIZES))
    with pytest.raises(SystemExit, match="2"):
        train_tiny.main([*arguments, "--tokenizer", str(toy)])
    assert f"its token 0 must be {END}" in capsys.readouterr().err


# The export


def test_export_has_the_layout_of_llama(folder):
    safetensors = pytest.importorskip("safetensors.numpy")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    assert config == {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": 300,
        "max_position_embeddings": 32,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 48,
        "head_dim": 4,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "bos_token_id": 0,
        "eos_token_id": 0,
        "dtype": "float32",
    }
    tensors = safetensors.load_file(folder / "model.safetensors")
    assert {str(tensor.dtype) for tensor in tensors.values()} == {"float32"}
    assert len(tensors) == 2 + 2 * 9
    shapes = {name: list(tensor.shape) for name, tensor in tensors.items()}
    assert shapes["model.embed_tokens.weight"] == [300, 16]
    assert shapes["model.layers.1.self_attn.k_proj.weight"] == [8, 16]
    assert shapes["model.layers.1.mlp.gate_proj.weight"] == [48, 16]
    assert shapes["model.layers.1.mlp.down_proj.weight"] == [16, 48]


def test_export_opens_in_transformers(folder):
    transformers = pytest.importorskip("transformers")
    ours, _ = read_folder(folder)
    theirs = transformers.LlamaForCausalLM.from_pretrained(folder).eval()
    ids = torch.tensor([IDS])
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=0, atol=1e-5)


def test_export_opens_in_gptscope(folder):
    ours, _ = read_folder(folder)
    with torch.no_grad():
        expected = ours(torch.tensor([IDS]))[0].numpy()
    logits = gptscope.trace(gptscope.load(folder), IDS).logits
    scale = max(1, np.abs(expected).max())
    np.testing.assert_allclose(logits, expected, rtol=0, atol=2e-5 * scale, strict=True)


def test_a_foreign_config_is_refused(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for change, match in (
        ({"hidden_act": "gelu"}, "hidden_act 'gelu'"),
        ({"rope_theta": 500000.0}, r"rope_theta 500000\.0"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2.0}}, "rope_scaling"),
        ({"rope_parameters": {"rope_theta": 1.0, "rope_type": "default"}}, "rope_parameters"),
        ({"head_dim": 8}, "head_dim 8; here it must be 4"),
        ({"attention_bias": True}, "attention_bias True"),
        ({"tie_word_embeddings": False}, "tie_word_embeddings False"),
        ({"num_key_value_heads": 1}, r"k_proj\.weight has the shape \[8, 16\]"),
        ({"num_hidden_layers": 3}, r"has no model\.layers\.2\.input_layernorm\.weight"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | change), "utf-8")
        with pytest.raises(InputError, match=match):
            read_folder(tmp_path)
