import re

import numpy as np
import pytest

import gptscope
from gptscope.analysis.info_formulas import (
    attention,
    formulas,
    largest_block,
    letters,
    linear,
    term,
)
from gptscope.model.params import count_tensors
from gptscope.model.weights import n_numbers
from tests.golden.transformers.cases import CASES as FAMILIES
from tests.golden.transformers.weights import write_folder
from tests.helpers.folders import CASES, GOLDEN

TERM = re.compile(r"[A-Za-z_]+|\d+|\^|[()+]|\s+")
NAMES = [case.name for case in FAMILIES]


def evaluated(text, values):
    """The number that a formula gives, by the rules of a formula in a book."""
    pieces = [piece for piece in TERM.findall(text) if piece.strip()]
    assert "".join(pieces) == text.replace(" ", "")
    python, before = "", "+"
    for piece in pieces:
        times = "*" if before not in "+(^" and piece not in "+)^" else ""
        python += times + {"^": "**"}.get(piece, str(values.get(piece, piece)))
        before = piece
    return eval(python)  # noqa: S307 - digits and signs alone


def check(model):
    found, counted, values = formulas(model), count_tensors(model), letters(model)
    assert sum(formula.value for formula in found.values()) == model.n_params
    for part, formula in found.items():
        assert formula.value == getattr(counted, part)
        assert evaluated(formula.text, values) == formula.value


@pytest.mark.parametrize("case", CASES)
def test_formulas_give_the_numbers_of_the_golden_models(case):
    check(gptscope.load(GOLDEN / case))


@pytest.mark.parametrize("case", NAMES)
def test_formulas_give_the_numbers_of_every_family(case, tmp_path):
    check(gptscope.load(write_folder(case, tmp_path)))


@pytest.mark.parametrize("name", ["tiny", "toy"])
def test_formulas_are_those_of_the_lesson(name):
    model = gptscope.load(name)
    texts = {part: formula.text for part, formula in formulas(model).items()}
    assert texts["attention"] == "L (4 d^2 + 4 d)"
    assert texts["network"] == "L (2 d F + F + d)"
    assert texts["normalisations"] == "4 L d + 2 d"
    assert texts["embeddings"] == ("V d + ctx d" if name == "tiny" else "V d")


def test_a_sum_is_that_of_the_head_of_the_module(tiny):
    block, n = tiny.blocks[0], letters(tiny)
    assert attention(block, n) == {("d", "d"): 4, ("d",): 4}
    assert linear(block.attention.q, ("d",), ("d",), n) == {("d", "d"): 1, ("d",): 1}


def test_an_array_of_another_size_is_a_number():
    n = {"d": 3, "F": 4}
    assert term(np.zeros((3, 4)), ("F", "d"), n) == {("d", "F"): 1}
    assert term(np.zeros((3, 5)), ("F", "d"), n) == {(): 15}
    assert term(None, ("F", "d"), n) == {}


def test_shared_keys_have_a_letter(tmp_path):
    found = formulas(gptscope.load(write_folder("llama-grouped", tmp_path)))
    assert found["attention"].text == "L (2 d G d_h + 2 d H d_h + 2 G d_h + H d_h + d)"


def test_the_largest_block_is_one_of_the_blocks(tiny):
    assert largest_block(tiny) == n_numbers(tiny.blocks[0])
