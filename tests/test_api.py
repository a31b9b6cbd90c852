import inspect
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

import gptscope


def test_the_example_line_by_line():
    model = gptscope.load("tiny")
    ids = model.tokenizer.encode("Lily wanted to play with her")
    trace = gptscope.trace(model, ids)

    assert trace.token_embeddings.shape == (6, 128)
    expected = trace.token_embeddings + trace.position_embeddings
    np.testing.assert_array_equal(trace.embeddings, expected, strict=True)
    assert trace.layers[0].ln1.out.shape == (6, 128)
    assert trace.layers[0].ln1.mean.shape == (6,)
    assert trace.layers[0].ln1.variance.shape == (6,)
    assert trace.layers[0].heads[0].weights.shape == (6, 6)
    np.testing.assert_allclose(trace.layers[0].heads[0].weights.sum(axis=-1), 1, atol=1e-6)
    assert trace.layers[0].mlp_out.shape == (6, 128)
    assert len(trace.layers) == 4
    assert trace.ln_final.out.shape == (6, 128)
    assert trace.logits.shape == (6, 4096)

    probs = gptscope.probabilities(trace.logits[-1], 1)
    assert probs.shape == (4096,)
    assert probs.sum() == pytest.approx(1)
    assert probs[gptscope.sample(probs, gptscope.create_rng(1))] > 0

    by_name = trace["layers.0.heads.0.weights"]
    np.testing.assert_array_equal(by_name, trace.layers[0].heads[0].weights, strict=True)
    by_alias = trace["blocks.0.attn.hook_pattern"]
    np.testing.assert_array_equal(by_alias[0], by_name, strict=True)

    some = gptscope.trace(model, ids, keep=["weights", "logits"])
    assert {name.split(".")[-1] for name in some.names()} == {"weights", "logits"}
    np.testing.assert_array_equal(some.logits, trace.logits, strict=True)

    out = gptscope.generate(
        model, ids, max_new_tokens=40, temperature=0.8, top_k=40, top_p=None, seed=0
    )
    assert 1 <= len(out.ids) <= 40
    assert out.stopped in {"asked", "end token"}
    assert model.tokenizer.decode(out.ids)
    assert gptscope.generate(model, ids) == out  # those are the defaults

    assert gptscope.n_params(d=768, L=12, V=50257, ctx=2048).total == 125_226_240


def test_the_shipped_model_goes_on_with_the_story(tiny):
    probs = gptscope.probabilities(
        gptscope.trace(tiny, tiny.tokenizer.encode("Once upon a")).logits[-1]
    )
    assert tiny.tokenizer.text_of(int(probs.argmax())) == " time"
    assert probs.max() > 0.9


@pytest.mark.parametrize("name", gptscope.__all__)
def test_every_public_name_is_there_and_says_what_it_is(name):
    value = getattr(gptscope, name)
    assert name in dir(gptscope)
    if isinstance(value, tuple):  # HOOK_POINTS: what it holds says it
        value, name = type(value[0]), type(value[0]).__name__
    assert value.__name__ == name
    assert len(inspect.getdoc(value)) > 15
    assert not value.__doc__.startswith(f"{name}(")  # which dataclass writes where there is none


def test_public_names_are_unique_and_listed():
    assert len(set(gptscope.__all__)) == len(gptscope.__all__)
    assert set(dir(gptscope)) == {*gptscope.__all__, "__version__"}


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'gptscope' has no attribute 'nonsense'"):
        gptscope.nonsense  # noqa: B018


def test_the_version_is_that_of_the_package():
    assert gptscope.__version__ == version("gptscope")


def python(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_importing_loads_nothing_heavy():
    code = "import sys, gptscope; print(*{name.partition('.')[0] for name in sys.modules})"
    heavy = {"numpy", "safetensors", "tokenizers", "typer", "rich", "torch", "transformers"}
    assert not heavy & set(python(code))


def test_running_a_model_needs_numpy_safetensors_and_tokenizers_alone():
    code = (
        "import sys, gptscope; m = gptscope.load('tiny'); gptscope.generate(m, [1], 2);"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = set(python(code))
    assert {"numpy", "safetensors", "tokenizers"} <= loaded
    assert not {"torch", "transformers", "typer", "rich"} & loaded


def test_a_name_can_be_imported_from_the_top():
    assert python("from gptscope import *; print(load('tiny').n_params)") == ["1334016"]


def test_formulas_take_lists_and_whole_numbers():
    floats = np.array([1.0, 2, 3])
    for formula in (gptscope.softmax, gptscope.gelu, gptscope.probabilities):
        for given in ([1, 2, 3], np.array([1, 2, 3])):
            np.testing.assert_array_equal(formula(given), formula(floats), strict=True)
