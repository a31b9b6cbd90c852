# ruff: noqa: E402 - the tests are skipped before the imports that need PyTorch
import json
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import gptscope
from gptscope.model.text import read_characters

torch = pytest.importorskip("torch")
pytest.importorskip("tqdm")
sys.path.insert(0, str(Path(__file__).parents[1] / "models"))

import train_tiny
from training import loop
from training.checkpoint import load_checkpoint
from training.data import END, TO_ASCII, clean, is_held_out, is_kept, read_corpus, split_stories
from training.errors import InputError
from training.evaluate import held_out_loss
from training.export import read_folder
from training.gpt import GPT, Sizes
from training.muon import Muon, orthogonalised
from training.names import BOYS, GIRLS, KINDS, swap_names
from training.recipe import optimizers, rate
from training.stream import Place, Stream, cut
from training.tokenizer import encode, fit_tokenizer

MODELS = Path(__file__).parents[1] / "models"
STEPS = 24
MICRO = ["--vocab", "300", "--ctx", "32", "--width", "16", "--blocks", "2", "--heads", "2"]
MICRO += ["--ff", "48", "--batch", "8", "--checkpoint-every", "10", "--seed", "3"]
IDS = [0, 40, 70, 33, 5, 5, 259]


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def story(rng):
    girl, boy = rng.choice(GIRLS.split()[:5]), rng.choice(BOYS.split()[:5])
    toy, place = rng.choice(["ball", "kite", "doll"]), rng.choice(["park", "garden", "house"])
    return (
        f"{girl} went to the {place} with a red {toy}. {boy} saw the {toy} and asked to play. "
        f'"Yes," said {girl}. They played until the sun was low.\n'
        f"{boy} thanked {girl} {rng.integers(1000)} times, and {girl}'s {toy} was safe."
    )


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("text") / "stories.txt"
    path.write_text(f"\n{END}\n".join(story(rng) for _ in range(300)), "utf-8")
    return path


def command(text, out, *more):
    steps = [] if "--steps" in more else ["--steps", str(STEPS)]
    return ["--data", str(text), "--out", str(out), *MICRO, *steps, *more]


@pytest.fixture(scope="module")
def folder(text, tmp_path_factory):
    out = tmp_path_factory.mktemp("models") / "micro"
    assert train_tiny.main(command(text, out)) == 0
    return out


# The text


def test_clean_maps_signs_to_ascii_and_collapses_space():
    signs = "\u201cHi\u201d\u00a0she  said \u2013 it\u2019s \u2026\t ok \u2014 \n \n\n bye "
    assert clean(signs) == '"Hi" she said - it\'s ... ok -\nbye'


def test_clean_changes_nothing_when_repeated():
    rng = np.random.default_rng(2)
    messy = "".join(rng.choice(list("ab \n\t\u00a0\u2026\u201d"), size=400))
    assert clean(clean(messy)) == clean(messy)


@pytest.mark.parametrize(
    ("story", "kept"), [("a" * 150, True), ("a" * 149, False), ("a" * 150 + "\u00e9", False)]
)
def test_short_and_foreign_stories_are_left_out(story, kept):
    assert is_kept(story) is kept


def test_stories_are_split_at_the_lines_of_the_end_token():
    lines = ["a\n", "b\n", f"{END}\n", f"c {END}\n", f"{END}\n"]
    assert list(split_stories(lines)) == ["a\nb\n", f"c {END}\n", ""]


def test_split_is_a_law_of_each_story_alone(text):
    corpus, fewer = read_corpus(text), read_corpus(text, first=150)
    assert len(corpus.train) + len(corpus.held_out) == 300
    assert len(fewer.train) + len(fewer.held_out) == 150
    assert not any(map(is_held_out, corpus.train))
    assert all(map(is_held_out, corpus.held_out))
    assert fewer.held_out == corpus.held_out[: len(fewer.held_out)]


def test_split_holds_out_four_percent():
    assert 0.03 < np.mean([is_held_out(f"story {n}") for n in range(10_000)]) < 0.05


def test_packed_text_is_the_same_text(text, tmp_path):
    lzma = pytest.importorskip("lzma")
    packed = tmp_path / "stories.txt.xz"
    packed.write_bytes(lzma.compress(text.read_bytes()))
    assert read_corpus(packed) == read_corpus(text)
    assert read_corpus(packed).fingerprint() == read_corpus(text).fingerprint()


# The names


def test_names_are_swapped_consistently():
    pattern = '{0} met {1}. {1}\'s dog {2} liked {0}, and {0} said, "{1}, Lilypad!"'
    for seed in range(50):
        told = swap_names(pattern.format("Lily", "Tom", "Spot"), np.random.default_rng(seed))
        girl, boy, pet = told.split()[0], told.split()[2][:-1], told.split()[5]
        assert (girl in KINDS[0], boy in KINDS[1], pet in KINDS[2]) == (True, True, True)
        assert told == pattern.format(girl, boy, pet)


def test_two_names_never_become_one():
    rng = np.random.default_rng(4)
    for _ in range(20):
        told = swap_names(" ".join(KINDS[1]), rng).split()
        assert sorted(told) == sorted(KINDS[1])


def test_common_names_stay_common():
    rng = np.random.default_rng(5)
    told = [swap_names("Abigail", rng) for _ in range(2000)]
    assert told.count("Lily") > told.count("Sue") > told.count("Zoe") > 0


# The tokenizer and the stream


def test_tokenizer_begins_with_the_end_token_and_the_bytes(text):
    stories = read_corpus(text).train
    tokenizer = fit_tokenizer(stories, 300)
    pieces = [tokenizer.id_to_token(index) for index in range(300)]
    assert pieces[0] == END
    assert sorted(map(len, pieces[1:257])) == [1] * 256
    assert tokenizer.decode(tokenizer.encode(stories[0]).ids) == stories[0]
    ids = encode(stories[:3], tokenizer)
    assert list(ids[:2]) == [0, tokenizer.encode(stories[0]).ids[0]]
    assert np.count_nonzero(ids == 0) == 3


def test_windows_overlap_by_one_token():
    windows = cut(np.arange(11), 3)
    np.testing.assert_array_equal(windows, [[0, 1, 2, 3], [3, 4, 5, 6], [6, 7, 8, 9]], strict=True)
    assert cut(np.arange(3), 3).shape == (0, 4)


def test_stream_goes_on_from_any_place(text, monkeypatch):
    monkeypatch.setattr("training.stream.PART", 100)
    stories = read_corpus(text).train
    stream = Stream(stories, fit_tokenizer(stories, 300), ctx=32, batch=8, seed=0)
    assert stream.parts == 3
    first = [batch for batch, _ in zip(stream.batches(Place()), range(150), strict=False)]
    places = [place for _, place in first]
    assert places == sorted(set(places))
    assert places[-1].epoch > 0
    for at in (0, 7, 60, 140):
        windows, place = next(stream.batches(first[at][1]))
        assert place == first[at + 1][1]
        np.testing.assert_array_equal(windows, first[at + 1][0], strict=True)


def test_epochs_and_seeds_differ(text):
    stories = read_corpus(text).train
    tokenizer = fit_tokenizer(stories, 300)
    one, two = (Stream(stories, tokenizer, ctx=32, batch=8, seed=seed) for seed in (0, 1))
    beginning = next(one.batches(Place()))[0]
    assert not np.array_equal(beginning, next(one.batches(Place(epoch=1)))[0])
    assert not np.array_equal(beginning, next(two.batches(Place()))[0])


# The optimizer


@pytest.mark.parametrize("shape", [(3, 8, 8), (2, 32, 8), (2, 8, 32)])
def test_orthogonalised_has_singular_values_near_one(shape):
    matrices = torch.randn(shape, generator=torch.Generator().manual_seed(6))
    left, _, right = torch.linalg.svd(matrices, full_matrices=False)
    values = torch.linalg.svdvals(orthogonalised(matrices))
    assert 0.3 < values.min() < values.max() < 1.4
    assert (left.mT @ orthogonalised(matrices) @ right.mT).diagonal(dim1=-2, dim2=-1).min() > 0.3


def test_muon_steps_by_its_formula():
    rng = torch.Generator().manual_seed(7)
    weight = torch.nn.Parameter(torch.randn(12, 3, generator=rng))
    before, gradient = weight.detach().clone(), torch.randn(12, 3, generator=rng)
    weight.grad = gradient.clone()
    Muon([weight], lr=0.1, momentum=0.9, weight_decay=0.5).step()
    expected = before * (1 - 0.1 * 0.5) - 0.1 * 2 * orthogonalised(gradient[None])[0]
    torch.testing.assert_close(weight.detach(), expected)


def test_every_weight_has_one_optimizer():
    model = GPT(Sizes(vocab=300, ctx=8, width=16, blocks=2, heads=2, ff=48))
    muon, adam = optimizers(model)
    tables, vectors = (group["params"] for group in adam.param_groups)
    matrices = muon.param_groups[0]["params"]
    assert {id(weight) for weight in (*matrices, *tables, *vectors)} == set(
        map(id, model.parameters())
    )
    assert len(matrices) == 2 * 6
    assert {tuple(weight.shape) for weight in tables} == {(300, 16), (8, 16)}


def test_rate_warms_up_stays_and_falls():
    shares = [rate(step, 1000) for step in range(1000)]
    assert shares[0] == pytest.approx(0.01)
    assert set(shares[99:500]) == {1.0}
    assert shares[500] < 1
    assert shares[-1] == pytest.approx(0.02)
    assert rate(199, 10_000) == 1.0


# The command


def test_loss_falls_and_is_printed(text, folder, tmp_path, capsys):
    assert train_tiny.main(["--data", str(text), "--evaluate", str(folder)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("held-out loss ")
    assert "nats per token" in out
    assert "nats per byte" in out
    assert "bits per byte" in out
    assert train_tiny.main(command(text, tmp_path, "--steps", "1")) == 0
    untrained = float(capsys.readouterr().out.split()[2])
    assert float(out.split()[2]) < untrained - 1


def test_training_prints_what_evaluate_prints(text, tmp_path, capsys):
    assert train_tiny.main(command(text, tmp_path, "--steps", "2")) == 0
    printed, progress = capsys.readouterr()
    assert "training" in progress
    assert "tok/s" in progress
    assert "loss=" in progress
    assert train_tiny.main(["--data", str(text), "--evaluate", str(tmp_path)]) == 0
    assert capsys.readouterr().out == printed


def test_the_units_of_the_loss(text):
    corpus = read_corpus(text)
    tokenizer = fit_tokenizer(corpus.train, 300)
    torch.manual_seed(8)
    model = GPT(Sizes(vocab=300, ctx=16, width=16, blocks=1, heads=2, ff=32))
    result = held_out_loss(model, tokenizer, corpus.held_out, 16)
    assert result.nats_per_token == pytest.approx(np.log(300), abs=0.1)
    assert result.bytes == sum(map(len, corpus.held_out))
    words = str(result).split()
    assert float(words[7]) == pytest.approx(
        float(words[2]) * result.tokens / result.bytes, abs=1e-3
    )
    assert float(words[12]) == pytest.approx(float(words[7]) / np.log(2), abs=1e-3)


@pytest.mark.parametrize("stop", [4, 10, 17])
def test_resumed_equals_uninterrupted(text, folder, tmp_path, monkeypatch, capsys, stop):
    update, calls = loop.update, []

    def interrupted(*arguments):
        calls.append(1)
        if len(calls) == stop:
            signal.raise_signal(signal.SIGINT)
        return update(*arguments)

    monkeypatch.setattr(loop, "update", interrupted)
    assert train_tiny.main(command(text, tmp_path)) == 130
    assert f"stopped and saved at step {stop} of {STEPS}" in capsys.readouterr().err
    assert not (tmp_path / "model.safetensors").exists()
    assert train_tiny.main(command(text, tmp_path)) == 0
    assert len(calls) == STEPS
    for name in ("config.json", "model.safetensors", "tokenizer.json", "text.json"):
        assert (tmp_path / name).read_bytes() == (folder / name).read_bytes()


def test_killed_goes_on_from_the_last_checkpoint(text, folder, tmp_path, monkeypatch):
    update, calls = loop.update, []

    def killed(*arguments):
        calls.append(1)
        if len(calls) == 14:
            raise MemoryError
        return update(*arguments)

    monkeypatch.setattr(loop, "update", killed)
    with pytest.raises(MemoryError):
        train_tiny.main(command(text, tmp_path))
    assert train_tiny.main(command(text, tmp_path)) == 0
    assert len(calls) == 14 + STEPS - 10
    weights = (tmp_path / "model.safetensors").read_bytes()
    assert weights == (folder / "model.safetensors").read_bytes()


def test_interrupt_handler_is_put_back(text, tmp_path):
    before = signal.getsignal(signal.SIGINT)
    assert train_tiny.main(command(text, tmp_path, "--steps", "1")) == 0
    assert signal.getsignal(signal.SIGINT) is before


def test_a_finished_run_is_not_repeated(text, folder, monkeypatch):
    monkeypatch.setattr(loop, "update", None)
    weights = (folder / "model.safetensors").read_bytes()
    assert train_tiny.main(command(text, folder)) == 0
    assert (folder / "model.safetensors").read_bytes() == weights
    assert not list(folder.glob("*.part"))


# The export


def test_export_has_the_layout_of_gpt2(folder):
    safetensors = pytest.importorskip("safetensors")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    assert (config["n_inner"], config["vocab_size"], config["model_type"]) == (48, 300, "gpt2")
    with safetensors.safe_open(folder / "model.safetensors", "np") as file:
        assert file.metadata() == {"format": "pt"}
        assert file.get_slice("transformer.h.1.attn.c_attn.weight").get_shape() == [16, 48]
        assert file.get_slice("transformer.h.1.mlp.c_fc.weight").get_shape() == [16, 48]
        assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F32"}  # noqa: SIM118
        assert len(file.keys()) == 4 + 2 * 12
        assert not any("lm_head" in name for name in file.keys())  # noqa: SIM118


def test_export_says_which_characters_were_learned(text, folder):
    told = json.loads((folder / "text.json").read_text("utf-8"))
    learned = "".join(read_corpus(text).train)
    assert told == {"seen": "".join(sorted(set(learned))), "mapped": TO_ASCII}
    characters = read_characters(folder)
    assert characters.map("\u201cHi\u2026\u201d").text == '"Hi..."'
    assert characters.unseen("w\u00e9") == ["\u00e9"]


def test_tiny_maps_what_its_training_mapped():
    shipped = json.loads((MODELS / "tiny" / "text.json").read_text("utf-8"))
    assert shipped["mapped"] == TO_ASCII
    assert shipped["seen"].isascii()
    assert set("".join(TO_ASCII.values())) <= set(shipped["seen"])
    assert set("Lily wanted to play with her.\n") <= set(shipped["seen"])


def test_export_opens_in_transformers(folder):
    transformers = pytest.importorskip("transformers")
    ours, tokenizer = read_folder(folder)
    theirs = transformers.GPT2LMHeadModel.from_pretrained(folder).eval()
    ids = torch.tensor([IDS])
    with torch.no_grad():
        torch.testing.assert_close(ours(ids), theirs(ids).logits, rtol=1e-4, atol=1e-4)
    assert tokenizer.encode("Lily").ids == read_folder(folder)[1].encode("Lily").ids


def test_export_opens_in_gptscope(folder):
    ours, _ = read_folder(folder)
    with torch.no_grad():
        expected = ours(torch.tensor([IDS]))[0].numpy()
    logits = gptscope.trace(gptscope.load(folder), IDS).logits
    scale = max(1, np.abs(expected).max())
    np.testing.assert_allclose(logits, expected, rtol=0, atol=2e-5 * scale, strict=True)


# Refusals


def refusal(capsys, *arguments):
    status = train_tiny.main(list(arguments))
    error = capsys.readouterr().err.splitlines()[-1]
    assert status == 1
    assert error.startswith("train_tiny: ")
    return error


def test_bad_text_is_one_sentence(text, tmp_path, capsys):
    bad = tmp_path / "bad.txt.xz"
    bad.write_bytes(b"not packed")
    binary = tmp_path / "binary.txt"
    binary.write_bytes(b"\xff\xfe\x00")
    empty = tmp_path / "empty.txt"
    empty.write_text("", "utf-8")
    out = tmp_path / "out"
    for path in (bad, binary, tmp_path / "none.txt", tmp_path):
        assert f"cannot read {path}: " in refusal(capsys, *command(path, out))
    assert "0 usable stories" in refusal(capsys, *command(empty, out))
    assert "fewer than the 5000" in refusal(capsys, *command(text, out, "--batch", "5000"))


def test_bad_sizes_and_folders_are_one_sentence(text, tmp_path, capsys):
    assert "divided among 3 heads" in refusal(capsys, *command(text, tmp_path, "--heads", "3"))
    assert "257 or more" in refusal(capsys, *command(text, tmp_path, "--vocab", "100"))
    assert "cannot make the folder" in refusal(capsys, *command(text, text))
    evaluate = ["--data", str(text), "--evaluate", str(tmp_path)]
    assert "cannot open" in refusal(capsys, *evaluate)


def test_a_checkpoint_of_other_settings_is_refused(text, folder, capsys):
    error = refusal(capsys, *command(text, folder, "--seed", "4", "--ff", "32"))
    assert "made with another ff, seed;" in error


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04"])
def test_a_broken_checkpoint_is_refused(tmp_path, content):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"not a checkpoint of this program; delete it"):
        load_checkpoint(path, {})


def test_a_foreign_config_is_refused(folder, tmp_path):
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for change, match in (
        ({"activation_function": "relu"}, "activation_function 'relu'"),
        ({"model_type": "opt"}, "model_type 'opt'; here it must be one of gpt2, llama, toy"),
        ({"n_positions": 31}, r"transformer\.wpe\.weight has the shape \[32, 16\]"),
        ({"n_layer": 3}, r"has no transformer\.h\.2\.ln_1\.weight"),
    ):
        (tmp_path / "config.json").write_text(json.dumps(config | change), "utf-8")
        with pytest.raises(InputError, match=match):
            read_folder(tmp_path)


@pytest.mark.parametrize("wrong", [["--batch", "0"], ["--seed", "-1"], ["--device", "moon"]])
def test_wrong_options_are_usage_errors(text, tmp_path, capsys, wrong):
    with pytest.raises(SystemExit, match="2"):
        train_tiny.main(command(text, tmp_path, *wrong))
    assert f"argument {wrong[0]}:" in capsys.readouterr().err
