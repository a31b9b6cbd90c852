import pytest

import gptscope
from gptscope.errors import UsageError
from gptscope.model.params import count
from gptscope.model.presets import PRESETS, preset


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("gpt1", 116_534_784),  # the released checkpoint
        ("gpt2", 124_439_808),  # so has each of these
        ("gpt2-medium", 354_823_168),
        ("gpt2-large", 774_030_080),
        ("gpt2-xl", 1_557_611_200),
        ("gpt3-small", 125_226_240),
        ("gpt3", 174_604_259_328),
        ("toy", 1_856),
        ("tiny", 1_334_016),
    ],
)
def test_totals(name, total):
    assert count(PRESETS[name].sizes).total == total


@pytest.mark.parametrize("name", ["toy", "tiny"])
def test_shipped_models_have_these_sizes(name):
    assert count(PRESETS[name].sizes).total == gptscope.load(name).n_params


@pytest.mark.parametrize("name", [name for name in PRESETS if name.startswith("gpt3")])
def test_gpt3_is_what_its_paper_says(name):
    known = PRESETS[name]
    assert count(known.sizes).total == pytest.approx(known.published, rel=0.02)


def test_gpt2_is_larger_than_its_paper_says():
    known = [known for name, known in PRESETS.items() if name.startswith("gpt2")]
    off = [count(one.sizes).total / one.published for one in known]
    assert all(1 < one < 1.07 for one in off)


def test_only_the_first_has_no_last_norm():
    assert [name for name, known in PRESETS.items() if not known.sizes.final_norm] == ["gpt1"]


def test_every_published_number_has_its_paper():
    assert [k for k in PRESETS.values() if (k.published is None) != (k.paper == "")] == []


def test_unknown_names_are_refused():
    assert preset("gpt2") is PRESETS["gpt2"]
    with pytest.raises(UsageError, match="preset 'gpt5' is not one of: gpt1, gpt2, "):
        preset("gpt5")
