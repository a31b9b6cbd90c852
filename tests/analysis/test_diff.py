import math
from functools import partial

import numpy as np
import pytest

from gptscope.analysis import diff
from gptscope.analysis.diff import divergence, passes, tensor_difference
from gptscope.model.checkpoint import Checkpoint
from gptscope.model.pieces import pieces
from tests.helpers.micro import micro_model, sizes


@pytest.mark.parametrize("at_once", [1, 7, 1 << 18])
def test_a_tensor_is_read_in_pieces(at_once, monkeypatch):
    monkeypatch.setattr(diff, "pieces", partial(pieces, at_once=at_once))
    a = np.random.default_rng(0).normal(size=(20, 3)).astype("float32")
    b = a.copy()
    b[3] += np.float32(0.5)
    one = tensor_difference("x", a, b)
    d = b.astype(float) - a
    assert (one.changed, one.size) == (3, 60)
    assert one.largest == np.abs(d).max()
    assert one.rms == pytest.approx(np.sqrt((d**2).mean()), rel=1e-12)
    assert one.relative == pytest.approx(one.rms / np.sqrt((a.astype(float) ** 2).mean()))


def test_zeros_and_single_numbers():
    zeros, ones = np.zeros(4, "float32"), np.ones(4, "float32")
    assert tensor_difference("x", zeros, zeros).relative == 0
    far = tensor_difference("x", zeros, ones)
    assert (far.relative, far.cosine, far.rms) == (math.inf, None, 1)
    assert tensor_difference("x", np.array(2.0), np.array(2.5)).largest == 0.5
    assert tensor_difference("x", np.array([1, 2]), np.array([1, 4])).changed == 1


def test_other_shapes_are_not_compared():
    one = tensor_difference("x", np.zeros((2, 3)), np.zeros((3, 2)))
    assert (one.fits, one.same) == (False, False)


def test_divergence_is_that_of_the_formula():
    p, q = np.array([0.5, 0.5, 0]), np.array([0.25, 0.25, 0.5])
    assert divergence(p, q) == pytest.approx(math.log(2))
    assert divergence(p, p) == 0
    assert divergence(q, p) == math.inf


def test_passes_of_two_models():
    same = passes(micro_model(), micro_model(), (1, 2, 3))
    assert same.first is None
    assert same.only == ((), ())
    other = passes(micro_model(), micro_model(seed=1), (1, 2, 3))
    assert other.first is not None
    assert other.first.name == "token_embeddings"
    larger = passes(micro_model(), micro_model(sizes(n_layers=3)), (1, 2, 3))
    assert larger.only == ((), ("layers.2.*",))


def test_a_config_beside_a_file_that_says_all_of_itself_is_not_read(tmp_path):
    (tmp_path / "config.json").write_text('{"n_head": 9}', "utf-8")
    for name, heads in (("m.gguf", 2), ("m.safetensors", 9)):
        checkpoint = Checkpoint(tmp_path / name, {}, {}, (), {"n_head": 2})
        assert diff.settings(checkpoint) == {"n_head": heads}
