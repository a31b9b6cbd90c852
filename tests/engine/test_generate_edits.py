# Edits while a text grows: what is kept of earlier tokens must be what a whole pass would give.

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

import gptscope
from gptscope.engine.cache import Cache
from gptscope.engine.edits import Edits
from gptscope.engine.generate import draws, generate
from gptscope.engine.hook_points import HOOK_POINTS
from gptscope.engine.lacking import why_lacking
from gptscope.engine.sampling import Sampling, probabilities
from gptscope.errors import GptscopeError, UsageError
from tests.helpers.micro import micro_model
from tests.helpers.variants import CHANGES, WIRED, rich

PROMPT = (3, 1, 4)
STEPS = 4
MODELS = {
    **{name: change(micro_model(dtype="float64")) for name, change in WIRED.items()},
    **{name: change(micro_model(dtype="float64")) for name, change in CHANGES.items()},
    "rich": rich(micro_model(dtype="float64")),
}
ROWS = [point.key for point in HOOK_POINTS if not point.axes.endswith("S")]
IN_ONE_ROW = [  # edits that hold for every token alike
    "layers.0.output=zero",
    "layers.1.heads.1.out=*2",
    "layers.*.heads.0.v=0.5",
    "layers.*.mlp_act[:,3]=+1",
    "layers.0.heads.*.k=-1",
    "layers.1.resid_after_attn[:,2:4]=zero",
    "token_embeddings=*-1",
    "ln_final.out=+0.25",
    "ln_final.mean=0.1",
    "logits[:,5]=-inf",
    "logits=*-1",
]
OTHERS = [  # edits that need the whole text at every step
    "layers.0.output[1]=zero",
    "layers.1.heads.0.out[-1]=*3",
    "layers.1.heads.0.weights=0.2",
    "layers.0.heads.*.scores[2:]=0",
    "layers.1.mlp_out=mean",
    "layers.0.output[2]=from[0]:ids:7,8",
    "layers.0.attn_out[0]=from:ids:7,8",
    "blocks.1.hook_mlp_out=*2",
    "ln_final.out[0]=3",
    "ln_final.out=mean",
    "logits=mean",
    "logits[-1,2]=9",
    "logits[0]=9",
]


def stepwise(model, edits, steps=STEPS, **how):
    # A whole pass for every token: the tokens, and the probabilities that each was taken from.
    ids, made = list(PROMPT), []
    for _ in range(steps):
        logits = gptscope.trace(model, ids, ["logits"], edits).logits[-1]
        p = probabilities(logits, **how)
        made.append(p)
        ids.append(int(p.argmax()))
    return tuple(ids[len(PROMPT) :]), made


def check_alike(model, edits):
    ids, made = stepwise(model, edits)
    drawn = generate(model, PROMPT, STEPS, temperature=0, edits=edits)
    assert drawn.ids == ids
    for i, p in enumerate(made):  # the same chances, not only the same winner
        start = (*PROMPT, *ids[:i])
        (one,) = generate(model, start, 1, temperature=1, top_k=None, edits=edits).draws
        likely = dict(one.candidates)
        assert_allclose([likely[j] for j in likely], p[list(likely)], rtol=1e-9)


def chances(model, edits):
    # What could have come at every step of one run, with all that is kept from step to step.
    how = Sampling(1.0, None, None)
    return [dict(d.candidates) for d in draws(model, PROMPT, STEPS, how, 5, Edits(model, edits))]


def whole_chances(model, edits):
    how, ids, made = Sampling(1.0, None, None), list(PROMPT), []
    for draw in draws(model, PROMPT, STEPS, how, 5, Edits(model, edits)):
        p = probabilities(gptscope.trace(model, ids, ["logits"], edits).logits[-1])
        made.append({i: float(p[i]) for i, _ in draw.candidates})
        ids.append(draw.id)
    return made


def check_steps(model, edits):
    for cached, whole in zip(chances(model, edits), whole_chances(model, edits), strict=True):
        assert list(cached) == list(whole)
        assert_allclose(list(cached.values()), list(whole.values()), rtol=1e-9, strict=True)


def is_cached(model, edits, monkeypatch):
    lengths = []
    extend = Cache.extend

    def spy(self, layer, k, v):
        lengths.append(k.shape[1])
        return extend(self, layer, k, v)

    monkeypatch.setattr(Cache, "extend", spy)
    generate(model, PROMPT, 2, edits=edits)
    return lengths == [3, 3, 1, 1]


# Alike in every row: cached


@pytest.mark.parametrize("edit", IN_ONE_ROW)
def test_cached_is_what_whole_passes_give(edit, monkeypatch):
    model = micro_model(dtype="float64")
    check_alike(model, [edit])
    check_steps(model, [edit])
    assert is_cached(model, [edit], monkeypatch)


@pytest.mark.parametrize("name", MODELS)
def test_every_value_of_every_kind_of_model(name):
    model = MODELS[name]
    keys = [key for key in ROWS if why_lacking(key, model) is None]
    assert len(keys) > 20
    for key in keys:
        edit = f"{key}=*1.5"
        assert Edits(model, [edit]).by_row
        check_steps(model, [edit])


def test_an_edit_does_change_what_is_drawn():
    model = micro_model(dtype="float64")
    plain = chances(model, [])
    assert all(chances(model, [edit]) != plain for edit in IN_ONE_ROW)


@pytest.mark.parametrize("ending", ["npz", "npy"])
def test_a_direction_is_added_to_every_token(ending, tmp_path, monkeypatch):
    model, path = micro_model(dtype="float64"), tmp_path / f"steer.{ending}"
    v = np.random.default_rng(0).normal(size=model.spec.d_model)
    if ending == "npy":
        np.save(path, v)
    else:  # as gptscope steer writes it
        words = {"value": "layers.0.output", "model": "micro", "from": ["a", "b"], "to": ["c"]}
        np.savez(path, direction=v, **{name: np.array(x) for name, x in words.items()})
    edit = f"layers.0.output=+{path}*2.5"
    assert is_cached(model, [edit], monkeypatch)
    check_steps(model, [edit])
    check_alike(model, [edit])
    plain = chances(model, [("layers.0.output", lambda x: x + 2.5 * v)])
    for one, other in zip(chances(model, [edit]), plain, strict=True):
        assert one == pytest.approx(other, rel=1e-9)


def test_an_array_for_each_token_is_not_alike_in_every_row(tmp_path):
    model = micro_model()
    np.savez(tmp_path / "rows.npz", direction=np.ones((3, model.spec.d_model), "float32"))
    np.savez(tmp_path / "means.npz", direction=np.arange(3, dtype="float32"))
    for name, file in (("layers.0.output", "rows"), ("layers.0.ln1.mean", "means")):
        edits = [f"{name}=+{tmp_path / file}.npz"]
        assert not Edits(model, edits).by_row
        assert len(generate(model, PROMPT, 1, edits=edits).ids) == 1
        with pytest.raises(UsageError, match="does not fit where there is 4"):
            draws(model, PROMPT, 2, Sampling(0), 0, Edits(model, edits))


# Not alike: whole passes


@pytest.mark.parametrize("edit", OTHERS)
def test_what_depends_on_places_is_run_anew_for_each_token(edit, monkeypatch):
    model = micro_model(dtype="float64")
    check_alike(model, [edit])
    check_steps(model, [edit])
    assert not is_cached(model, [edit], monkeypatch)


@pytest.mark.parametrize("name", [*WIRED, "rich"])
@pytest.mark.parametrize("edit", ["layers.0.output[1]=zero", "layers.1.heads.0.weights[2]=0.5"])
def test_places_in_every_wiring(name, edit):
    check_steps(MODELS[name], [edit])


def test_several_edits_hold_in_order():
    model = micro_model(dtype="float64")
    check_steps(model, ["layers.0.output=1", "layers.0.output[1]=*2", "logits[:,3]=-inf"])
    check_steps(model, ["layers.0.output=1", "layers.0.output=*2", "ln_final.out=+1"])


def test_functions_and_arrays():
    model = micro_model(dtype="float64")
    row = np.linspace(-1, 1, model.spec.d_model)
    check_steps(model, [("layers.0.output", np.tanh), ("layers.1.attn_out", row)])


def test_no_edits_are_none():
    model = micro_model()
    assert generate(model, PROMPT, 5, edits=[]) == generate(model, PROMPT, 5)


# Models that are never cached


def test_a_model_without_a_mask():
    plain = micro_model(dtype="float64")
    model = replace(plain, spec=replace(plain.spec, causal=False))
    check_steps(model, ["layers.0.output=*2"])
    check_steps(model, ["layers.0.output[1]=zero"])


# What cannot be made is said before the first step


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        ("layers.0.output[3]=zero", r"token 3 is out of range"),
        ("layers.0.output[:,6]=zero", r"dimension 6 is out of range"),
        ("layers.9.output=zero", r"layer 9 is out of range"),
        ("layers.0.output=from:ids:1,2", r"2 x 6 does not fit where there is 3 x 6"),
        ("layers.0.output=from:ids:1,2,3", r"3 x 6 does not fit where there is 4 x 6"),
        ("layers.0.output=+/no/such/file.npz", r"/no/such/file\.npz cannot be read"),
        ("layers.0.mlp_gate=zero", r"hidden units have no gates"),
        ("layers.0.output=nonsense", r"'nonsense' is no change"),
    ],
)
def test_errors_come_before_the_first_step(edit, reason):
    model = micro_model()
    with pytest.raises(GptscopeError, match=reason):
        draws(model, PROMPT, 4, Sampling(0), 0, Edits(model, [edit]))


def test_one_step_alone_may_take_a_whole_value_from_elsewhere():
    model = micro_model(dtype="float64")
    edit = "layers.0.output=from:ids:1,2,3"
    made = generate(model, PROMPT, 1, temperature=0, edits=[edit])
    assert made.ids == stepwise(model, [edit], 1)[0]


def test_a_file_of_words_is_refused(tmp_path):
    np.savez(tmp_path / "words.npz", direction=np.array(["a", "b"]))
    with pytest.raises(UsageError, match=r"words\.npz holds no numbers"):
        generate(micro_model(), PROMPT, 2, edits=[f"layers.0.output=+{tmp_path}/words.npz"])
