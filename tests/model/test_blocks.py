import numpy as np
import pytest

from gptscope.model.blocks import Blocks, Counted, Kept, kept, outlines, widened
from gptscope.model.dtypes import BF16
from gptscope.model.weights import Linear, n_numbers
from tests.helpers.folders import bf16_bits
from tests.helpers.micro import micro_model, sizes


@pytest.fixture
def model():
    return micro_model(sizes(n_layers=3))


def counting(model):
    made = []
    return Blocks(lambda i: made.append(i) or model.blocks[i], model.blocks), made


@pytest.mark.parametrize("wrap", [lambda b: Kept(b, 0), kept, lambda b: Counted(b, lambda: None)])
def test_wrapped_blocks_are_the_same_sequence(model, wrap):
    blocks, made = counting(model)
    wrapped = wrap(blocks)
    assert outlines(wrapped) is model.blocks
    assert (len(wrapped), made) == (3, [])
    assert wrapped[-1].ln1.gain is model.blocks[2].ln1.gain
    gains = [id(block.ln1.gain) for block in model.blocks]
    assert [id(block.ln1.gain) for block in wrapped[1:]] == gains[1:]
    assert [id(block.ln1.gain) for block in wrapped] == gains
    with pytest.raises(IndexError, match="out of range"):
        wrapped[3]


def test_blocks_are_kept_as_far_as_there_is_room(model):
    blocks, made = counting(model)
    two = Kept(blocks, 2 * 4 * n_numbers(model.blocks[0]))
    for _ in range(3):
        for layer in range(3):
            two[layer]
    assert made == [0, 1, 2]  # the third is the last one made, which is kept in any case
    two[0], blocks[1], two[2]
    assert made == [0, 1, 2, 1, 2]


def test_what_is_kept_is_widened():
    bits = bf16_bits(np.array([[1, 2.5], [3, 4]], "float32")).view(BF16)
    narrow = Linear(bits, np.ones(2, "float32"))
    wide = widened(narrow)
    np.testing.assert_array_equal(wide.stored, np.array([[1, 2.5], [3, 4]], "float32"), strict=True)
    assert wide.bias is narrow.bias
    assert widened(None) is None
    assert widened(0.5) == 0.5


def test_each_block_is_told_once(model):
    told = []
    blocks = Counted(model.blocks, lambda: told.append(1))
    for layer in (0, 0, 1, 2, 2):
        blocks[layer]
    assert len(told) == 3
