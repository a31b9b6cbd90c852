# What gptscope computes, against TransformerLens on the same weights; and docs/transformer-lens.md.

import re
from importlib.metadata import version

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformer_lens")
measure = pytest.importorskip("tests.golden.transformer_lens.measure")

ALLOWED = 1e-4  # of the largest number if that is above 1
# What it gives otherwise may change with its next version, and is no mistake of ours.
as_the_page_says = pytest.mark.skipif(
    not version("transformer-lens").startswith("4.3."), reason="the page is of TransformerLens 4.3"
)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module", params=measure.MODELS)
def opened(request):
    return measure.MODELS[request.param]()


@pytest.mark.parametrize("name", measure.COMPARED)
def test_both_give_the_same(opened, name):
    pair = measure.COMPARED[name][0](opened)
    assert np.ptp(pair[1]) > 100 * ALLOWED  # so that a mistake would show
    assert measure.of_the_scale(pair) <= ALLOWED


@as_the_page_says
@pytest.mark.parametrize("name", measure.OWN)
def test_transformer_lens_by_itself_gives_something_else(opened, name):
    assert measure.apart(measure.OWN[name][0](opened)) > ALLOWED, "say so in the docs"


@as_the_page_says
def test_opened_by_default_its_lens_has_the_same_probabilities(opened):
    ours, theirs = map(measure.probabilities, measure.OWN[measure.BY_DEFAULT][0](opened))
    assert np.abs(ours - theirs).max() <= ALLOWED


def page(first):
    # The rows of the table that begins so: name -> the numbers of the models.
    text = measure.PAGE.read_text("utf-8")
    (found,) = re.findall(rf"^\| {first} \|.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in found.splitlines()]
    return {name: [float(one) for one in numbers] for name, *numbers, _ in cells[1:]}


def test_the_page_has_all_that_is_compared():
    found = page(measure.SAME)
    assert list(found) == list(measure.COMPARED), measure.__doc__
    assert all(len(numbers) == len(measure.MODELS) for numbers in found.values())
    assert all(number < ALLOWED for numbers in found.values() for number in numbers)


def test_the_page_says_where_transformer_lens_gives_something_else():
    found = page(measure.OTHER)
    assert list(found) == list(measure.OWN), measure.__doc__
    assert all(number > ALLOWED for numbers in found.values() for number in numbers)
