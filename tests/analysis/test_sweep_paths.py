import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from gptscope.analysis.sweep import (
    NOTED,
    Part,
    Paths,
    Setting,
    ablations,
    measured,
    over,
    parts,
    patches,
    taken,
)
from gptscope.analysis.sweep_choices import mean
from gptscope.engine.edits import Edits
from gptscope.engine.trace import trace
from gptscope.errors import UsageError
from gptscope.model.load import load
from tests.helpers.close import OF_THE_SCALE
from tests.helpers.families import family_folder, one_of_each
from tests.helpers.micro import micro_model, models_and_ids, sizes
from tests.helpers.variants import CHANGES, WIRED, rich

IDS, OTHER = [1, 2, 3, 1, 5], [1, 2, 7, 4, 5]
GIVES = {"head": "out", "attn": "attn_out", "mlp": "mlp_out"}
UNITS = ("mlp_hidden", "mlp_gate", "mlp_up")


def score(logits):
    return float(np.cos(np.arange(len(logits))) @ np.float64(logits))


def given_by(part):
    inside = f"heads.{part.head}.out" if part.kind == "head" else GIVES[part.kind]
    return f"layers.{part.layer}.{inside}"


def read_by(part, kept):
    if part.kind == "mlp":
        names = [f"layers.{part.layer}.{key}" for key in UNITS]
        return [name for name in names if name in kept.names()]
    return [f"layers.{part.layer}.heads.{part.head}.{one}" for one in part.reads]


def told(model, ids, ends, value, *, freeze_mlp=False, edits=()):
    """Path patching written down again, with whole passes: the logits at the last token."""
    sender, receiver = ends
    before = trace(model, ids, None, edits)
    later = range(sender.layer + 1, model.spec.n_layers)
    frozen = [f"layers.{i}.heads.{h}.out" for i in later for h in range(model.spec.n_heads)]
    if freeze_mlp:
        first = sender.layer + (sender.kind == "mlp")
        frozen += [f"layers.{i}.mlp_out" for i in range(first, model.spec.n_layers)]
    changes = [*edits, (given_by(sender), value), *((name, before[name]) for name in frozen)]
    middle = trace(model, ids, None, changes)
    if receiver.kind == "logits":
        return score(middle.logits[-1])
    reads = [(name, middle[name]) for name in read_by(receiver, before)]
    return score(trace(model, ids, ["logits"], [*edits, *reads]).logits[-1])


def swept(model, made, edits=None):
    return measured(Setting(model, len(IDS) - 1, score, edits), made, len(IDS))


def every(model, option):
    ends = {"--from": ["attn", "mlp", "heads.*"], "--to": ["mlp", "heads.*", "heads.*.q"]}
    ends["--to"] += ["heads.*.k", "heads.*.v"]
    found = [one for end in ends[option] for one in parts(f"layers.*.{end}", model.spec, option)]
    return [*found, Part("logits")] if option == "--to" else found


def check(model, *, freeze_mlp=False, edits=(), step=5):
    """Pairs of parts of a model, from the other run; every so many of them, in a fixed order."""
    run, other = over(IDS, *NOTED), over(OTHER, "out", "attn_out", "mlp_out")
    paths = Paths(model.spec, run, lambda site: taken(site, other), (other,), freeze_mlp)
    senders, receivers = every(model, "--from"), every(model, "--to")
    pairs = [(s, r) for s in senders for r in receivers if paths.leads(s, r)][::step]
    values = swept(model, paths.lanes(pairs), Edits(model, edits) if edits else None)
    kept = trace(model, OTHER, None, edits)
    expected = [
        told(model, IDS, pair, kept[given_by(pair[0])], freeze_mlp=freeze_mlp, edits=edits)
        for pair in pairs
    ]
    allowed = 10 * OF_THE_SCALE[str(model.dtype)] * max(1, np.abs(expected).max())
    assert_allclose(values, expected, atol=allowed, rtol=0)
    return values


# Against path patching written down again


@pytest.mark.parametrize("wired", WIRED)
@pytest.mark.parametrize("freeze_mlp", [False, True])
def test_every_path(wired, freeze_mlp):
    model = WIRED[wired](micro_model(sizes(n_layers=3, d_head=4), 1, "float64"))
    assert len(np.unique(check(model, freeze_mlp=freeze_mlp, step=2))) > 40


@pytest.mark.parametrize("change", CHANGES)
def test_every_change(change):
    check(CHANGES[change](micro_model(sizes(d_head=4), 2, "float64")))


@pytest.mark.parametrize("case", one_of_each())
def test_families(case):
    check(load(family_folder(case)), freeze_mlp=True)


def test_edits_are_made_in_every_pass():
    model = rich(micro_model(sizes(d_head=4), 2, "float64"))
    check(model, edits=["layers.0.input=*2", "layers.*.heads.0.out=+0.5", "layers.1.mlp_act=*3"])


def test_a_mean_in_the_place_of_the_sender():
    model = rich(micro_model(sizes(d_head=4), 2, "float64"))
    run = over(IDS, *NOTED)
    sender, receiver = Part("head", 0, 1), Part("head", 1, 0, "v")
    values = swept(model, Paths(model.spec, run, mean).lanes([(sender, receiver)]))
    value = trace(model, IDS)["layers.0.heads.1.out"].mean(axis=0)
    assert_allclose(values, [told(model, IDS, (sender, receiver), value)])


# Where it is ordinary patching


@settings(max_examples=25)
@given(models_and_ids(), st.randoms(use_true_random=False))
def test_from_the_last_layer_to_the_end_every_path_is_open(model_and_ids, random):
    model, ids = model_and_ids
    other_ids = [random.randrange(model.spec.n_vocab) for _ in ids]
    last = model.spec.n_layers - 1
    senders = [Part("mlp", last), Part("attn", last)]
    senders += [Part("head", last, h) for h in range(model.spec.n_heads)]
    run, other = over(ids, *NOTED), over(other_ids, "out", "attn_out", "mlp_out")
    paths = Paths(model.spec, run, lambda site: taken(site, other), (other,))
    made = paths.lanes([(sender, Part("logits")) for sender in senders])
    plain = patches(run, other, [sender.gives for sender in senders])
    setting = Setting(model, len(ids) - 1, score)
    assert np.array_equal(measured(setting, made, len(ids)), measured(setting, plain, len(ids)))


def test_a_part_that_is_told_nothing_new():
    model = micro_model(sizes(d_head=4), 3)
    run, same = over(IDS, *NOTED), over(IDS, "out")
    paths = Paths(model.spec, run, lambda site: taken(site, same), (same,))
    pairs = [(Part("head", 0, 0), Part("head", 1, 1, "q")), (Part("head", 0, 1), Part("logits"))]
    before, *after = swept(model, [run, *paths.lanes(pairs)])
    assert after == [before, before]


def test_a_path_is_not_all_that_a_head_does():
    model = micro_model(sizes(n_layers=3, d_head=4), 3, "float64")
    run = over(IDS, *NOTED)
    sender = Part("head", 0, 0)
    (path,) = Paths(model.spec, run, mean).lanes([(sender, Part("logits"))])
    before, along, whole = swept(model, [run, path, *ablations(run, [sender.gives], "mean")])
    assert abs(along - before) > 0.01
    assert abs(along - whole) > 0.01


def test_passes_that_are_told_are_shared_and_end_early():
    model = micro_model(sizes(n_layers=3, d_head=4), 3)
    run = over(IDS, *NOTED)
    sender = Part("head", 0, 0)
    receivers = [Part("head", 1, 0, "q"), Part("head", 1, 1, "q")]
    made = Paths(model.spec, run, mean).lanes([(sender, one) for one in receivers])
    assert made[0].takes == made[1].takes
    assert (made[0].takes[0].begins, made[0].takes[0].ends) == (0, 1)


# What may be written


def test_parts():
    spec = sizes(n_layers=3, n_heads=2)
    assert parts("layers.1.heads.0", spec, "--from") == [Part("head", 1, 0)]
    assert parts("layers.1:.heads.*.q", spec, "--to") == [
        Part("head", layer, head, "q") for layer in (1, 2) for head in (0, 1)
    ]
    assert parts("layers.*.mlp", spec, "--to") == [Part("mlp", layer) for layer in range(3)]
    assert parts("layers.2.attn", spec, "--from") == [Part("attn", 2)]
    assert parts("logits", spec, "--to") == [Part("logits")]


def test_a_part_is_named_as_it_is_written():
    spec = sizes(n_layers=3, n_heads=2)
    for written in ("layers.1.heads.0", "layers.1.heads.1.q", "layers.0.mlp", "logits"):
        assert parts(written, spec, "--to")[0].name == written


@pytest.mark.parametrize(
    ("written", "option", "why"),
    [
        ("layers.1.heads.0.q", "--from", "--from is a whole head: layers.1.heads.0$"),
        ("layers.1.attn", "--to", "--to is one head or all of a layer, not attn"),
        ("logits", "--from", "--from: 'logits' is no part"),
        ("layers.1", "--to", "--to: 'layers.1' is no part"),
        ("layers.3.mlp", "--to", "layer 3 is out of range: this one has layers 0 to 2"),
        ("layers.0.heads.2", "--from", "head 2 is out of range"),
        ("layers.2:9.mlp", "--from", "layers 2:9 are out of range"),
    ],
)
def test_what_is_no_part(written, option, why):
    with pytest.raises(UsageError, match=why):
        parts(written, sizes(n_layers=3, n_heads=2), option)


def test_where_paths_lead():
    attn, mlp, late = Part("head", 1, 0), Part("mlp", 1), Part("head", 2, 0, "k")
    model = micro_model(sizes(n_layers=3))
    for wired, inside in {"pre_norm": True, "parallel": False, "one_norm": False}.items():
        paths = Paths(WIRED[wired](model).spec, over(IDS), mean)
        assert paths.leads(attn, mlp) == inside
        assert paths.leads(mlp, late)
        assert not paths.leads(late, attn)
        assert not paths.leads(attn, Part("head", 1, 1))
        assert paths.leads(late, Part("logits"))
