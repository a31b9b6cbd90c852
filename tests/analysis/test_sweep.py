from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from gptscope.analysis.sweep import (
    KINDS,
    METRICS,
    REPLACEMENTS,
    Lane,
    Setting,
    Site,
    ablations,
    lanes,
    measured,
    normalised,
    over,
    patches,
    sites,
    together,
    work,
)
from gptscope.engine.edits import Edits
from gptscope.engine.forward import block
from gptscope.engine.trace import trace
from gptscope.model.blocks import Made
from gptscope.model.load import load
from gptscope.model.weights import Linear
from tests.helpers.close import OF_THE_SCALE
from tests.helpers.families import family_folder, one_of_each
from tests.helpers.micro import micro_model, models_and_ids, sizes
from tests.helpers.variants import CHANGES, WIRED, rich, shared_keys

IDS, OTHER = [1, 2, 3, 1, 5], [1, 2, 7, 4, 5]
AT = -1
CASES = sorted({*one_of_each(), "bloom-after-norm", "opt-350m", "phi-qk-norm", "stablelm-parallel"})


def score(logits):
    """A number of all logits."""
    return float(np.cos(np.arange(len(logits))) @ np.float64(logits))


def flat(kind, model, tokens):
    return [site for row in sites(KINDS[kind], model.spec, tokens) for site in row]


def swept(model, made, edits=None):
    n = len(next(lane.ids for lane in lanes.with_sources(made) if lane.ids is not None))
    return measured(Setting(model, n - 1, score, edits), made, n)


def assert_are(model, values, expected):
    allowed = 10 * OF_THE_SCALE[str(model.dtype)]
    assert_allclose(values, expected, atol=allowed * max(1, np.abs(expected).max()), rtol=0)


def by_edits(model, ids, edits):
    return score(trace(model, ids, ["logits"], edits).logits[AT])


def other_value(site, other):
    value = other[site.name.partition("[")[0]]
    return site.name, value if site.token is None else value[site.token]


def check_ablations(model, ids, replacement):
    where = [
        *(site for kind in ("heads", "attn", "mlp") for site in flat(kind, model, None)),
        *flat("resid", model, range(len(ids))),
    ]
    run = over(ids)
    values = swept(model, [run, *ablations(run, where, replacement)])
    expected = [by_edits(model, ids, [f"{site.name}={replacement}"]) for site in where]
    assert_are(model, values, [by_edits(model, ids, []), *expected])


def check_patches(model, ids, other_ids):
    where = [
        *(s for kind in ("heads", "head-pattern", "head-value") for s in flat(kind, model, None)),
        *(s for kind in ("attn", "mlp", "resid") for s in flat(kind, model, range(len(ids)))),
    ]
    run, other = over(ids), over(other_ids, *{site.key for site in where})
    values = swept(model, patches(run, other, where))
    kept = trace(model, other_ids)
    expected = [by_edits(model, ids, [other_value(site, kept)]) for site in where]
    assert_are(model, values, expected)


# Each number is that of a whole pass with the edit


@settings(max_examples=25)
@given(models_and_ids(), st.sampled_from(sorted(REPLACEMENTS)))
def test_taken_away_is_edited(model_and_ids, replacement):
    check_ablations(*model_and_ids, replacement)


@settings(max_examples=25)
@given(models_and_ids(), st.randoms(use_true_random=False))
def test_patched_is_edited(model_and_ids, random):
    model, ids = model_and_ids
    check_patches(model, ids, [random.randrange(model.spec.n_vocab) for _ in ids])


@pytest.mark.parametrize("wired", WIRED)
@pytest.mark.parametrize("change", CHANGES)
def test_every_wiring_and_change(wired, change):
    model = CHANGES[change](WIRED[wired](micro_model(sizes(d_head=4), 1, "float64")))
    check_ablations(model, IDS, "mean")
    check_patches(model, IDS, OTHER)


@pytest.mark.parametrize("case", CASES)
def test_families(case):
    model = load(family_folder(case))
    check_ablations(model, IDS, "mean")
    check_patches(model, IDS, OTHER)


def test_edits_are_made_first():
    model = rich(micro_model(sizes(d_head=4), 2, "float64"))
    edits = ["layers.0.input=*2", "layers.*.heads.0.out=+0.5", "layers.1.output[-1]=*3"]
    for more in ([], ["ln_final.out[4]=*2"], ["logits[-1,1]=3"]):
        every = Edits(model, [*edits, *more])
        for replacement in REPLACEMENTS:
            where = [*flat("heads", model, None), *flat("resid", model, range(5))]
            run = over(IDS)
            values = swept(model, [run, *ablations(run, where, replacement)], every)
            each = [[], *([f"{site.name}={replacement}"] for site in where)]
            assert_are(model, values, [by_edits(model, IDS, [*edits, *more, *e]) for e in each])


# Laws


@given(models_and_ids(), st.randoms(use_true_random=False))
def test_the_whole_stream_is_the_other_run(model_and_ids, random):
    model, ids = model_and_ids
    other_ids = [random.randrange(model.spec.n_vocab) for _ in ids]
    run, other = over(ids), over(other_ids, "input", "output")
    last = model.spec.n_layers - 1
    where = [*(Site("input", layer) for layer in range(last + 1)), Site("output", last)]
    where.append(Site("output", last, token=len(ids) - 1))
    first, second, *values = swept(model, [run, other, *patches(run, other, where)])
    assert_array_equal(values, np.full(len(where), second), strict=True)
    if first != second:
        scores = normalised(np.array([*values, first]), first, second)
        assert_array_equal(scores, [1.0] * len(where) + [0.0])


@settings(max_examples=25)
@given(models_and_ids())
def test_a_run_patched_with_itself_is_itself(model_and_ids):
    model, ids = model_and_ids
    where = [
        *(s for kind in ("heads", "head-pattern", "head-value") for s in flat(kind, model, None)),
        *(s for kind in ("attn", "mlp", "resid") for s in flat(kind, model, range(len(ids)))),
    ]
    run, other = over(ids), over(ids, *{site.key for site in where})
    values = swept(model, [run, *patches(run, other, where)])
    assert_array_equal(values, np.full(len(where) + 1, values[0]), strict=True)


def test_tokens_before_a_difference_and_after_the_place_have_no_effect():
    model = micro_model(sizes(d_head=4), 3)
    where = sites(KINDS["resid"], model.spec, range(5))
    run, other = over(IDS), over(OTHER, "input", "output")
    made = [run, *patches(run, other, [site for row in where for site in row])]
    values = measured(Setting(model, 3, score), made, 5)
    effects = (values[1:] - values[0]).reshape(3, 5)
    assert_array_equal(effects[:, [0, 1, 4]], 0)
    assert np.all(effects[:2, [2, 3]] != 0)


@pytest.mark.parametrize("replacement", REPLACEMENTS)
def test_a_head_that_writes_nothing_has_no_effect(replacement):
    model = micro_model(sizes(d_head=4), 4)
    first, second = model.blocks
    weight = first.attention.out.weight.copy()
    weight[4:8] = 0
    mute = replace(first.attention, out=Linear(weight, first.attention.out.bias))
    model = replace(model, blocks=(replace(first, attention=mute), second))
    run = over(IDS)
    values = swept(model, [run, *ablations(run, flat("heads", model, None), replacement)])
    effects = values[1:] - values[0]
    assert effects[1] == 0
    assert np.all(effects[[0, 2, 3]] != 0)


# What it costs


class Asked(Made):
    """Blocks that count how often each is asked for."""

    def __init__(self, blocks):
        super().__init__(blocks)
        self.blocks, self.times = blocks, [0] * len(blocks)

    def one(self, layer):
        self.times[layer] += 1
        return self.blocks[layer]


def test_layers_before_a_change_are_computed_once():
    model = micro_model(sizes(n_layers=3, n_heads=2))
    blocks = Asked(model.blocks)
    model = replace(model, blocks=blocks)
    done = []
    run = over(IDS)
    made = [run, *ablations(run, flat("heads", model, None), "zero")]
    measured(Setting(model, 4, score, tick=done.append), made, 5)
    assert sum(done) == work(model, made, 5) == 3 + 2 * (3 + 2 + 1)
    assert blocks.times == [1, 1, 1]


def test_what_does_not_fit_comes_in_parts(monkeypatch):
    model = micro_model(sizes(n_layers=3, n_heads=2))
    run, other = over(IDS), over(OTHER, "input", "output")
    made = [run, other, *patches(run, other, flat("resid", model, range(5)))]
    whole = swept(model, made)
    monkeypatch.setattr(lanes, "room", lambda: 4 * 5 * model.spec.d_model * 4 * 3)
    parts = list(lanes.batches(model, made, 5))
    assert [len(part) for part in parts] == [4] * 5 + [2]
    assert_array_equal(swept(model, made), whole, strict=True)
    done = []
    measured(Setting(model, 4, score, tick=done.append), made, 5)
    assert sum(done) == work(model, made, 5)


def test_a_lane_ends_where_it_is_needed_no_more():
    lane = Lane(None, over(IDS), begins=1, ends=2)
    assert [lane.runs_in(layer) for layer in range(4)] == [False, True, True, False]


# What is asked


def number(metric, wanted, logits, before=()):
    return METRICS[metric].measure(wanted, np.float64(before))(logits)


def test_metrics():
    logits = np.float32([1, 2, 0.5])
    shares = np.exp(np.float64(logits)) / np.exp(np.float64(logits)).sum()
    assert number("logit", {0: 1.0}, logits) == 1
    assert number("logit", {1: 1.0, 2: -1.0}, logits) == 1.5
    assert_allclose(number("prob", {0: 1.0}, logits), shares[0])
    assert_allclose(number("prob", {0: 1.0, 2: -1.0}, logits), shares[0] - shares[2])


def test_kl_is_in_bits_and_from_the_reference():
    sure, even = np.float64([800, 0]), np.float64([0, 0])
    assert_allclose(number("kl", {}, even, sure), 1)
    assert number("kl", {}, even, even) == 0
    assert number("kl", {}, sure, even) > 100


def test_scores():
    values = np.array([1.0, 3.0, 2.0, 5.0])
    assert_array_equal(normalised(values, 1.0, 3.0), [0, 1, 0.5, 2])


# Names


def test_names_are_those_of_edits():
    spec = sizes(n_layers=1, n_heads=2)
    assert [s.name for s in flat("heads", micro_model(spec), None)] == [
        "layers.0.heads.0.out",
        "layers.0.heads.1.out",
    ]
    assert [s.name for s in flat("resid", micro_model(spec), [3])] == [
        "layers.0.input[3]",
        "layers.0.output[3]",
    ]
    assert [s.name for s in flat("mlp", micro_model(spec), None)] == ["layers.0.mlp_out"]


def test_shared_values_are_one():
    model = shared_keys(micro_model(sizes(n_layers=1, n_heads=4)))
    assert [s.name for s in flat("head-value", model, None)] == [
        "layers.0.heads.0.v",
        "layers.0.heads.2.v",
    ]


# Several passes in one block


@pytest.mark.parametrize("rows", [1, 11, 10_000])
@pytest.mark.parametrize("wired", WIRED)
def test_how_many_are_computed_together_changes_nothing(wired, rows, monkeypatch):
    model = rich(WIRED[wired](micro_model(sizes(n_heads=4, d_head=4), 1, "float64")))
    where = [*flat("head-pattern", model, None), *flat("resid", model, range(5))]
    run, other = over(IDS), over(OTHER, "weights", "input", "output")
    made = [run, other, *patches(run, other, where)]
    expected = swept(model, made)
    monkeypatch.setattr(together, "ROWS", rows)
    assert_allclose(swept(model, made), expected, atol=1e-12, strict=True)


def test_a_block_is_always_of_as_many_rows(monkeypatch):
    model, seen = micro_model(sizes(n_layers=1, n_heads=4)), []

    def noted(x, weights, step):
        seen.append(len(x))
        return block(x, weights, step)

    monkeypatch.setattr(together, "block", noted)
    run, other = over(IDS), over(OTHER, "out")
    swept(model, [run, other, *patches(run, other, flat("heads", model, None))])
    assert seen == [4 * 5, 4 * 5]
    assert together.at_once(900, 5) == together.ROWS // 5
    assert together.at_once(900, 2 * together.ROWS) == 1
